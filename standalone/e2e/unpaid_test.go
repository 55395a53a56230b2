package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A client submits and cancels as soon as its job has begun, at a vendor that stops none.
// It gets jobs until more is unpaid than its account may have, and not one after that, also
// from a process that was killed meanwhile. Once they have ended it may submit again.
func TestCancelledWorkHasAPrice(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{shape: standalone})
	w.admin(http.MethodPatch, "/accounts/"+w.account, map[string]any{"unpaid": "1.00"}, &struct{}{})
	const most = 3 // of 0.42: the third is one too many
	refused := func() (bool, error) {
		r, task := w.request(job{model: alpha, directive: "duration=45s", noHook: true})
		a, err := r.do(t.Context())
		if err != nil {
			return false, err
		}
		if a.status == http.StatusTooManyRequests {
			if text := string(a.body); !strings.Contains(text, "rate_limit_error") || !strings.Contains(text, "unpaid") || a.header.Get("Retry-After") == "" {
				t.Errorf("the refusal says %s, Retry-After %q", text, a.header.Get("Retry-After"))
			}
			return true, nil
		}
		if task.id, err = taskID(a); err != nil {
			return false, err
		}
		w.tasks, task.want = append(w.tasks, task), "cancelled"
		w.awaitProcessing(task)
		w.cancel(task)
		w.await(task, recoverTime, "is cancelled", func(o object) bool { return o.Status == "cancelled" })
		return false, nil
	}
	for n := 0; ; n++ {
		over, err := refused()
		if err != nil || n > most {
			t.Fatalf("after %d jobs nothing was refused, %v", n, err)
		}
		if over {
			break
		}
	}
	if n, err := w.running(t.Context()); err != nil || n != most {
		t.Errorf("the vendor works on %d jobs, want %d, %v", n, most, err)
	}
	if got, want := w.abandoned(), (abandoned{most, "1.26"}); got != want {
		t.Errorf("the account shows %+v, want %+v", got, want)
	}

	w.apis[0].kill()
	w.apis[0].start(t)
	eventually(t, recoverTime, "the API serves", func() error {
		switch over, err := refused(); {
		case err != nil:
			return err
		case !over:
			return &stopError{"a submit was taken"}
		}
		return nil
	})
	eventually(t, 2*time.Minute, "the jobs' ends are seen", func() error {
		if got := w.abandoned(); got.Jobs > 0 {
			return fmt.Errorf("the account shows %+v", got)
		}
		return nil
	})
	if n, err := w.running(t.Context()); n > 0 || err != nil {
		t.Errorf("nothing is unpaid, and the vendor works on %d jobs, %v", n, err)
	}
	w.submit(job{model: alpha, directive: "duration=0"})
	w.verify(recoverTime)
}

// abandoned are jobs of the account's cancelled tasks that may still run.
type abandoned struct {
	Jobs int
	Cost string
}

func (w *world) abandoned() abandoned {
	w.t.Helper()
	var account struct{ Abandoned *abandoned }
	w.admin(http.MethodGet, "/accounts/"+w.account, nil, &account)
	if account.Abandoned == nil {
		w.t.Fatal("the account does not show its abandoned jobs")
	}
	return *account.Abandoned
}
