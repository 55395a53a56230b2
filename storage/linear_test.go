package storage_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/storage"
	"github.com/mediagate/mediagate/storage/pgtest"
	"github.com/mediagate/mediagate/task"
)

// balance is an account as its clients see it.
type balance struct{ available, held, spent mediagate.Micros }

// deed is what a client did: what it moved from available to held and from held
// to spent and back, or a look.
type deed struct {
	what   string // grant, submit, settle or read
	amount mediagate.Micros
	cost   mediagate.Micros // of a settle
}

// answer is what came of it.
type answer struct {
	refused bool
	balance balance // of a read
}

// account is a balance on which each deed takes effect at one moment.
var account = porcupine.Model{
	Init: func() any { return balance{} },
	Step: func(state, input, output any) (bool, any) {
		b, d, a := state.(balance), input.(deed), output.(answer)
		switch d.what {
		case "grant":
			if a.refused {
				return b.available+d.amount < 0, b
			}
			b.available += d.amount
			return b.available >= 0, b
		case "submit":
			if a.refused {
				return b.available < d.amount, b
			}
			b.available -= d.amount
			b.held += d.amount
			return b.available >= 0, b
		case "settle":
			b.held -= d.amount
			b.spent += d.cost
			b.available += d.amount - d.cost
			return true, b
		default:
			return a.balance == b, b
		}
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v → %+v", input, output) },
}

// Whatever clients of one account do at once, there is an order in which each
// deed takes effect while its call runs, and in which all answers are true.
func TestBalanceIsLinearizable(t *testing.T) {
	t.Parallel()
	const clients, deeds = 8, 40
	s := openPostgres(t, pgtest.New(t), storage.Config{})
	p := benchOf(t, s).newPayer(0)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	began := time.Now()
	var group sync.WaitGroup
	histories := make([][]porcupine.Operation, clients)
	for i := range clients {
		group.Go(func() {
			c := &client{bench: benchOf(t, s), payer: p, name: fmt.Sprint(i), dice: rand.New(rand.NewPCG(seed, uint64(i)))}
			for range deeds {
				call := time.Since(began).Nanoseconds()
				input, output := c.act()
				histories[i] = append(histories[i], porcupine.Operation{
					ClientId: i, Input: input, Call: call, Output: output, Return: time.Since(began).Nanoseconds(),
				})
			}
		})
	}
	group.Wait()
	var all []porcupine.Operation
	for _, history := range histories {
		all = append(all, history...)
	}
	if !t.Failed() && !porcupine.CheckOperations(account, all) {
		t.Errorf("there is no such order of\n%+v", all)
	}
}

// client is one who uses the account, one call after the other.
type client struct {
	*bench
	payer
	name string
	dice *rand.Rand
	n    int
	open []mediagate.NewTask
}

func (c *client) act() (deed, answer) {
	c.n++
	id := fmt.Sprintf("%s_%d", c.name, c.n)
	amount := mediagate.Micros(1 + c.dice.Int64N(9))
	switch roll := c.dice.IntN(10); {
	case roll == 0:
		amount := mediagate.Micros(c.dice.Int64N(24) - 6)
		if amount == 0 {
			amount = 1
		}
		_, _, _, err := c.Grant(c.Context(), c.account, amount, id)
		return deed{what: "grant", amount: amount}, answer{refused: c.refused(err, mediagate.KindConflict)}
	case roll < 5:
		n := c.named(c.payer, "task_"+id)
		n.Task.Type, n.Task.Hold = mediagate.TypeImage, amount
		n.Task.Charges = []mediagate.Charge{{Unit: mediagate.UnitImage, Quantity: int64(amount), UnitPrice: 1}}
		_, _, err := c.Submit(c.Context(), n)
		refused := c.refused(err, mediagate.KindPayment)
		if !refused {
			c.open = append(c.open, n)
		}
		return deed{what: "submit", amount: amount}, answer{refused: refused}
	case roll < 8 && len(c.open) > 0:
		ends := c.open[0].Task
		c.open = c.open[1:]
		var files []mediagate.Result
		how := cancelled(ends.ID)
		if c.dice.IntN(3) == 0 {
			files = slices.Repeat([]mediagate.Result{{Role: mediagate.RoleMain}}, c.dice.IntN(int(ends.Hold)+1))
			sent := intentOf(ends.ID, 1, c.now())
			taken := task.Accepted{Sending: sent.Sending, Submission: mediagate.Submission{Outcome: &mediagate.Outcome{Succeeded: true}}}
			how.events = []task.Event{sent, taken, task.Mirrored{N: 1, Results: files}}
		}
		if _, err := c.Change(c.Context(), ends.ID, how.events...); err != nil {
			c.Errorf("settle: %v", err)
		}
		return deed{what: "settle", amount: ends.Hold, cost: mediagate.Micros(len(files))}, answer{}
	default:
		a, err := c.Account(c.Context(), c.account)
		if err != nil {
			c.Errorf("read: %v", err)
		}
		return deed{what: "read"}, answer{balance: balance{a.Available, a.Held, a.Spent}}
	}
}

// refused tells whether the call was refused for that reason; no other may be.
func (c *client) refused(err error, kind mediagate.Kind) bool {
	if err != nil && !mediagate.Is(err, kind) {
		c.Errorf("%v", err)
	}
	return err != nil
}
