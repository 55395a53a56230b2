package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	gocmp "github.com/google/go-cmp/cmp"
)

// all returns the acknowledged tasks of all users.
func (c *chaos) all() (all []*task) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, u := range c.users {
		all = append(all, u.tasks...)
	}
	return all
}

// awaitQuiet waits until each task and its callback have ended and each client is done. If
// nothing changes for as long as patience, it returns the open tasks. Meanwhile it plays the
// operator of the runbook, who makes tasks fail that are parked with a submission that their
// vendor cannot look up.
func (c *chaos) awaitQuiet(patience time.Duration) (left []string) {
	c.t.Helper()
	done := make(chan struct{})
	go func() {
		c.group.Wait()
		close(done)
	}()
	began, last, since, told := time.Now(), "", time.Now(), time.Duration(0)
	for ; time.Since(since) < patience; time.Sleep(500 * time.Millisecond) {
		c.revive("")
		c.failUndecided()
		open, err := c.column(`SELECT id || ' ' || model || ' ' || status || ' ' || wait_reason || ' callback ' || webhook_state || ' ' ||
			COALESCE((SELECT string_agg(n || ' ' || provider || ' ' || state, ', ' ORDER BY n) FROM attempts WHERE task_id = id), '') || ' ' ||
			COALESCE((SELECT string_agg(kind || ' wake at ' || wake_at || ' tries ' || tries, ', ') FROM wakes WHERE task_id = id), 'no wake')
			FROM tasks WHERE status IN ('pending', 'processing') OR webhook_state = 'pending' ORDER BY id`)
		if err != nil {
			c.t.Logf("open tasks: %v", err)
			continue
		}
		state, err := c.column(`SELECT concat_ws(' ', (SELECT count(*) || ' ' || sum(version) FROM tasks), (SELECT count(*) || ' ' || sum((document::json->>'lookups')::int) FROM attempts),
			(SELECT count(*) FROM deliveries))`)
		if err != nil {
			continue
		}
		left = open
		select {
		case <-done:
			if len(open) == 0 {
				c.t.Logf("all %d tasks have ended %s after the last fault", len(c.all()), time.Since(began).Round(time.Second))
				return nil
			}
		default:
		}
		if state[0] != last {
			last, since = state[0], time.Now()
		}
		if mark := time.Since(began).Truncate(30 * time.Second); mark > told {
			told = mark
			c.t.Logf("%s after the last fault %d are open, such as %v", mark, len(open), open[:min(len(open), 2)])
		}
	}
	return left
}

// failUndecided makes tasks fail that are parked with an unknown submission. Jobs of Kling are looked
// up, so their tasks are left alone.
func (c *chaos) failUndecided() {
	parked, err := c.column(`SELECT id FROM tasks WHERE wait_reason = 'provider_submission_unknown' AND status IN ('pending', 'processing')
		AND NOT EXISTS (SELECT 1 FROM attempts WHERE task_id = id AND state = 'unknown' AND provider = 'kling')`)
	if err != nil {
		return
	}
	for _, id := range parked {
		if c.decided[id] {
			continue
		}
		client := c.dial()
		err := client.SignalWorkflow(c.t.Context(), id, "", "fail", nil)
		client.Close()
		if c.decided[id] = err == nil; err != nil {
			c.t.Logf("%s is not failed yet: %v", id, err)
		}
	}
}

// check checks every promise.
func (c *chaos) check() {
	c.t.Helper()
	c.checkAcknowledged()
	attempts := c.attempts()
	c.checkVendorJobs(attempts)
	failed := map[string]int{}
	for _, u := range c.users {
		u.ends = u.awaitEnds(recoverTime)
		for _, t := range u.tasks {
			o := u.ends[t.id]
			if o.Status == "failed" {
				failed[o.Error.Code]++
			}
			if (t.wantStatus == "" || t.wantStatus == "failed") && slices.ContainsFunc(attempts[t.id], func(a attempt) bool { return a.provider != "kling" }) {
				t.wantStatus, t.wantCode = "either", "" // this vendor cannot look up a job whose answer was lost
			}
			if o.Status == "failed" && o.Error.Code == "source_failed" {
				if t.source == nil || u.ends[t.source.id].Status == "completed" {
					c.t.Errorf("%s (%s) failed with %+v", t.id, t.model, o.Error)
				}
				continue
			}
			if t.wantStatus == "either" && o.Status == "failed" && !slices.Contains([]string{"provider_submission_unknown", "modal_expired", "content_policy_violation"}, o.Error.Code) {
				c.t.Errorf("%s (%s) failed with %+v, attempts %+v", t.id, t.model, o.Error, attempts[t.id])
			}
		}
		u.checkEnds(u.ends)
		u.checkMoney(u.ends)
		c.checkCallbacks(u)
	}
	c.t.Logf("failed, by code: %v", failed)
	c.checkNothingLeft()
	c.checkObjects(c.users, len(c.lapses) > 0)
	c.checkWorkflows()
	c.checkStops()
}

// checkAcknowledged compares the rows with the acknowledgements, and repeats each submit: a
// repeated key must return the same task.
func (c *chaos) checkAcknowledged() {
	c.t.Helper()
	var told []string
	for _, t := range c.all() {
		told = append(told, t.id)
	}
	slices.Sort(told)
	stored, err := c.column(`SELECT id FROM tasks ORDER BY id COLLATE "C"`)
	if err != nil {
		c.t.Fatal(err)
	}
	if diff := gocmp.Diff(told, stored); diff != "" {
		c.t.Errorf("tasks (-told +stored):\n%s", diff)
	}
	for _, o := range c.acknowledged {
		a := c.callUntilAnswered(o.user, 0, http.MethodPost, o.path, o.body, o.key)
		if id, err := taskID(a); err != nil || id != o.task.id || a.header.Get("Idempotency-Replayed") != "true" {
			c.t.Errorf("%s again is %s, want %s (%v)", o.path, id, o.task.id, err)
		}
	}
}

// attempt is a row of the table attempts.
type attempt struct {
	n                    int
	provider, state, job string
	failed               bool // by its vendor
	givenUp              bool // by an operator
}

// attempts returns all attempts in order, by task.
func (c *chaos) attempts() map[string][]attempt {
	c.t.Helper()
	rows, err := c.column(`SELECT json_build_array(task_id, n, provider, state, job_id,
		COALESCE(document::json->>'outcome', ''), given_up_at IS NOT NULL)::text FROM attempts ORDER BY task_id, n`)
	if err != nil {
		c.t.Fatal(err)
	}
	all := map[string][]attempt{}
	for _, row := range rows {
		var (
			a           attempt
			id, outcome string
		)
		if err := json.Unmarshal([]byte(row), &[]any{&id, &a.n, &a.provider, &a.state, &a.job, &outcome, &a.givenUp}); err != nil {
			c.t.Fatalf("%s: %v", row, err)
		}
		a.failed = outcome != "" && !strings.Contains(outcome, `"succeeded":true`)
		all[id] = append(all[id], a)
	}
	return all
}

// checkVendorJobs compares the vendors' journal with the attempts. A task may have one job. It
// may have another only if the earlier attempts prove that this is right. Each job must belong
// to an acknowledged task.
func (c *chaos) checkVendorJobs(attempts map[string][]attempt) {
	c.t.Helper()
	a, err := c.file(c.sandbox + "/_sandbox/jobs")
	var list struct {
		Jobs []struct {
			vendorJob
			Prompt string `json:"prompt"`
		} `json:"jobs"`
	}
	if err == nil {
		err = a.decode(&list)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	jobs := map[string][]vendorJob{}
	known := map[string]string{} // tasks by provider and job
	for id, tries := range attempts {
		for _, a := range tries {
			if a.job == "" {
				continue
			}
			name := a.provider + " " + a.job
			if other := known[name]; other != "" && other != id {
				c.t.Errorf("%s is the job of %s and %s", name, other, id)
			}
			known[name] = id
		}
	}
	all := c.all()
	strays := map[string]int{}
	for _, j := range list.Jobs {
		owner := known[j.Provider+" "+j.ID]
		for _, t := range all {
			if strings.HasPrefix(j.ExternalID, t.id) {
				if owner != "" && owner != t.id {
					c.t.Errorf("%s %s is of %s, and our rows say of %s", j.Provider, j.ID, t.id, owner)
				}
				owner = t.id
			}
		}
		// A job whose id is not in our rows is found by its prompt. A picture made from another
		// one has that one's prompt.
		for _, t := range all {
			if owner == "" && t.ref != "" && strings.Contains(j.Prompt, t.ref) &&
				slices.ContainsFunc(attempts[t.id], func(a attempt) bool { return a.provider == j.Provider && a.job == "" }) {
				owner = t.id
			}
		}
		if owner == "" {
			strays[j.Provider]++
		}
		jobs[owner] = append(jobs[owner], j.vendorJob)
	}
	silent := map[string]int{} // attempts that may have a job with an unknown id
	for _, t := range all {
		tries := attempts[t.id]
		for i, a := range tries {
			proves := a.state == "rejected" || a.state == "abandoned" && len(c.lapses) > 0 || a.failed || a.givenUp || strings.HasSuffix(t.model, "/inpaint") && a.state == "ended"
			if i < len(tries)-1 && !proves {
				c.t.Errorf("attempt %d of %s proves nothing, and another follows: %+v", a.n, t.id, tries)
			}
			if t.ref == "" && a.job == "" && a.state != "rejected" {
				silent[a.provider]++
			}
			if a.job != "" && !slices.ContainsFunc(jobs[t.id], func(j vendorJob) bool { return j.ID == a.job }) {
				c.t.Errorf("attempt %d of %s has the job %s, which its vendor does not know", a.n, t.id, a.job)
			}
		}
		most := 0
		for _, a := range tries {
			if a.state != "rejected" {
				most++
			}
		}
		if len(jobs[t.id]) > most {
			c.t.Errorf("%s (%s) has %d jobs at its vendors and the attempts %+v: %+v", t.id, t.model, len(jobs[t.id]), tries, jobs[t.id])
		}
	}
	for provider, n := range strays {
		if n > silent[provider] {
			c.t.Errorf("%s has %d jobs without a task, and answers to %d attempts were lost", provider, n, silent[provider])
		}
	}
}

// late is how long after a lapse the callbacks that began before may still arrive.
const late = 15 * time.Second

// inLapse reports whether the delivery arrived while the database lapsed.
func (c *chaos) inLapse(a arrival) bool {
	return slices.ContainsFunc(c.lapses, func(s span) bool { return a.at.After(s.from) && a.at.Before(s.to.Add(late)) })
}

// checkCallbacks checks that each end was delivered, with a valid signature and the same bytes
// each time, or was abandoned after four attempts. A cancelled task has no callback.
func (c *chaos) checkCallbacks(u *user) {
	c.t.Helper()
	came := u.hooks.deliveries()
	for _, t := range u.tasks {
		arrivals, o := came[t.id], u.ends[t.id]
		kept := slices.DeleteFunc(slices.Clone(arrivals), c.inLapse)
		delete(came, t.id)
		recorded, err := c.column("SELECT status::text FROM deliveries WHERE task_id = $1 ORDER BY attempt", t.id)
		if err != nil {
			c.t.Fatal(err)
		}
		state := ""
		if o.Webhook != nil {
			state = o.Webhook.State
		}
		switch {
		case o.Status == "cancelled":
			if state != "dropped" || len(kept)+len(recorded) > 0 {
				c.t.Errorf("%s was cancelled, its callback is %s and came %d times", t.id, state, len(kept))
			}
		case state == "delivered":
			if len(arrivals) <= u.hooks.failFirst || recorded[len(recorded)-1] != "200" {
				c.t.Errorf("%s is delivered, and came %d times, recorded %v", t.id, len(arrivals), recorded)
			}
		case state == "abandoned":
			if len(recorded) != 4 || slices.Contains(recorded, "200") || u.hooks.failFirst == 0 {
				c.t.Errorf("the callback of %s is abandoned after %v", t.id, recorded)
			}
		default:
			c.t.Errorf("the callback of %s (%s) is %q", t.id, o.Status, state)
		}
		for _, a := range kept {
			if a.err != nil || a.body != kept[0].body {
				c.t.Errorf("a delivery of %s: %v, same bytes %t", t.id, a.err, a.body == kept[0].body)
			}
		}
	}
	for id := range came {
		c.t.Errorf("a delivery of %q, which no client was told of", id)
	}
}

// checkNothingLeft checks that there are no rows that only open tasks have. Jobs that the vendor
// does not stop are polled until their end.
func (w *world) checkNothingLeft() {
	w.t.Helper()
	eventually(w.t, recoverTime, "nothing is left over", func() error {
		left, err := w.column(`SELECT 'wake of ' || task_id FROM wakes UNION ALL SELECT 'queued: ' || task_id FROM queue
			UNION ALL SELECT 'polled for: ' || task_id FROM awaits
			UNION ALL SELECT 'attempt ' || state || ': ' || task_id FROM attempts WHERE state IN ('intent', 'unknown', 'accepted', 'granted')`)
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("%v", left)
		}
		return err
	})
}

// checkObjects compares the bucket with the rows and the users' uploads, once leftovers have
// been swept. A database that has lost a copy in a lapse (lapsed) does not know the copy's
// files. They are swept an hour after the end of their task (D13).
func (w *world) checkObjects(users []*user, lapsed bool) {
	w.t.Helper()
	store := w.bucket()
	eventually(w.t, recoverTime, "the bucket has what rows name", func() error {
		named, err := w.column(`SELECT r->>'key' FROM tasks, json_array_elements(results::json) r WHERE results IS NOT NULL`)
		if err != nil {
			return err
		}
		for _, u := range users {
			for key := range u.uploads {
				named = append(named, key)
			}
		}
		due := map[string]bool{}
		if lapsed {
			ids, err := w.column(`SELECT id FROM tasks WHERE sweep_at IS NOT NULL`)
			if err != nil {
				return err
			}
			for _, id := range ids {
				due[id] = true
			}
		}
		var found []string
		for pages := s3.NewListObjectsV2Paginator(store, &s3.ListObjectsV2Input{Bucket: &w.s3.Bucket}); pages.HasMorePages(); {
			page, err := pages.NextPage(w.t.Context())
			if err != nil {
				return err
			}
			for _, o := range page.Contents {
				key := aws.ToString(o.Key)
				folder := strings.Split(key, "/")
				if key != "results/probe" && !strings.HasSuffix(key, "/outcome.json") && (slices.Contains(named, key) || len(folder) < 2 || !due[folder[1]]) {
					found = append(found, key)
				}
			}
		}
		slices.Sort(named)
		slices.Sort(found)
		if diff := gocmp.Diff(named, found); diff != "" {
			return fmt.Errorf("objects (-rows +bucket):\n%s", diff)
		}
		uploads, err := store.ListMultipartUploads(w.t.Context(), &s3.ListMultipartUploadsInput{Bucket: &w.s3.Bucket})
		if err != nil {
			return err
		}
		for _, u := range uploads.Uploads {
			if key := aws.ToString(u.Key); key != "results/probe" {
				err = errors.Join(err, fmt.Errorf("an upload of %s was never finished", key))
			}
		}
		return err
	})
}

// checkStops stops our processes. Each must exit, and leave no process behind.
func (c *chaos) checkStops() {
	c.t.Helper()
	for _, s := range slices.Concat(c.apis, c.workers) {
		if code, _ := s.terminate(c.t, 2*stopLimit); code != 0 {
			c.t.Errorf("%s exits with %d", s.name, code)
		}
		if err := syscall.Kill(-s.cmd.Process.Pid, 0); !errors.Is(err, syscall.ESRCH) {
			c.t.Errorf("%s leaves processes behind: %v", s.name, err)
		}
	}
}
