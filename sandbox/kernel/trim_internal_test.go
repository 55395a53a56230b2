package kernel

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The newest of the jobs that ended long ago stay, and so do all jobs that have not ended. Calls
// are dropped with their jobs.
func TestOldJobsAreForgotten(t *testing.T) {
	t.Parallel()
	const keep = 10
	st, err := openStore(t.TempDir(), keep)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.close() })
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	add := func(n int, created time.Time, takes time.Duration) {
		t.Helper()
		j := &Job{
			ID: fmt.Sprint("job-", n), Provider: "kling", Account: "a", ExternalID: fmt.Sprint("task-", n),
			Created: created, Directive: Directive{Duration: &takes},
		}
		if err := st.update(func(t tx) error { return t.add(j, keep) }); err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{j.ID, ""} {
			if err := st.note(call{At: created, Provider: "kling", Kind: CallPoll, Job: id}); err != nil {
				t.Fatal(err)
			}
		}
	}
	all := func(*Job) bool { return true }
	add(0, start, 720*time.Hour)
	for n := 1; n < 2*keep; n++ { // the last of them is number 20
		add(n, start.Add(time.Second), time.Second)
	}
	if n := len(st.list(all)); n != 2*keep {
		t.Fatalf("%d jobs within that time, want %d", n, 2*keep)
	}
	late := start.Add(keptTime + time.Minute)
	want, jobs, calls := []string{"job-0"}, []string{}, map[string]int{}
	for n := 2 * keep; n < 3*keep; n++ {
		add(n, late, time.Second)
		want = append(want, fmt.Sprint("job-", n))
	}
	for _, j := range st.list(all) {
		jobs = append(jobs, j.ID)
	}
	if diff := cmp.Diff(want, jobs); diff != "" {
		t.Errorf("jobs (-want +got):\n%s", diff)
	}
	err = st.view(func(t tx) error {
		return each(t, bucketCalls, func(_ []byte, c call) error {
			calls[c.Job]++
			return nil
		})
	})
	if err != nil || calls["job-0"] != 1 || calls["job-1"] != 0 || calls["job-29"] != 1 || calls[""] != keep {
		t.Errorf("calls %v, %v", calls, err)
	}
	for id, known := range map[string]bool{"job-1": false, "task-1": false, "job-0": true, "task-0": true, "task-29": true} {
		if (st.lookup("kling", "a", id) != nil) != known {
			t.Errorf("%s is found: %v", id, !known)
		}
	}
}
