package kernel

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"
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

// call records one request to a vendor or for a file. It holds no secrets.
type call struct {
	At         time.Time `json:"at"`
	Provider   string    `json:"provider"`
	Kind       string    `json:"kind"`
	Method     string    `json:"method"`
	Path       string    `json:"path"`
	Status     int       `json:"status"` // 0: no answer was sent
	Job        string    `json:"job,omitempty"`
	ExternalID string    `json:"external_id,omitempty"`
	Made       bool      `json:"made,omitempty"` // this submission created the job
}

// counters holds the number of calls about a job, by kind.
type counters struct {
	Submit   int `json:"submit"`
	Poll     int `json:"poll"`
	Download int `json:"download"`
	Cancel   int `json:"cancel"`
}

// add counts a call and returns the number of calls of its kind so far.
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

// nextDirective is a directive stored for a vendor's next job.
type nextDirective struct {
	Provider  string    `json:"provider"`
	Directive Directive `json:"directive"`
}

const (
	journalName = "sandbox.db"
	lockTimeout = 10 * time.Second

	// A job is dropped once it ended keptTime ago and keptJobs newer jobs exist.
	keptTime = 10 * time.Minute
	keptJobs = 10_000
)

// The buckets of the journal.
var (
	bucketJobs      = []byte("jobs")      // by id
	bucketExternals = []byte("externals") // ids of jobs, by externalKey
	bucketCalls     = []byte("calls")     // by number
	bucketNext      = []byte("next")      // arranged directives, by number
	bucketOutages   = []byte("outages")   // by vendor and key

	buckets = [][]byte{bucketJobs, bucketExternals, bucketCalls, bucketNext, bucketOutages}
)

// store keeps jobs and calls in a database file. When update returns, the operating system has
// the data, so everything that a caller has seen survives the death of this process. The file is
// not synced, so the death of the machine may lose data.
type store struct {
	db   *bolt.DB
	keep int // number of newest jobs that trim never drops
}

func openStore(dir string, keep int) (*store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("sandbox: make folder: %w", err)
	}
	path := filepath.Join(dir, journalName)
	db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: lockTimeout, NoSync: true, NoGrowSync: true})
	if err != nil {
		return nil, fmt.Errorf("sandbox: open journal: %w", err)
	}
	st := &store{db: db, keep: keep}
	err = st.update(func(t tx) error {
		for _, name := range buckets {
			if _, err := t.CreateBucketIfNotExists(name); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		_ = db.Close()
		return nil, err
	}
	return st, nil
}

func (st *store) close() error { return st.db.Close() }

// update runs f in a transaction and commits it if f returns no error. Updates run one at a
// time.
func (st *store) update(f func(tx) error) error {
	if err := st.db.Update(func(t *bolt.Tx) error { return f(tx{t}) }); err != nil {
		return fmt.Errorf("sandbox: journal: %w", err)
	}
	return nil
}

// view runs f in a read-only transaction.
func (st *store) view(f func(tx) error) error {
	return st.db.View(func(t *bolt.Tx) error { return f(tx{t}) })
}

// tx is a transaction of the journal.
type tx struct{ *bolt.Tx }

// put stores a value as JSON.
func (t tx) put(bucket, key []byte, value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return t.Bucket(bucket).Put(key, raw)
}

// push stores a value under the bucket's next number.
func (t tx) push(bucket []byte, value any) error {
	n, err := t.Bucket(bucket).NextSequence()
	if err != nil {
		return err
	}
	return t.put(bucket, binary.BigEndian.AppendUint64(nil, n), value)
}

// each calls f for every value of a bucket, in the order of the keys.
func each[T any](t tx, bucket []byte, f func(key []byte, value T) error) error {
	return t.Bucket(bucket).ForEach(func(key, raw []byte) error {
		var value T
		if err := json.Unmarshal(raw, &value); err != nil {
			return err
		}
		return f(key, value)
	})
}

// job returns the job with this id, or nil.
func (t tx) job(id string) *Job {
	j := new(Job)
	if raw := t.Bucket(bucketJobs).Get([]byte(id)); raw == nil || json.Unmarshal(raw, j) != nil {
		return nil
	}
	return j
}

// external returns the account's job with this external id, or nil.
func (t tx) external(provider, account, id string) *Job {
	return t.job(string(t.Bucket(bucketExternals).Get(externalKey(provider, account, id))))
}

func externalKey(provider, account, id string) []byte {
	return []byte(provider + "\x00" + account + "\x00" + id)
}

// list returns the jobs that match, oldest first.
func (t tx) list(match func(*Job) bool) (jobs []*Job, err error) {
	err = each(t, bucketJobs, func(_ []byte, j *Job) error {
		if match(j) {
			jobs = append(jobs, j)
		}
		return nil
	})
	slices.SortFunc(jobs, func(a, b *Job) int { return cmp.Compare(a.Number, b.Number) })
	return jobs, err
}

// change overwrites a stored job.
func (t tx) change(j *Job) error { return t.put(bucketJobs, []byte(j.ID), j) }

// add stores a new job. After every keep jobs it trims the journal.
func (t tx) add(j *Job, keep int) (err error) {
	if j.Number, err = t.Bucket(bucketJobs).NextSequence(); err != nil {
		return err
	}
	j.Calls = counters{Submit: 1}
	if j.ExternalID != "" {
		if err := t.Bucket(bucketExternals).Put(externalKey(j.Provider, j.Account, j.ExternalID), []byte(j.ID)); err != nil {
			return err
		}
	}
	if err := t.change(j); err != nil {
		return err
	}
	if j.Number%uint64(keep) != 0 { // trimming reads all jobs, so it is done rarely
		return nil
	}
	return t.trim(j.Created, keep)
}

// trim drops jobs that ended long ago, with their calls. The newest keep jobs stay. Calls about
// no job are dropped if they are older than the oldest of these.
func (t tx) trim(now time.Time, keep int) error {
	jobs, err := t.list(func(*Job) bool { return true })
	if err != nil || len(jobs) <= keep {
		return err
	}
	gone, since := map[string]bool{}, jobs[len(jobs)-keep].Created
	for _, j := range jobs[:len(jobs)-keep] {
		if !j.isExpired(now) {
			continue
		}
		gone[j.ID] = true
		if err := t.Bucket(bucketJobs).Delete([]byte(j.ID)); err != nil {
			return err
		}
		if err := t.Bucket(bucketExternals).Delete(externalKey(j.Provider, j.Account, j.ExternalID)); err != nil {
			return err
		}
	}
	var calls [][]byte
	err = each(t, bucketCalls, func(key []byte, c call) error {
		if gone[c.Job] || c.Job == "" && c.At.Before(since) {
			calls = append(calls, key)
		}
		return nil
	})
	for _, key := range calls {
		if err == nil {
			err = t.Bucket(bucketCalls).Delete(key)
		}
	}
	return err
}

// isExpired reports whether the job ended at least keptTime before now.
func (j *Job) isExpired(now time.Time) bool {
	switch j.State(now) {
	case StateSucceeded, StateFailed, StateCancelled:
		return now.Sub(j.StateSince(now)) >= keptTime
	default:
		return false
	}
}

// active counts the jobs of j's account that are queued or running when j is created.
func (t tx) active(j *Job) (int, error) {
	jobs, err := t.list(func(other *Job) bool {
		state := other.State(j.Created)
		return other.Provider == j.Provider && other.Account == j.Account && (state == StateQueued || state == StateRunning)
	})
	return len(jobs), err
}

// claim removes and returns the oldest directive that was arranged for the vendor.
func (t tx) claim(provider string) (d Directive, ok bool, err error) {
	c := t.Bucket(bucketNext).Cursor()
	for key, raw := c.First(); key != nil; key, raw = c.Next() {
		var a nextDirective
		if err := json.Unmarshal(raw, &a); err != nil {
			return d, false, err
		}
		if a.Provider == provider {
			return a.Directive, true, c.Delete()
		}
	}
	return d, false, nil
}

// note adds a call to the journal.
func (st *store) note(c call) error {
	return st.update(func(t tx) error { return t.push(bucketCalls, c) })
}

// count counts a call of the kind for the job and returns the number of such calls so far. It
// returns 0 if the job does not exist.
func (st *store) count(id, kind string) (n int) {
	_ = st.update(func(t tx) error {
		j := t.job(id)
		if j == nil {
			return nil
		}
		n = j.Calls.add(kind)
		return t.change(j)
	})
	return n
}

// find returns the job with this id, or nil.
func (st *store) find(id string) (j *Job) {
	_ = st.view(func(t tx) error {
		j = t.job(id)
		return nil
	})
	return j
}

// lookup returns the account's job with this id or external id, or nil.
func (st *store) lookup(provider, account, id string) (j *Job) {
	_ = st.view(func(t tx) error {
		if j = t.job(id); j == nil || j.Provider != provider || j.Account != account {
			j = t.external(provider, account, id)
		}
		return nil
	})
	return j
}

// list returns the jobs that match, oldest first.
func (st *store) list(match func(*Job) bool) (jobs []*Job) {
	_ = st.view(func(t tx) (err error) {
		jobs, err = t.list(match)
		return err
	})
	return jobs
}

// forget empties the journal.
func (st *store) forget() error {
	return st.update(func(t tx) error {
		for _, name := range buckets {
			if err := t.DeleteBucket(name); err != nil {
				return err
			}
			if _, err := t.CreateBucket(name); err != nil {
				return err
			}
		}
		return nil
	})
}
