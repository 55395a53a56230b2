package kernel

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"time"
)

// A job is forgotten when it ended so long ago, and so many came after it, like a
// vendor does: memory would have them all for ever.
const (
	keptTime = 10 * time.Minute
	keptJobs = 10_000
)

// over reports whether the job ended at least keptTime before now.
func (j *Job) over(now time.Time) bool {
	switch j.State(now) {
	case StateSucceeded, StateFailed, StateCancelled:
		return now.Sub(j.Changed(now)) >= keptTime
	default:
		return false
	}
}

// trim forgets old jobs in memory. In the journal they stay until compact.
func (st *store) trim(now time.Time) {
	older := max(0, len(st.order)-st.keep)
	kept := st.order[:0]
	for i, j := range st.order {
		if i >= older || !j.over(now) {
			kept = append(kept, j)
			continue
		}
		delete(st.byID, j.ID)
		delete(st.calls, j.ID)
		if key := (externalKey{j.Provider, j.Account, j.ExternalID}); st.byExternal[key] == j {
			delete(st.byExternal, key)
		}
	}
	st.forgotten += len(st.order) - len(kept)
	clear(st.order[len(kept):])
	st.order = kept
	// Where nothing can go, it is not looked for with every job.
	st.trimAt = len(kept) + st.keep
}

// compact leaves what was forgotten out of the journal. It is for when the journal
// is opened: nobody reads or writes it.
func (st *store) compact() error {
	if st.forgotten == 0 {
		return nil
	}
	st.forgotten = 0
	old, err := os.Open(st.path)
	if err != nil {
		return fmt.Errorf("sandbox: read journal: %w", err)
	}
	defer func() { _ = old.Close() }()
	return st.replace(func(w io.Writer) error {
		out := bufio.NewWriterSize(w, 64<<10)
		if _, err := eachLine(old, func(raw []byte) error {
			var l line
			if err := json.Unmarshal(raw, &l); err != nil {
				return err
			}
			if !st.remembers(l) {
				return nil
			}
			_, err := out.Write(raw)
			return err
		}); err != nil {
			return err
		}
		return out.Flush()
	})
}

// remembers reports whether the line tells of something that was not forgotten. Calls
// about no job go with the jobs of their time.
func (st *store) remembers(l line) bool {
	switch {
	case l.Job != nil:
		return st.byID[l.Job.ID] != nil
	case l.Call != nil && l.Call.Job != "":
		return st.byID[l.Call.Job] != nil
	case l.Call != nil:
		return len(st.order) > 0 && !l.Call.At.Before(st.order[0].Created)
	case l.Next != nil:
		return slices.ContainsFunc(st.next, func(a arranged) bool { return a.ID == l.Next.ID })
	default:
		return l.Outage != nil
	}
}
