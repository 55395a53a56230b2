package storage

import (
	"context"
	"errors"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
)

// A pass over accounts and keys makes the events balance.low and key.quota_low, every few seconds.
// The statements that move money do not make them, so that a submit stays one short statement. The
// pass compares balances and used amounts with the marks of the pass before, so each crossing makes
// one event. A crossing that is undone before the next pass makes none.

// NoteCrossings stores the events of balances and keys that have crossed a bound since the last
// call. Several processes may call it at the same time: the transaction that moves a mark
// stores the event, and only one of them moves it (ADR 19). An error of one account or key does
// not delay the events of the rest.
func (s *Store) NoteCrossings(ctx context.Context) error {
	return errors.Join(s.noteBalances(ctx), s.noteKeys(ctx))
}

// beginWatch sets the marks of an account when an endpoint subscribes to an event about money,
// so that only later crossings make events. The parameters are the endpoint before the change
// and after it. For a new endpoint the first is zero.
//
// Example: an account has 3.00 available. An endpoint with a balance_low of 5.00 is added: its
// mark says "below" at once, and there is no event. The account gets 10.00, and the next pass
// clears the mark. When the balance falls to 4.00, there is an event.
func (s *Store) beginWatch(tx *gorm.DB, was, is mediagate.Endpoint) error {
	if is.Wants(mediagate.EventBalanceLow) && is.BalanceLow != nil {
		// A change of other settings leaves the mark, so that a crossing since the last pass is
		// kept.
		same := was.Wants(mediagate.EventBalanceLow) && was.BalanceLow != nil && *was.BalanceLow == *is.BalanceLow
		if !same {
			const note = `UPDATE endpoints
				SET below_balance = balance_low > (SELECT available FROM accounts WHERE accounts.id = account_id)
				WHERE id = ?`
			if _, err := exec(tx, note, is.ID); err != nil {
				return err
			}
		}
	}
	// The marks of keys belong to the account, not to the endpoint.
	if was.Wants(mediagate.EventKeyQuotaLow) || !is.Wants(mediagate.EventKeyQuotaLow) {
		return nil
	}
	other, err := one[struct{ ID string }](tx, "SELECT id FROM endpoints WHERE account_id = ? AND id <> ? AND "+
		wantsEvent+" LIMIT 1", is.AccountID, is.ID, wanted(mediagate.EventKeyQuotaLow))
	if err != nil || other != nil { // the marks are up to date
		return err
	}
	// This is the account's first endpoint for the event, or the first after a pause. No pass has
	// kept the marks up to date, so they are set here, without events.
	crossings, err := s.keyCrossings(tx, []string{is.AccountID})
	if err != nil {
		return err
	}
	for _, c := range crossings {
		if _, err := c.mark(tx); err != nil {
			return err
		}
	}
	return nil
}

// balanceLow is the data of the event balance.low. Amounts are decimal texts, as in the API.
type balanceLow struct {
	Account    string `json:"account"`
	Available  string `json:"available"`
	BalanceLow string `json:"balance_low"`
}

// noteBalances finds accounts whose balance has fallen below the amount of an endpoint, or has
// risen above it again, and stores an event for each that has fallen.
//
// The first statement locks nothing, and finds only endpoints whose mark is out of date. Each
// mark is then moved in a transaction of its own.
func (s *Store) noteBalances(ctx context.Context) (err error) {
	var rows []struct {
		ID         string
		AccountID  string
		BalanceLow mediagate.Micros
		Available  mediagate.Micros
	}
	if err := read(s.on(ctx), &rows, `SELECT e.id, e.account_id, e.balance_low, a.available
		FROM endpoints e JOIN accounts a ON a.id = e.account_id
		WHERE e.balance_low IS NOT NULL AND e.below_balance <> (a.available < e.balance_low) AND e.`+wantsEvent,
		wanted(mediagate.EventBalanceLow)); err != nil {
		return dbError(err, "look for low balances")
	}
	for _, r := range rows {
		below, now := r.Available < r.BalanceLow, s.clock()
		body, failed := mediagate.EventBody(mediagate.EventBalanceLow, now,
			balanceLow{r.AccountID, r.Available.String(), r.BalanceLow.String()})
		if failed != nil {
			err = errors.Join(err, failed)
			continue
		}
		e := outgoing{id: s.newID(mediagate.EventPrefix), kind: mediagate.EventBalanceLow, body: body, at: now}
		err = errors.Join(err, s.write(ctx, "note a low balance", func(tx *gorm.DB) error {
			// No row matches if another process has moved the mark, or if the amount was changed
			// since. In the second case UpdateEndpoint has set the mark anew. A rise moves the mark
			// without an event.
			crossed, err := exec(tx, `UPDATE endpoints SET below_balance = ?
				WHERE id = ? AND below_balance <> ? AND balance_low = ?`, below, r.ID, below, r.BalanceLow)
			if err != nil || crossed == 0 || !below {
				return err
			}
			// The endpoint may have been disabled or changed since it was read, so it is checked
			// again.
			return addEvent(tx, e, "id = ? AND "+wantsEvent, r.ID, wanted(e.kind))
		}))
	}
	return err
}

// keyPercents are the percentages of a quota or a cap that make an event when they are used.
var keyPercents = [...]int{80, 100}

// percentUsed returns the highest of keyPercents that is reached, or 0 if none is. For a limit
// of zero it returns 0. The limit less a fifth is 80 % of it, without the overflow that a
// multiplication could cause. Example: of a limit of 10.00, 8.00 used give 80, and 7.99 give 0.
func percentUsed(used, limit mediagate.Micros) int {
	switch {
	case limit <= 0 || used < limit-limit/5:
		return 0
	case used < limit:
		return keyPercents[0]
	default:
		return keyPercents[1]
	}
}

// keyMark is a row of key_marks: how much of a quota or a cap was used at the last pass.
type keyMark struct {
	KeyID string
	// Bound is "quota", or the name of the cap's period. Began is when that period began, in Unix
	// seconds, and 0 for the quota, which has no period. Percent is 0, 80 or 100.
	Bound   string
	Began   int64
	Percent int
}

// keyCrossing is a quota or a cap of a key whose used percentage differs from its mark.
type keyCrossing struct {
	key     keyRow
	was, is keyMark
	// limit is 0 for no limit.
	limit, used mediagate.Micros
	ends        time.Time // of the cap's period
}

// mark stores the used percentage. It returns false if another process has stored it already.
//
// The UPDATE matches only if the mark still is the one that the crossing was computed from. Of
// two processes that see the same crossing, one stores the mark and its event, and the other
// gets false. A first mark is inserted; a second insert of it conflicts, and does not match
// either.
func (c keyCrossing) mark(tx *gorm.DB) (first bool, err error) {
	stored, err := exec(tx, `INSERT INTO key_marks (key_id, bound, began, percent) VALUES (?, ?, ?, ?)
		ON CONFLICT (key_id, bound) DO UPDATE SET began = excluded.began, percent = excluded.percent
		WHERE key_marks.began = ? AND key_marks.percent = ?`,
		c.is.KeyID, c.is.Bound, c.is.Began, c.is.Percent, c.was.Began, c.was.Percent)
	return stored > 0, err
}

// passed returns the percentages that were crossed upwards. A mark of an earlier period of a
// cap does not count. Example: a key jumps from 70 to 100 % between two passes. Both 80 and 100
// are crossed, and there are two events.
func (c keyCrossing) passed() (percents []int) {
	for _, p := range keyPercents {
		if (c.was.Percent < p || c.was.Began != c.is.Began) && p <= c.is.Percent {
			percents = append(percents, p)
		}
	}
	return percents
}

// crossingsOf compares a key's quota and caps with its marks. It returns those whose mark must
// move, upwards or downwards.
func crossingsOf(row keyRow, marks map[string]keyMark, now time.Time) (crossings []keyCrossing) {
	quota := keyCrossing{limit: row.Quota, used: row.Held + row.Spent, is: keyMark{Bound: "quota"}}
	// For the limit 0, percentUsed returns 0.
	if row.Unlimited {
		quota.limit = 0
	}
	all := []keyCrossing{quota}
	for _, p := range periods {
		began := p.start(now)
		// If the clock was set back, the period that was counted last goes on.
		if counted, _ := row.counted(p); counted.After(began.Time) {
			began = counted
		}
		c := keyCrossing{used: p.used(row, now), ends: p.end(row, now)}
		c.is = keyMark{Bound: p.name, Began: began.Unix()}
		if limit := row.limit(p); limit != nil {
			c.limit = *limit
		}
		all = append(all, c)
	}
	for _, c := range all {
		c.key, c.was = row, marks[c.is.Bound]
		c.is.KeyID, c.is.Percent = row.ID, percentUsed(c.used, c.limit)
		if c.is.Began > 0 && c.was.Began == c.is.Began { // at most one event of a cap in each period
			c.is.Percent = max(c.is.Percent, c.was.Percent)
		}
		// A cap of which little is used needs no new mark for each new period.
		same := c.was.Percent == c.is.Percent && (c.was.Began == c.is.Began || c.is.Percent == 0)
		if !same {
			crossings = append(crossings, c)
		}
	}
	return crossings
}

// nearLimit is the condition that a key q has used at least 80 % of its quota or of a cap, or
// has a mark that says so. It keeps the pass from reading the other keys. The second part finds
// keys whose mark must go down, for example after a quota was raised. A cap's used amount may
// be of an earlier period here; crossingsOf sorts that out.
var nearLimit = func() string {
	near := []string{"NOT q.unlimited AND q.held + q.spent >= q.quota - q.quota / 5"}
	for _, p := range periods {
		near = append(near, strings.ReplaceAll("q.@_used >= q.cap_@ - q.cap_@ / 5", "@", p.name))
	}
	return "(" + strings.Join(near, " OR ") +
		" OR EXISTS (SELECT 1 FROM key_marks m WHERE m.key_id = q.id AND m.percent > 0))"
}()

// keyCrossings compares the keys of accounts with their marks. Keys of one rotation count as
// one key, whose limits are in the row of the first.
//
// A key whose quota_id is set has its limits in another row, and is left out. A deleted first
// key still counts while one of its successors is not deleted. The index keys_account finds the
// keys of an account.
func (s *Store) keyCrossings(db *gorm.DB, accounts []string) (crossings []keyCrossing, err error) {
	list, err := jsonText(accounts)
	if err != nil {
		return nil, err
	}
	rows, err := readKeys(db, `k.quota_id IS NULL AND k.account_id IN `+s.inList()+` AND `+nearLimit+`
		AND (k.deleted_at IS NULL OR EXISTS (SELECT 1 FROM keys o WHERE o.quota_id = k.id AND o.deleted_at IS NULL))`,
		list)
	if err != nil {
		return nil, err
	}
	var marks []keyMark
	if err := read(db, &marks, `SELECT m.key_id, m.bound, m.began, m.percent
		FROM key_marks m JOIN keys k ON k.id = m.key_id WHERE k.account_id IN `+s.inList(), list); err != nil {
		return nil, err
	}
	byKey := map[string]map[string]keyMark{}
	for _, m := range marks {
		if byKey[m.KeyID] == nil {
			byKey[m.KeyID] = map[string]keyMark{}
		}
		byKey[m.KeyID][m.Bound] = m
	}
	now := s.clock()
	for _, row := range rows {
		crossings = append(crossings, crossingsOf(row, byKey[row.ID], now)...)
	}
	return crossings, nil
}

// noteKeys finds keys that have reached 80 or 100 percent of their quota or of a cap, and
// stores the events. Only accounts with an endpoint for the event are searched.
func (s *Store) noteKeys(ctx context.Context) (err error) {
	var accounts []struct{ ID string }
	if err := read(s.on(ctx), &accounts, "SELECT DISTINCT account_id FROM endpoints WHERE "+wantsEvent,
		wanted(mediagate.EventKeyQuotaLow)); err != nil || len(accounts) == 0 {
		return dbError(err, "look for used quotas")
	}
	crossings, err := s.keyCrossings(s.on(ctx), convert(accounts, func(a struct{ ID string }) string { return a.ID }))
	if err != nil {
		return dbError(err, "look for used quotas")
	}
	for _, c := range crossings {
		err = errors.Join(err, s.write(ctx, "note a used quota", func(tx *gorm.DB) error {
			// The mark and its events are stored together, or neither.
			first, err := c.mark(tx)
			if err != nil || !first {
				return err
			}
			return s.addCrossingEvents(tx, c)
		}))
	}
	return err
}

// quotaLow is the data of the event key.quota_low.
type quotaLow struct {
	Key      string `json:"key"`
	Name     string `json:"name"`
	Limit    string `json:"limit"` // quota, day, week or month
	Percent  int    `json:"percent"`
	Amount   string `json:"amount"`
	Used     string `json:"used"`
	ResetsAt *int64 `json:"resets_at"` // of a cap
}

// addCrossingEvents stores the events of a crossing. They name the newest live key of those
// that share the limit. If no key is live, there is no event. Every endpoint of the account
// that subscribes to the event gets it.
func (s *Store) addCrossingEvents(tx *gorm.DB, c keyCrossing) error {
	percents := c.passed()
	if len(percents) == 0 {
		return nil
	}
	now := s.clock()
	keys, err := readKeys(tx, "q.id = ? AND "+liveKey+" ORDER BY k.id DESC LIMIT 1", c.key.ID, at(now))
	if err != nil || len(keys) == 0 {
		return err
	}
	for _, percent := range percents {
		data := quotaLow{
			Key:     keys[0].ID,
			Name:    keys[0].Name,
			Limit:   c.is.Bound,
			Percent: percent,
			Amount:  c.limit.String(),
			Used:    c.used.String(),
		}
		// A quota has no period, and is never reset.
		if c.is.Began > 0 {
			data.ResetsAt = unix(at(c.ends))
		}
		body, err := mediagate.EventBody(mediagate.EventKeyQuotaLow, now, data)
		if err != nil {
			return err
		}
		e := outgoing{id: s.newID(mediagate.EventPrefix), kind: mediagate.EventKeyQuotaLow, body: body, at: now}
		if err := addEvent(tx, e, "account_id = ? AND "+wantsEvent, c.key.AccountID, wanted(e.kind)); err != nil {
			return err
		}
	}
	return nil
}
