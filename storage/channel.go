package storage

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
)

// channelRow is a channel, read by channelColumns. The stamps hide the times of
// mediagate.ChannelState, and Retired hides its map: state decodes them.
type channelRow struct {
	mediagate.ChannelState
	ChangedAt, ProbeAt, ProbeUntil, LastErrorAt, LastSeenAt stamp
	Retired                                                 document
}

// channelColumns are the columns of a channelRow: the fields of mediagate.ChannelState without
// its times, then the times, then the document of retired models.
const channelColumns = `name, enabled, disabled_reason, breaker = 'open', break_reason, trips, last_error,
	changed_at, probe_at, probe_until, last_error_at, last_seen_at, retired`

// facts returns what an operator can change of a channel, for the audit.
func (r channelRow) facts() facts {
	return facts{"enabled": r.Enabled, "broken": r.Open, "retired": slices.Sorted(maps.Keys(r.state().Retired))}
}

// state returns the domain type. If the document of retired models cannot be read, no model
// counts as retired.
func (r channelRow) state() mediagate.ChannelState {
	state := r.ChannelState
	state.ChangedAt = r.ChangedAt.Time
	state.ProbeAt = r.ProbeAt.Time
	state.ProbeUntil = r.ProbeUntil.Time
	state.LastErrorAt = r.LastErrorAt.Time
	state.LastSeenAt = r.LastSeenAt.Time
	if fromJSON("channels.retired", r.Retired, &state.Retired) != nil {
		state.Retired = nil // the vendor is asked again
	}
	return state
}

// SeenChannel records that a worker has these channels configured. Each channel is a statement
// of its own, so no two workers can deadlock. A first report of a channel inserts its row.
func (s *Store) SeenChannel(ctx context.Context, names []string) error {
	for _, name := range names {
		if _, err := exec(s.on(ctx), `INSERT INTO channels (name, last_seen_at) VALUES (?, ?)
			ON CONFLICT (name) DO UPDATE SET last_seen_at = excluded.last_seen_at`, name, at(s.clock())); err != nil {
			return dbError(err, "note channels")
		}
	}
	return nil
}

// ChannelStates reads all channels, sorted by name. Each process reads them at most once a
// second and keeps the result (ADR 9), so a channel that another process has taken out may get
// jobs for that second.
func (s *Store) ChannelStates(ctx context.Context) ([]mediagate.ChannelState, error) {
	var rows []channelRow
	if err := read(s.on(ctx), &rows, "SELECT "+channelColumns+" FROM channels ORDER BY name"); err != nil {
		return nil, dbError(err, "read channels")
	}
	return convert(rows, channelRow.state), nil
}

// changeChannel inserts a channel's row if it does not exist, runs the update, and reads the
// row. changed reports whether the conditions of the update held. If they did not, the row
// keeps its values, and state shows them. Callers keep state in either case.
//
// Every transition of a breaker is one conditional UPDATE. Of several processes that see the
// same fault, one matches the row, and so one log line and one alert come of it.
func (s *Store) changeChannel(
	ctx context.Context, what, name, update string, args ...any,
) (state mediagate.ChannelState, changed bool, err error) {
	err = s.write(ctx, what, func(tx *gorm.DB) error {
		if err := makeChannel(tx, name); err != nil {
			return err
		}
		n, err := exec(tx, update, args...)
		if err != nil {
			return err
		}
		changed = n > 0
		row, err := readChannel(tx, name, "")
		state = row.state()
		return err
	})
	return state, changed, err
}

// TripBreaker opens the breaker of a channel. It changes nothing if the breaker is open
// already, or if the failed call began before the breaker last changed. tripped reports whether
// this call opened it.
//
// Example: a submit begins at 12:00:00 and hangs. At 12:00:20 a probe is answered and the
// breaker closes. At 12:00:30 the old submit times out. It says nothing about the vendor after
// 12:00:20, so no row matches.
func (s *Store) TripBreaker(
	ctx context.Context, t mediagate.Trip,
) (state mediagate.ChannelState, tripped bool, err error) {
	now := s.clock()
	return s.changeChannel(ctx, "trip breaker", t.Channel, `UPDATE channels
		SET breaker = 'open', break_reason = ?, changed_at = ?, trips = 1, probe_at = ?, probe = '', probe_until = NULL
		WHERE name = ? AND breaker = 'closed' AND (changed_at IS NULL OR changed_at <= ?)`,
		t.Reason, at(now), at(now.Add(t.OpenFor)), t.Channel, at(t.Began))
}

// ClaimProbe lets one job through an open breaker. The caller holds the probe until it ends the
// probe or the lease ends. claimed is true for only one caller at a time.
//
// probe is the caller's token, and the later calls about the probe need it. If the caller dies,
// the lease ends (probe_until), and the next caller becomes the probe. If no row matches, the
// breaker is closed, the channel is disabled, the probe is not due yet, or another caller holds
// it.
func (s *Store) ClaimProbe(
	ctx context.Context, channel, probe string, lease time.Duration,
) (state mediagate.ChannelState, claimed bool, err error) {
	now := at(s.clock())
	return s.changeChannel(ctx, "claim probe", channel, `UPDATE channels SET probe = ?, probe_until = ?
		WHERE name = ? AND enabled AND breaker = 'open'
			AND probe_at <= ? AND (probe_until IS NULL OR probe_until <= ?)`,
		probe, at(now.Add(lease)), channel, now, now)
}

// closeBreaker is the UPDATE that closes a breaker. Its parameter is the time. The number of
// trips begins anew, so the next opening is short again.
const closeBreaker = `UPDATE channels
	SET breaker = 'closed', break_reason = '', changed_at = ?, trips = 0,
		probe_at = NULL, probe = '', probe_until = NULL`

// CloseBreaker closes the breaker for the holder of the probe, so that all jobs go through
// again. If no row matches, the probe's lease has ended and another job has become the probe,
// or an operator has enabled the channel meanwhile. The new state then stays.
func (s *Store) CloseBreaker(
	ctx context.Context, channel, probe string,
) (state mediagate.ChannelState, closed bool, err error) {
	return s.changeChannel(ctx, "close breaker", channel,
		closeBreaker+" WHERE name = ? AND breaker = 'open' AND probe = ?", at(s.clock()), channel, probe)
}

// ReopenBreaker ends a probe that failed. The next probe may begin after openFor, which the
// caller doubles with each trip. Only the holder of the probe matches the row.
func (s *Store) ReopenBreaker(
	ctx context.Context, channel, probe string, reason mediagate.ParkReason, openFor time.Duration,
) (state mediagate.ChannelState, reopened bool, err error) {
	return s.changeChannel(ctx, "reopen breaker", channel, `UPDATE channels
		SET break_reason = ?, trips = trips + 1, probe_at = ?, probe = '', probe_until = NULL
		WHERE name = ? AND breaker = 'open' AND probe = ?`, reason, at(s.clock().Add(openFor)), channel, probe)
}

// ReleaseProbe releases a probe that has proven nothing, for example because its job was not
// sent. The next job becomes the probe. If another caller holds the probe by now, nothing changes.
func (s *Store) ReleaseProbe(
	ctx context.Context, channel, probe string,
) (state mediagate.ChannelState, released bool, err error) {
	return s.changeChannel(ctx, "release probe", channel,
		"UPDATE channels SET probe = '', probe_until = NULL WHERE name = ? AND probe = ?", channel, probe)
}

// RetireModel keeps jobs away from the channel's route to a model for the duration shutFor, after
// the vendor has answered a call that it has no such model. RetireModel changes nothing if that
// call began before the channel last changed: an operator who has enabled the channel since may
// have mended the cause.
//
// upstream is the vendor's name of the model. The retired models are one JSON document, which
// is read, changed and written. The lock of the row keeps two such changes from losing one of
// them.
func (s *Store) RetireModel(
	ctx context.Context, channel, upstream string, began time.Time, shutFor time.Duration,
) (state mediagate.ChannelState, err error) {
	err = s.write(ctx, "retire model", func(tx *gorm.DB) error {
		if err := makeChannel(tx, channel); err != nil {
			return err
		}
		row, err := readChannel(tx, channel, s.forUpdate("channels"))
		if err != nil {
			return err
		}
		state = row.state()
		if began.Before(state.ChangedAt) {
			return nil
		}
		now, retired := s.clock(), map[string]time.Time{}
		// Models whose time is over are removed here, so the document does not grow.
		maps.Copy(retired, state.Retired)
		maps.DeleteFunc(retired, func(_ string, until time.Time) bool { return !now.Before(until) })
		retired[upstream] = now.Add(shutFor)
		state.Retired = retired
		text, err := jsonText(retired)
		if err != nil {
			return err
		}
		_, err = exec(tx, "UPDATE channels SET retired = ? WHERE name = ?", text, channel)
		return err
	})
	return state, err
}

// EnableChannel enables or disables new jobs of a channel. Enabling closes the breaker and
// opens the routes of retired models as well, since the operator has checked the vendor. The
// reason of a disabled channel is that of the context's actor.
//
// Enabling an enabled channel thus is the operator's way to close a breaker at once. Disabling
// a disabled channel matches no row, so the first reason and time stay.
func (s *Store) EnableChannel(
	ctx context.Context, channel string, enabled bool,
) (state mediagate.ChannelState, err error) {
	err = s.write(ctx, "enable channel", func(tx *gorm.DB) error {
		if err := makeChannel(tx, channel); err != nil {
			return err
		}
		before, err := readChannel(tx, channel, s.forUpdate("channels"))
		if err != nil {
			return err
		}
		if enabled {
			_, err = exec(tx, closeBreaker+", enabled = ?, disabled_reason = '', retired = '' WHERE name = ?",
				at(s.clock()), true, channel)
		} else {
			actor, _ := mediagate.ActorOf(ctx)
			_, err = exec(tx, `UPDATE channels SET enabled = ?, changed_at = ?, disabled_reason = ?
				WHERE name = ? AND enabled`, false, at(s.clock()), actor.Reason, channel)
		}
		if err != nil {
			return err
		}
		after, err := readChannel(tx, channel, "")
		if err != nil {
			return err
		}
		state = after.state()
		return s.note(ctx, tx, deed{
			action: mediagate.AuditChangeChannel, object: channel, before: before.facts(), after: after.facts(),
		})
	})
	return state, err
}

// makeChannel inserts a channel's row if it does not exist, enabled and with a closed breaker.
func makeChannel(tx *gorm.DB, name string) error {
	_, err := exec(tx, "INSERT INTO channels (name) VALUES (?) ON CONFLICT (name) DO NOTHING", name)
	return err
}

// readChannel reads a channel's row. lock is the clause that locks it, or empty.
func readChannel(tx *gorm.DB, name, lock string) (channelRow, error) {
	row, err := one[channelRow](tx, "SELECT "+channelColumns+" FROM channels WHERE name = ?"+lock, name)
	if err != nil || row == nil {
		return channelRow{}, cmp.Or(err, notFound("channel", name))
	}
	return *row, nil
}

// minutesKept is how long the counts of a channel's minutes are kept. They are for operators:
// the breakers count by themselves, in each process.
const minutesKept = time.Hour

// CountCalls adds the calls that a process has counted to the counts of channels. All processes
// add to the same rows (channel, minute). The caller passes the calls sorted by channel and
// minute, so that two processes cannot deadlock.
func (s *Store) CountCalls(ctx context.Context, calls []mediagate.ChannelCalls) error {
	if len(calls) == 0 {
		return nil
	}
	return s.write(ctx, "count calls", func(tx *gorm.DB) error {
		for _, c := range calls {
			if c.Submits > 0 {
				if _, err := exec(tx, `INSERT INTO channel_minutes (channel, minute, submits, failures)
					VALUES (?, ?, ?, ?)
					ON CONFLICT (channel, minute) DO UPDATE SET submits = channel_minutes.submits + excluded.submits,
						failures = channel_minutes.failures + excluded.failures`,
					c.Channel, at(c.Minute.Truncate(time.Minute)), c.Submits, c.Failures); err != nil {
					return err
				}
			}
			// The newest error of all processes stays: an older one matches no row.
			if c.LastError == "" {
				continue
			}
			if _, err := exec(tx, `UPDATE channels SET last_error = ?, last_error_at = ?
				WHERE name = ? AND (last_error_at IS NULL OR last_error_at < ?)`,
				c.LastError, at(c.LastErrorAt), c.Channel, at(c.LastErrorAt)); err != nil {
				return err
			}
		}
		_, err := exec(tx, "DELETE FROM channel_minutes WHERE minute < ?", s.ago(minutesKept))
		return err
	})
}

// ChannelRates counts the submits of each channel since a time, and those of them that failed,
// in whole minutes. The counts include the whole minute in which since lies. A channel without
// submits is not in the map.
func (s *Store) ChannelRates(ctx context.Context, since time.Time) (map[string]mediagate.ChannelCalls, error) {
	var rows []struct {
		Channel  string
		Submits  int
		Failures int
	}
	err := read(s.on(ctx), &rows, `SELECT channel, CAST(SUM(submits) AS bigint), CAST(SUM(failures) AS bigint)
		FROM channel_minutes WHERE minute >= ? GROUP BY channel`, at(since.Truncate(time.Minute)))
	if err != nil {
		return nil, dbError(err, "read rates")
	}
	rates := make(map[string]mediagate.ChannelCalls, len(rows))
	for _, r := range rows {
		rates[r.Channel] = mediagate.ChannelCalls{Channel: r.Channel, Submits: r.Submits, Failures: r.Failures}
	}
	return rates, nil
}
