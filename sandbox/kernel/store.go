package kernel

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// The reasons for which the store takes no job.
var (
	errDuplicate = errors.New("sandbox: the external id is in use")
	errBusy      = errors.New("sandbox: the account's slots are taken")
)

// The kinds of calls.
const (
	CallSubmit   = "submit"
	CallPoll     = "poll"
	CallList     = "list"
	CallDownload = "download"
	CallCancel   = "cancel"
	CallOther    = "other"
)

// call is one request to a vendor or for a file, without anything secret.
type call struct {
	At         time.Time `json:"at"`
	Provider   string    `json:"provider"`
	Kind       string    `json:"kind"`
	Method     string    `json:"method"`
	Path       string    `json:"path"`
	Status     int       `json:"status"` // 0: no answer was given
	Job        string    `json:"job,omitempty"`
	ExternalID string    `json:"external_id,omitempty"`
	Made       bool      `json:"made,omitempty"` // this submit made the job
}

// counters are a job's calls.
type counters struct {
	Submit   int `json:"submit"`
	Poll     int `json:"poll"`
	Download int `json:"download"`
	Cancel   int `json:"cancel"`
}

func (c *counters) add(kind string) int {
	n := new(int)
	switch kind {
	case CallSubmit:
		n = &c.Submit
	case CallPoll:
		n = &c.Poll
	case CallDownload:
		n = &c.Download
	case CallCancel:
		n = &c.Cancel
	}
	*n++
	return *n
}

// arranged is a directive that waits for the next job of a vendor.
type arranged struct {
	ID        string    `json:"id"`
	Provider  string    `json:"provider"`
	Directive Directive `json:"directive"`
}

// line is one line of the journal.
type line struct {
	Job   *Job      `json:"job,omitempty"`
	Call  *call     `json:"call,omitempty"`
	Next  *arranged `json:"next,omitempty"`
	Taken string    `json:"taken,omitempty"` // id of an arranged directive that was used

	Outage *outage `json:"outage,omitempty"`
}

const journalName = "sandbox.jsonl"

// store keeps jobs and calls in an append-only journal. A line is handed to
// the kernel before the request that caused it is answered, so what a caller
// has seen survives the death of this process. Memory holds the jobs; calls
// are read from the file.
type store struct {
	path string
	keep int // jobs that are kept, however long ago they ended

	mu         sync.Mutex
	file       *os.File
	order      []*Job
	trimAt     int // jobs in memory at which old ones are looked for
	forgotten  int // jobs that only the journal has still
	byID       map[string]*Job
	byExternal map[externalKey]*Job
	calls      map[string]*counters
	next       []arranged
	outages    []outage
}

type externalKey struct{ provider, account, external string }

func openStore(dir string, keep int) (*store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("sandbox: make folder: %w", err)
	}
	path := filepath.Join(dir, journalName)
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("sandbox: open journal: %w", err)
	}
	st := &store{path: path, keep: keep, file: file}
	st.reset()
	err = st.load()
	if err == nil {
		err = st.compact()
	}
	if err != nil {
		_ = st.file.Close()
		return nil, err
	}
	return st, nil
}

func (st *store) reset() {
	st.order, st.next, st.outages = nil, nil, nil
	st.trimAt, st.forgotten = 2*st.keep, 0
	st.byID, st.byExternal, st.calls = map[string]*Job{}, map[externalKey]*Job{}, map[string]*counters{}
}

// load replays the journal. A last line without its end was cut by a crash:
// its request had no answer yet, so it is dropped.
func (st *store) load() error {
	whole, err := eachLine(st.file, func(raw []byte) error {
		var l line
		if err := json.Unmarshal(raw, &l); err != nil {
			return fmt.Errorf("sandbox: journal: %w", err)
		}
		st.apply(l)
		return nil
	})
	if err != nil {
		return err
	}
	if err := st.file.Truncate(whole); err != nil {
		return fmt.Errorf("sandbox: mend journal: %w", err)
	}
	return nil
}

// eachLine calls f with every whole line and returns how many bytes they are.
func eachLine(r io.Reader, f func([]byte) error) (int64, error) {
	in := bufio.NewReaderSize(r, 64<<10)
	var whole int64
	for {
		raw, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return whole, nil
		}
		if err != nil {
			return whole, fmt.Errorf("sandbox: read journal: %w", err)
		}
		if err := f(raw); err != nil {
			return whole, err
		}
		whole += int64(len(raw))
	}
}

func (st *store) apply(l line) {
	if l.Job != nil {
		st.index(l.Job)
	}
	if l.Call != nil && !l.Call.Made {
		if c := st.calls[l.Call.Job]; c != nil {
			c.add(l.Call.Kind)
		}
	}
	if l.Next != nil {
		st.next = append(st.next, *l.Next)
	}
	if l.Taken != "" {
		st.drop(l.Taken)
	}
	if l.Outage != nil {
		st.setOutage(*l.Outage)
	}
}

// index adds a job, or puts the changed copy in the place of the older one.
func (st *store) index(j *Job) {
	if old := st.byID[j.ID]; old != nil {
		st.order[slices.Index(st.order, old)] = j
	} else {
		if len(st.order) >= st.trimAt {
			st.trim(j.Created)
		}
		st.order = append(st.order, j)
		st.calls[j.ID] = &counters{Submit: 1}
	}
	st.byID[j.ID] = j
	if j.ExternalID != "" {
		st.byExternal[externalKey{j.Provider, j.Account, j.ExternalID}] = j
	}
}

func (st *store) drop(id string) {
	st.next = slices.DeleteFunc(st.next, func(a arranged) bool { return a.ID == id })
}

// write appends one line; the caller holds the lock.
func (st *store) write(l line) error {
	raw, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("sandbox: encode: %w", err)
	}
	if _, err := st.file.Write(append(raw, '\n')); err != nil {
		return fmt.Errorf("sandbox: write journal: %w", err)
	}
	return nil
}

// add stores a job, together with the arranged directive that it used up.
// It returns errDuplicate when the account has one under its external id,
// and errBusy when limit jobs of the account are under way.
func (st *store) add(j *Job, taken string, limit int) (existing *Job, err error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if j.ExternalID != "" {
		if old := st.byExternal[externalKey{j.Provider, j.Account, j.ExternalID}]; old != nil {
			return old, errDuplicate
		}
	}
	if limit > 0 && st.active(j) >= limit {
		return nil, errBusy
	}
	if err := st.write(line{Job: j, Taken: taken}); err != nil {
		return nil, err
	}
	st.index(j)
	return nil, nil
}

// change lets f change a job's copy and stores it when f says so.
func (st *store) change(id string, f func(*Job) bool) (bool, error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	old := st.byID[id]
	if old == nil {
		return false, nil
	}
	changed := *old
	if !f(&changed) {
		return false, nil
	}
	if err := st.write(line{Job: &changed}); err != nil {
		return false, err
	}
	st.index(&changed)
	return true, nil
}

// active counts the jobs of j's account that are under way as j comes.
func (st *store) active(j *Job) int {
	n := 0
	for _, other := range st.order {
		if other.Provider != j.Provider || other.Account != j.Account {
			continue
		}
		if s := other.State(j.Created); s == StateQueued || s == StateRunning {
			n++
		}
	}
	return n
}

// note writes a call.
func (st *store) note(c call) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.write(line{Call: &c})
}

// count adds a call of the kind to the job and returns its number, from 1.
func (st *store) count(id, kind string) int {
	st.mu.Lock()
	defer st.mu.Unlock()
	if c := st.calls[id]; c != nil {
		return c.add(kind)
	}
	return 0
}

// find looks a job up by its own id.
func (st *store) find(id string) *Job {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.byID[id]
}

// lookup finds a job of the account by its own or its external id.
func (st *store) lookup(provider, account, id string) *Job {
	st.mu.Lock()
	defer st.mu.Unlock()
	if j := st.byID[id]; j != nil && j.Provider == provider && j.Account == account {
		return j
	}
	return st.byExternal[externalKey{provider, account, id}]
}

// counted is a job with its calls so far.
type counted struct {
	*Job
	calls counters
}

// list returns the jobs that match, oldest first.
func (st *store) list(match func(*Job) bool) []counted {
	st.mu.Lock()
	defer st.mu.Unlock()
	var out []counted
	for _, j := range st.order {
		if match(j) {
			out = append(out, counted{j, *st.calls[j.ID]})
		}
	}
	return out
}

// arrange stores a directive for the vendor's next job.
func (st *store) arrange(a arranged) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	if err := st.write(line{Next: &a}); err != nil {
		return err
	}
	st.next = append(st.next, a)
	return nil
}

// claim takes the oldest directive arranged for the vendor out of the queue.
// It stays in the journal until a job or spend uses it up.
func (st *store) claim(provider string) (arranged, bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	for _, a := range st.next {
		if a.Provider == provider {
			st.drop(a.ID)
			return a, true
		}
	}
	return arranged{}, false
}

// restore puts a claimed directive back at the head of the queue.
func (st *store) restore(a arranged) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.next = slices.Insert(st.next, 0, a)
}

// spend uses a claimed directive up without a job.
func (st *store) spend(id string) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.write(line{Taken: id})
}

// eachCall reads the calls so far, oldest first.
func (st *store) eachCall(f func(call) error) error {
	st.mu.Lock()
	size, err := st.file.Seek(0, io.SeekEnd)
	file, openErr := os.Open(st.path)
	st.mu.Unlock()
	if err := errors.Join(err, openErr); err != nil {
		return fmt.Errorf("sandbox: read journal: %w", err)
	}
	defer func() { _ = file.Close() }()
	_, err = eachLine(io.LimitReader(file, size), func(raw []byte) error {
		if !bytes.HasPrefix(raw, []byte(`{"call":`)) {
			return nil
		}
		var l line
		if err := json.Unmarshal(raw, &l); err != nil {
			return fmt.Errorf("sandbox: journal: %w", err)
		}
		return f(*l.Call)
	})
	return err
}

// forget drops everything.
func (st *store) forget() error {
	st.mu.Lock()
	defer st.mu.Unlock()
	if err := st.replace(func(io.Writer) error { return nil }); err != nil {
		return err
	}
	st.reset()
	return nil
}

// replace gives the old journal's name to a new one that fill writes, so that a
// reader of the old one is not disturbed, and a crash leaves the one or the other.
func (st *store) replace(fill func(io.Writer) error) error {
	fresh, err := os.OpenFile(st.path+".new", os.O_RDWR|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("sandbox: new journal: %w", err)
	}
	err = fill(fresh)
	if err == nil {
		err = os.Rename(st.path+".new", st.path)
	}
	if err != nil {
		_ = fresh.Close()
		return fmt.Errorf("sandbox: new journal: %w", err)
	}
	_ = st.file.Close()
	st.file = fresh
	return nil
}

func (st *store) close() error {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.file.Close()
}
