package storage_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
)

// channelState is what is known of the suite's channel.
func (b *bench) channelState() mediagate.ChannelState {
	b.Helper()
	states := must(b.ChannelStates(b.Context()))
	for _, s := range states {
		if s.Name == channelName {
			return s
		}
	}
	b.Fatalf("no channel %s among %+v", channelName, states)
	return mediagate.ChannelState{}
}

func (b *bench) trip(began time.Time) (mediagate.ChannelState, bool) {
	b.Helper()
	state, tripped := must2(b.TripBreaker(b.Context(), mediagate.Trip{
		Channel: channelName, Reason: mediagate.ParkFunds, Began: began, OpenFor: 30 * time.Second,
	}))
	return state, tripped
}

func (b *bench) probe(token string) bool {
	b.Helper()
	_, claimed := must2(b.ClaimProbe(b.Context(), channelName, token, time.Minute))
	return claimed
}

func TestBreakerFacts(t *testing.T) {
	t.Parallel()
	prove(t, facts{
		"a channel that a worker has takes jobs": func(b *bench) {
			b.noError(b.SeenChannel(b.Context(), []string{channelName}))
			same(b, "state", b.channelState(), mediagate.ChannelState{Name: channelName, Enabled: true, LastSeenAt: b.now()})
			same(b, "takes jobs", b.channelState().TakesJobs(b.now()), true)
		},
		"a breaker opens once, whoever finds the reason": func(b *bench) {
			var opened atomic.Int64
			b.race(6, func(int) {
				_, tripped, err := b.TripBreaker(b.Context(), mediagate.Trip{
					Channel: channelName, Reason: mediagate.ParkFunds, Began: b.now(), OpenFor: 30 * time.Second,
				})
				if err != nil {
					b.Errorf("trip: %v", err)
				}
				if tripped {
					opened.Add(1)
				}
			})
			same(b, "opened", opened.Load(), 1)
			same(b, "state", b.channelState(), mediagate.ChannelState{
				Name: channelName, Enabled: true, Open: true, Reason: mediagate.ParkFunds, ChangedAt: b.now(), Trips: 1, ProbeAt: b.now().Add(30 * time.Second),
			})
			same(b, "takes jobs", b.channelState().TakesJobs(b.now()), false)
		},
		"of many processes one gets the probe": func(b *bench) {
			b.trip(b.now())
			b.pass(30*time.Second - time.Microsecond)
			same(b, "too early", b.probe("early"), false)
			b.pass(time.Microsecond)
			var claimed atomic.Int64
			b.race(8, func(i int) {
				_, mine := must2(b.ClaimProbe(b.Context(), channelName, fmt.Sprint("p", i), time.Minute))
				if mine {
					claimed.Add(1)
				}
			})
			same(b, "claimed", claimed.Load(), 1)
			same(b, "others wait", b.channelState().TakesJobs(b.now()), false)
		},
		"a prober that died does not keep the channel shut": func(b *bench) {
			b.trip(b.now())
			b.pass(30 * time.Second)
			same(b, "claimed", b.probe("dead"), true)
			b.pass(time.Minute - time.Microsecond)
			same(b, "within the lease", b.probe("alive"), false)
			b.pass(time.Microsecond)
			same(b, "after it", b.probe("alive"), true)
			_, closed := must2(b.CloseBreaker(b.Context(), channelName, "dead"))
			same(b, "the late one's word", closed, false)
		},
		"a probe that succeeds closes": func(b *bench) {
			b.trip(b.now())
			b.pass(30 * time.Second)
			b.probe("p")
			b.pass(time.Second)
			state, closed := must2(b.CloseBreaker(b.Context(), channelName, "p"))
			same(b, "closed", closed, true)
			same(b, "state", state, mediagate.ChannelState{Name: channelName, Enabled: true, ChangedAt: b.now()})
			_, closed = must2(b.CloseBreaker(b.Context(), channelName, "p"))
			same(b, "again", closed, false)
			same(b, "nothing to claim", b.probe("q"), false)
		},
		"nobody closes without a probe": func(b *bench) {
			b.trip(b.now())
			_, closed := must2(b.CloseBreaker(b.Context(), channelName, "stranger"))
			same(b, "closed", closed, false)
		},
		"a probe that fails opens anew": func(b *bench) {
			b.trip(b.now())
			since := b.now()
			b.pass(30 * time.Second)
			b.probe("p")
			state, reopened := must2(b.ReopenBreaker(b.Context(), channelName, "p", mediagate.ParkProviderAway, time.Minute))
			same(b, "reopened", reopened, true)
			same(b, "state", state, mediagate.ChannelState{
				Name: channelName, Enabled: true, Open: true, Reason: mediagate.ParkProviderAway, ChangedAt: since, Trips: 2, ProbeAt: b.now().Add(time.Minute),
			})
			_, reopened = must2(b.ReopenBreaker(b.Context(), channelName, "p", mediagate.ParkProviderAway, time.Minute))
			same(b, "again", reopened, false)
			b.pass(time.Minute)
			same(b, "the next", b.probe("q"), true)
		},
		"a probe that came to nothing is given back": func(b *bench) {
			b.trip(b.now())
			b.pass(30 * time.Second)
			b.probe("p")
			_, released := must2(b.ReleaseProbe(b.Context(), channelName, "p"))
			same(b, "released", []any{released, b.channelState().ProbeDue(b.now())}, []any{true, true})
			same(b, "the next", b.probe("q"), true)
			_, released = must2(b.ReleaseProbe(b.Context(), channelName, "p"))
			same(b, "another's", released, false)
		},
		"what began before a change is old news": func(b *bench) {
			began := b.now()
			b.pass(time.Second)
			must(b.EnableChannel(b.Context(), channelName, true))
			_, tripped := b.trip(began)
			same(b, "tripped", tripped, false)
			_, tripped = b.trip(b.now())
			same(b, "by what began later", tripped, true)
		},
		"an operator takes a channel out and in": func(b *bench) {
			state := must(b.EnableChannel(b.Context(), channelName, false))
			same(b, "disabled", state, mediagate.ChannelState{Name: channelName, ChangedAt: b.now()})
			same(b, "takes jobs", state.TakesJobs(b.now()), false)
			since := b.now()
			b.pass(time.Minute)
			state = must(b.EnableChannel(b.Context(), channelName, false))
			same(b, "again", state.ChangedAt, since)
			state = must(b.EnableChannel(b.Context(), channelName, true))
			same(b, "enabled", state, mediagate.ChannelState{Name: channelName, Enabled: true, ChangedAt: b.now()})
		},
		"to enable a channel closes its breaker": func(b *bench) {
			b.trip(b.now())
			b.pass(30 * time.Second)
			b.probe("p")
			state := must(b.EnableChannel(b.Context(), channelName, true))
			same(b, "state", state, mediagate.ChannelState{Name: channelName, Enabled: true, ChangedAt: b.now()})
			_, reopened := must2(b.ReopenBreaker(b.Context(), channelName, "p", mediagate.ParkFunds, time.Minute))
			same(b, "the old probe's word", reopened, false)
		},
		"a retired model keeps jobs from its route, and from no other, until its time is over": func(b *bench) {
			b.noError(b.SeenChannel(b.Context(), []string{channelName}))
			first := b.now().Add(time.Hour)
			must(b.RetireModel(b.Context(), channelName, "m1", b.now(), time.Hour))
			b.pass(time.Minute)
			state := must(b.RetireModel(b.Context(), channelName, "m2", b.now(), time.Hour))
			same(b, "both", state.Retired, map[string]time.Time{"m1": first, "m2": b.now().Add(time.Hour)})
			same(b, "stored", b.channelState(), state)
			retired := func() []bool {
				state := b.channelState()
				return []bool{state.HasRetired("m1", b.now()), state.HasRetired("m2", b.now()), state.HasRetired("m3", b.now())}
			}
			same(b, "within the hour", retired(), []bool{true, true, false})
			same(b, "takes jobs", state.TakesJobs(b.now()), true)
			b.pass(59 * time.Minute)
			same(b, "after it", retired(), []bool{false, true, false})
			state = must(b.RetireModel(b.Context(), channelName, "m3", b.now(), time.Hour))
			same(b, "what is over is forgotten", len(state.Retired), 2)
		},
		"of models that are retired at once none is lost": func(b *bench) {
			b.race(6, func(i int) {
				if _, err := b.RetireModel(b.Context(), channelName, fmt.Sprint("m", i), b.now(), time.Hour); err != nil {
					b.Errorf("retire: %v", err)
				}
			})
			same(b, "retired", len(b.channelState().Retired), 6)
		},
		"to enable a channel opens the routes of its retired models, and a probe does not": func(b *bench) {
			must(b.RetireModel(b.Context(), channelName, "m1", b.now(), time.Hour))
			b.trip(b.now())
			b.pass(30 * time.Second)
			b.probe("p")
			state, _ := must2(b.CloseBreaker(b.Context(), channelName, "p"))
			same(b, "after a probe", state.HasRetired("m1", b.now()), true)
			state = must(b.EnableChannel(b.Context(), channelName, true))
			same(b, "enabled", state.HasRetired("m1", b.now()), false)
			same(b, "stored", b.channelState().HasRetired("m1", b.now()), false)
		},
		"a call from before an operator enabled the channel retires no model": func(b *bench) {
			began := b.now()
			b.pass(time.Second)
			must(b.EnableChannel(b.Context(), channelName, true))
			b.pass(time.Second)
			state := must(b.RetireModel(b.Context(), channelName, "m1", began, time.Hour))
			same(b, "of the call", state.HasRetired("m1", b.now()), false)
			same(b, "stored", b.channelState(), state)
			must(b.RetireModel(b.Context(), channelName, "m1", b.now(), time.Hour))
			same(b, "of a later call", b.channelState().HasRetired("m1", b.now()), true)
		},
		"a disabled channel is not probed": func(b *bench) {
			b.trip(b.now())
			must(b.EnableChannel(b.Context(), channelName, false))
			b.pass(time.Hour)
			same(b, "claimed", b.probe("p"), false)
		},
		"being seen changes nothing of a breaker": func(b *bench) {
			before, _ := b.trip(b.now())
			b.noError(b.SeenChannel(b.Context(), []string{channelName}))
			must(b.BeginEpoch(b.Context(), channelName))
			before.LastSeenAt = b.now()
			same(b, "state", b.channelState(), before)
		},
		"calls add up over processes, and the last error stays": func(b *bench) {
			b.noError(b.SeenChannel(b.Context(), []string{channelName}))
			minute := b.now()
			calls := func(submits, failures int, at time.Time, word string) mediagate.ChannelCalls {
				c := mediagate.ChannelCalls{Channel: channelName, Minute: at, Submits: submits, Failures: failures, LastError: word}
				if word != "" {
					c.LastErrorAt = at
				}
				return c
			}
			b.noError(b.CountCalls(b.Context(), nil))
			b.noError(b.CountCalls(b.Context(), []mediagate.ChannelCalls{calls(10, 2, minute, "ambiguous")}))
			b.noError(b.CountCalls(b.Context(), []mediagate.ChannelCalls{calls(5, 0, minute.Add(-2*time.Minute), "unreached"), calls(1, 1, minute.Add(time.Second), "")}))
			rates := must(b.ChannelRates(b.Context(), minute.Add(-5*time.Minute)))
			same(b, "rates", rates, map[string]mediagate.ChannelCalls{channelName: {Channel: channelName, Submits: 16, Failures: 3}})
			same(b, "last error", []any{b.channelState().LastError, b.channelState().LastErrorAt}, []any{"ambiguous", minute})
			rates = must(b.ChannelRates(b.Context(), minute.Add(-time.Minute)))
			same(b, "of the last minute", rates[channelName].Submits, 11)
		},
	})
}
