package webhook

import (
	"cmp"
	"sync"
	"time"

	"github.com/mediagate/mediagate/outbound"
)

// Bounds of the places of one process.
const (
	// AtOnce is how many attempts may be under way.
	AtOnce = 256
	// silentInARow is after how many attempts in a row without an answer a receiver
	// counts as silent: an account's attempts there then go few at a time.
	silentInARow = 8
	whileSilent  = 4

	maxWaiting = 10_000           // deliveries whose place in a line is kept
	maxLines   = 10_000           // lines that are kept
	keepLine   = 15 * time.Minute // of what is known of a receiver that nothing is sent to
	keepTurn   = time.Minute      // for a delivery that does not come back when it should

	minWait    = time.Second
	maxWait    = time.Minute
	comeBacks  = 20                     // a second, at most, of a line whose deliveries wait for long
	soon       = 10 * time.Second       // who comes back within this is waited for
	firstHold  = 200 * time.Millisecond // of an attempt, before one has ended
	holdWeight = 8                      // attempts that the mean goes by, about
)

// Places bound the attempts under way in this process, so that receivers which
// are slow, or never answer, hold no more than a share of them.
//
// An account may have half as many as are free beside it, and at one receiver
// half of those again; a receiver may have as many as are free, whoever calls it.
// So however many of them are slow, something is left for who comes next. The
// attempts of an account at a receiver that only lets them time out go few at a
// time until one is answered.
//
// Nobody waits here. Who finds no place is told when to come back, and keeps its
// turn: deliveries of one account to one receiver stand in a line by the time at
// which they were due. Places are not safe to copy; the zero value is ready.
type Places struct {
	mu        sync.Mutex
	taken     int
	accounts  map[string]int // attempts under way
	receivers map[string]int
	lines     map[lineKey]*line
	waiting   int // tickets of all lines
	swept     time.Time
}

type lineKey struct{ account, receiver string }

// line is what an account sends to a receiver.
type line struct {
	under   map[*Place]struct{}
	silent  int           // attempts in a row without an answer
	hold    time.Duration // for which an attempt keeps its place, about
	tickets map[string]ticket
	used    time.Time
}

type ticket struct {
	due  time.Time // when it came up first
	back time.Time // when it is to come again
}

func (t ticket) before(o ticket, id, other string) bool {
	return cmp.Or(t.due.Compare(o.due), cmp.Compare(id, other)) < 0
}

// Ask is who wants a place.
type Ask struct {
	Account  string
	URL      string    // of the receiver, who is known by outbound.Receiver
	Delivery string    // any name that is the same when it comes again
	Due      time.Time // since when it could be sent
	Now      time.Time
}

// Place is room for one attempt, until it is left.
type Place struct {
	from  *Places
	key   lineKey
	since time.Time
}

// Receiver tells whose server the attempt is made at.
func (pl *Place) Receiver() string { return pl.key.receiver }

// Wait is what is told to who finds no place.
type Wait struct {
	For    time.Duration
	Under  int  // attempts of the account at the receiver that are under way
	Ahead  int  // deliveries that wait before it
	Silent bool // the receiver does not answer, and is tried few at a time
}

// Take takes a place, or tells when to come again.
func (p *Places) Take(a Ask) (*Place, Wait) {
	key := lineKey{a.Account, outbound.Receiver(a.URL)}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sweep(a.Now)
	l := p.line(key, a.Now)
	mine, known := l.tickets[a.Delivery]
	if !known {
		mine.due = a.Due
	}
	ahead, coming := 0, 0
	for id, t := range l.tickets {
		if id == a.Delivery || !t.before(mine, id, a.Delivery) || t.back.Add(keepTurn).Before(a.Now) {
			continue
		}
		ahead++
		if !t.back.After(a.Now.Add(soon)) {
			coming++
		}
	}
	free := p.room(key, l)
	if free > coming {
		if known {
			delete(l.tickets, a.Delivery)
			p.waiting--
		}
		return p.take(key, l, a.Now), Wait{}
	}
	w := Wait{For: l.wait(ahead+1, free, a.Now), Under: len(l.under), Ahead: ahead, Silent: l.silent >= silentInARow}
	if known || p.waiting < maxWaiting {
		if !known {
			p.waiting++
		}
		mine.back = a.Now.Add(w.For)
		l.tickets[a.Delivery] = mine
	}
	return nil, w
}

// room is how many places the line may take more, as things are. Each that is
// taken leaves less for all.
func (p *Places) room(key lineKey, l *line) int {
	free, account, line, receiver := AtOnce-p.taken, p.accounts[key.account], len(l.under), p.receivers[key.receiver]
	ofAccount := most((free-2*account+2)/3, account) // account < free/2
	ofLine := most((free-2*account-2*line+4)/5, line)
	ofReceiver := most((free-receiver+1)/2, receiver)
	if l.silent >= silentInARow {
		ofLine = min(ofLine, whileSilent-line)
	}
	return max(0, min(free, ofAccount, ofLine, ofReceiver))
}

// most gives everybody one.
func most(more, has int) int {
	if has == 0 {
		return max(1, more)
	}
	return more
}

func (p *Places) take(key lineKey, l *line, now time.Time) *Place {
	if p.accounts == nil {
		p.accounts, p.receivers = make(map[string]int), make(map[string]int)
	}
	place := &Place{from: p, key: key, since: now}
	l.under[place] = struct{}{}
	p.taken++
	p.accounts[key.account]++
	p.receivers[key.receiver]++
	return place
}

// wait is when the nth of the line finds a place, about: each time that an
// attempt ends there is one.
func (l *line) wait(n, free int, now time.Time) time.Duration {
	hold := l.hold
	if hold == 0 {
		hold = firstHold
	}
	for place := range l.under { // what takes long is known before it has ended
		hold = max(hold, now.Sub(place.since))
	}
	atOnce := max(1, len(l.under)+free)
	if l.silent >= silentInARow {
		atOnce = whileSilent
	}
	about := time.Duration(n) * hold / time.Duration(atOnce)
	longest := max(maxWait, time.Duration(n)*time.Second/comeBacks)
	return min(max(about, minWait), longest)
}

// Leave gives the place back without a word about the receiver. It may be called
// again, and after Ended.
func (pl *Place) Leave(now time.Time) {
	p := pl.from
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leave(pl, now)
}

// Ended gives the place back after an attempt that took until now. It tells
// whether the receiver begins with it to count as silent.
func (pl *Place) Ended(silent bool, now time.Time) (fellSilent bool) {
	p := pl.from
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.leave(pl, now)
	if l == nil {
		return false
	}
	took, was := max(time.Millisecond, now.Sub(pl.since)), l.silent
	l.silent++
	if !silent {
		l.silent = 0
	}
	if l.hold == 0 || was >= silentInARow && !silent { // what was learned of silence says nothing any more
		l.hold = took
	}
	l.hold += (took - l.hold) / holdWeight
	return l.silent == silentInARow
}

// leave takes the place out of the books, unless it is left already.
func (p *Places) leave(pl *Place, now time.Time) *line {
	l := p.lines[pl.key]
	if l == nil {
		return nil
	}
	if _, ok := l.under[pl]; !ok {
		return nil
	}
	delete(l.under, pl)
	p.taken--
	less(p.accounts, pl.key.account)
	less(p.receivers, pl.key.receiver)
	l.used = now
	return l
}

func less(m map[string]int, key string) {
	if m[key]--; m[key] <= 0 {
		delete(m, key)
	}
}

func (p *Places) line(key lineKey, now time.Time) *line {
	if p.lines == nil {
		p.lines = make(map[lineKey]*line)
	}
	l := p.lines[key]
	if l == nil {
		if len(p.lines) >= maxLines {
			p.drop(now, 0)
		}
		l = &line{under: make(map[*Place]struct{}), tickets: make(map[string]ticket)}
		p.lines[key] = l
	}
	l.used = now
	return l
}

// sweep forgets, once a minute, those that did not come back, and lines that
// nobody uses.
func (p *Places) sweep(now time.Time) {
	if now.Sub(p.swept) < time.Minute {
		return
	}
	p.swept = now
	p.drop(now, keepLine)
}

func (p *Places) drop(now time.Time, unused time.Duration) {
	for key, l := range p.lines {
		for id, t := range l.tickets {
			if t.back.Add(keepTurn).Before(now) {
				delete(l.tickets, id)
				p.waiting--
			}
		}
		if len(l.under) == 0 && len(l.tickets) == 0 && now.Sub(l.used) >= unused {
			delete(p.lines, key)
		}
	}
}
