package kernel

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Of jobs that ended long ago the newest stay, and all that have not ended: in
// memory, and in the journal once it is opened again.
func TestOldJobsAreForgotten(t *testing.T) {
	t.Parallel()
	const keep = 10
	dir := t.TempDir()
	open := func() *store {
		t.Helper()
		st, err := openStore(dir, keep)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = st.close() })
		return st
	}
	st, start := open(), time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	add := func(n int, created time.Time, takes time.Duration) {
		t.Helper()
		j := &Job{
			ID: fmt.Sprint("job-", n), Provider: "kling", Account: "a", ExternalID: fmt.Sprint("task-", n),
			Created: created, Directive: Directive{Duration: &takes},
		}
		if _, err := st.add(j, "", 0); err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{j.ID, ""} {
			if err := st.note(call{At: created, Provider: "kling", Kind: CallPoll, Job: id}); err != nil {
				t.Fatal(err)
			}
		}
		st.count(j.ID, CallPoll)
	}
	add(0, start, 720*time.Hour)
	for n := 1; n < 2*keep; n++ {
		add(n, start.Add(time.Second), time.Second)
	}
	if err := st.arrange(arranged{ID: "next", Provider: "kling"}); err != nil {
		t.Fatal(err)
	}
	late := start.Add(keptTime)
	add(20, late, time.Second) // so long after their start, not their end: nothing goes
	if n := len(st.list(all)); n != 2*keep+1 {
		t.Fatalf("%d jobs within that time, want %d", n, 2*keep+1)
	}
	for n := 21; n <= 3*keep; n++ {
		add(n, late.Add(time.Minute), time.Second)
	}

	want := []string{"job-0"}
	for n := 20; n <= 3*keep; n++ {
		want = append(want, fmt.Sprint("job-", n))
	}
	check := func(when string) {
		t.Helper()
		var got []string
		for _, j := range st.list(all) {
			got = append(got, j.ID)
			if diff := cmp.Diff(counters{Submit: 1, Poll: 1}, j.calls); diff != "" {
				t.Errorf("%s: calls of %s (-want +got):\n%s", when, j.ID, diff)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: jobs (-want +got):\n%s", when, diff)
		}
		for _, id := range []string{"job-1", "task-1"} {
			if st.lookup("kling", "a", id) != nil {
				t.Errorf("%s: %s is found", when, id)
			}
		}
		for _, id := range []string{"job-0", "task-0", "task-30"} {
			if st.lookup("kling", "a", id) == nil {
				t.Errorf("%s: %s is not found", when, id)
			}
		}
	}
	check("running")

	st = open()
	check("opened again")
	journal, err := os.ReadFile(filepath.Join(dir, journalName))
	if err != nil {
		t.Fatal(err)
	}
	if text := string(journal); strings.Contains(text, `"job-1"`) || !strings.Contains(text, `"job-0"`) {
		t.Errorf("the journal:\n%s", text)
	}
	st = open()
	check("opened from the shorter journal")
	if _, ok := st.claim("kling"); !ok {
		t.Error("the arranged directive is lost")
	}
}

func all(*Job) bool { return true }
