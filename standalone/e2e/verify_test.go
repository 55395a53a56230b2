package e2e_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/big"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	gocmp "github.com/google/go-cmp/cmp"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
)

// verify waits up to limit for the tasks' ends, and checks everything that must hold at the end
// of a test, however the processes died.
func (w *world) verify(limit time.Duration) {
	w.t.Helper()
	ends := w.awaitEnds(limit)
	w.checkEnds(ends)
	w.checkJobs(ends)
	w.checkMoney(ends)
	w.checkHooks(ends)
	w.checkBucket(ends)
	w.checkWorkflows()
}

// awaitEnds waits until every task has ended and its webhook is settled.
func (w *world) awaitEnds(limit time.Duration) map[string]object {
	w.t.Helper()
	ends := map[string]object{}
	deadline := time.Now().Add(limit)
	for _, t := range w.tasks {
		eventually(w.t, max(time.Until(deadline), time.Second), t.id+" ends", func() error {
			o, err := w.read(t.id)
			switch {
			case err != nil:
				return err
			case !o.terminal():
				return fmt.Errorf("it is %s", o.Status)
			case o.Webhook != nil && o.Webhook.State == "pending":
				return fmt.Errorf("it is %s, and its webhook is pending", o.Status)
			}
			ends[t.id] = o
			return nil
		})
	}
	return ends
}

// checkEnds compares each end with the expected one, and fetches the results.
func (w *world) checkEnds(ends map[string]object) {
	w.t.Helper()
	for _, t := range w.tasks {
		o, want := ends[t.id], t.wantStatus
		switch {
		case want == "":
			want = "completed"
		case want == "either" && (o.Status == "completed" || o.Status == "failed"):
			want = o.Status
		}
		if o.Status != want {
			w.t.Errorf("%s is %s (%+v), want %s", t.id, o.Status, o.Error, want)
			continue
		}
		if (o.Progress == 100) != (want == "completed") || len(o.items()) != t.wantResults(want) || (o.Error != nil) != (want == "failed") {
			w.t.Errorf("%s is %s with progress %d, %d results, error %+v", t.id, o.Status, o.Progress, len(o.items()), o.Error)
			continue
		}
		if t.wantCode != "" && o.Error.Code != t.wantCode {
			w.t.Errorf("%s failed with %s, want %s", t.id, o.Error.Code, t.wantCode)
		}
		for _, i := range o.items() {
			if err := w.fetch(i); err != nil {
				w.t.Errorf("result of %s: %v", t.id, err)
			}
		}
	}
}

// wantResults returns the expected number of the task's files for the status.
func (t *task) wantResults(status string) int {
	if status != "completed" {
		return 0
	}
	return max(cmp.Or(t.files, 1), 0)
}

// wantObjects returns the expected number of the task's objects in the bucket for the status.
func (t *task) wantObjects(status string) int {
	if status != "completed" {
		return t.objectsIfFailed
	}
	return cmp.Or(t.objects, t.wantResults(status))
}

// fetch downloads a result by its link and checks its size and type.
func (w *world) fetch(i item) error {
	if len(i.URL) != 1 {
		return fmt.Errorf("%d links", len(i.URL))
	}
	a, err := request{method: http.MethodGet, url: i.URL[0]}.do(w.t.Context())
	if err != nil {
		return err
	}
	if a.status != http.StatusOK || int64(len(a.body)) != i.SizeBytes || a.header.Get("Content-Type") != i.MimeType {
		return fmt.Errorf("status %d, %d bytes of %s, want %d of %s", a.status, len(a.body), a.header.Get("Content-Type"), i.SizeBytes, i.MimeType)
	}
	return nil
}

// checkJobs checks the number of the vendor's jobs for each task.
func (w *world) checkJobs(ends map[string]object) {
	w.t.Helper()
	for _, t := range w.tasks {
		if t.ref == "" {
			continue // its job cannot be found by a reference; see vendorHas
		}
		jobs, err := w.jobs(t)
		if err != nil {
			w.t.Fatal(err)
		}
		if ends[t.id].Status == "completed" {
			t.minJobs = 1
		}
		if len(jobs) < t.minJobs || len(jobs) > t.maxJobs {
			w.t.Errorf("the vendor has %d jobs for %s, want %d to %d: %+v", len(jobs), t.id, t.minJobs, t.maxJobs, jobs)
		}
		for _, j := range jobs {
			if j.Provider == "kling" && j.ExternalID != t.id && (!t.resubmitted || j.ExternalID != t.id+"-2") {
				w.t.Errorf("the vendor knows %s as %q", t.id, j.ExternalID)
			}
		}
	}
}

// prices holds the prices of the tests' tasks: 5 s of video, or one image.
var prices = map[string]string{alpha: "0.42", beta: "0.625", delta: "0.28", gamma: "0.50", theta: "0.015", zeta: "0.092"}

// checkMoney checks the amounts of account, key and tasks to the last micro.
func (w *world) checkMoney(ends map[string]object) {
	w.t.Helper()
	spent := new(big.Rat)
	for _, t := range w.tasks {
		want := new(big.Rat)
		if ends[t.id].Status == "completed" {
			want = amount(w, cmp.Or(t.price, prices[t.model]))
		}
		if got := amount(w, ends[t.id].Cost.String()); got.Cmp(want) != 0 {
			w.t.Errorf("%s (%s) costs %s, want %s", t.id, ends[t.id].Status, got.FloatString(6), want.FloatString(6))
		}
		spent.Add(spent, want)
	}
	var account struct{ Available, Held, Spent string }
	w.admin(http.MethodGet, "/accounts/"+w.account, nil, &account)
	left := new(big.Rat).Sub(amount(w, granted), spent)
	if amount(w, account.Available).Cmp(left) != 0 || amount(w, account.Held).Sign() != 0 || amount(w, account.Spent).Cmp(spent) != 0 {
		w.t.Errorf("the account has %+v, want available %s, held 0, spent %s", account, left.FloatString(6), spent.FloatString(6))
	}
	var key struct {
		Remain json.Number `json:"remain_balance"`
		Used   json.Number `json:"used_balance"`
	}
	if err := w.get("/v1/balance", w.key, &key); err != nil {
		w.t.Error(err)
	} else if amount(w, key.Remain.String()).Cmp(left) != 0 || amount(w, key.Used.String()).Cmp(spent) != 0 {
		w.t.Errorf("the key has %+v, want %s left, %s used", key, left.FloatString(6), spent.FloatString(6))
	}
	var check struct {
		OK       bool     `json:"ok"`
		Checked  int      `json:"checked"`
		Problems []string `json:"problems"`
	}
	w.admin(http.MethodGet, "/ledger/check", nil, &check)
	if !check.OK || check.Checked == 0 || len(check.Problems) > 0 {
		w.t.Errorf("the ledger check says %+v", check)
	}
}

func amount(w *world, text string) *big.Rat {
	w.t.Helper()
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		w.t.Fatalf("%q is no amount", text)
	}
	return r
}

// checkHooks compares the received webhooks with the expected ones. Each must arrive at least
// once, under one id, signed, and with the same bytes each time.
func (w *world) checkHooks(ends map[string]object) {
	w.t.Helper()
	came := w.hooks.deliveries()
	for _, t := range w.tasks {
		arrivals := came[t.id]
		delete(came, t.id)
		o := ends[t.id]
		if !t.hook || o.Status == "cancelled" {
			if len(arrivals) > 0 {
				w.t.Errorf("%s (%s) was delivered %d times, want never", t.id, o.Status, len(arrivals))
			}
			if t.hook && (o.Webhook == nil || o.Webhook.State != "dropped") {
				w.t.Errorf("the webhook of %s (cancelled) is %+v, want dropped", t.id, o.Webhook)
			}
			continue
		}
		if len(arrivals) == 0 || o.Webhook == nil || o.Webhook.State != "delivered" {
			w.t.Errorf("%s: %d deliveries came, its webhook is %+v", t.id, len(arrivals), o.Webhook)
			continue
		}
		var body object
		if err := json.Unmarshal([]byte(arrivals[0].body), &body); err != nil || body.ID != t.id || body.Status != o.Status {
			w.t.Errorf("the webhook of %s says %s %s (%v)", t.id, body.ID, body.Status, err)
		}
		for _, a := range arrivals {
			if a.err != nil || a.body != arrivals[0].body {
				w.t.Errorf("a delivery of %s: %v, same bytes %t", t.id, a.err, a.body == arrivals[0].body)
			}
		}
	}
	for id, arrivals := range came {
		w.t.Errorf("%d deliveries of %q, which was not acknowledged to a client", len(arrivals), id)
	}
}

// checkBucket checks the world's bucket: one object for each result, and no unfinished upload.
func (w *world) checkBucket(ends map[string]object) {
	w.t.Helper()
	store := w.bucket()
	found := map[string]int{}
	var objects []types.Object
	for pages := s3.NewListObjectsV2Paginator(store, &s3.ListObjectsV2Input{Bucket: &w.s3.Bucket}); pages.HasMorePages(); {
		page, err := pages.NextPage(w.t.Context())
		if err != nil {
			w.t.Fatal(err)
		}
		objects = append(objects, page.Contents...)
	}
	for _, o := range objects {
		if aws.ToString(o.Key) == "results/probe" {
			continue // left by a worker that was killed while it probed the bucket; the next probe replaces it
		}
		if w.uploads[aws.ToString(o.Key)] {
			continue // kept for as long as its link works
		}
		if strings.HasSuffix(aws.ToString(o.Key), "/outcome.json") {
			continue // a manifest stays for a day (D17)
		}
		parts := strings.Split(aws.ToString(o.Key), "/") // results/<task>/<attempt>/<index>
		if len(parts) != 4 || parts[0] != "results" {
			w.t.Errorf("unexpected object %s", aws.ToString(o.Key))
			continue
		}
		found[parts[1]]++
	}
	want := map[string]int{}
	for _, t := range w.tasks {
		if n := t.wantObjects(ends[t.id].Status); n > 0 {
			want[t.id] = n
		}
	}
	if diff := gocmp.Diff(want, found); diff != "" {
		w.t.Errorf("objects by task (-want +got):\n%s", diff)
	}
	uploads, err := store.ListMultipartUploads(w.t.Context(), &s3.ListMultipartUploadsInput{Bucket: &w.s3.Bucket})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, u := range uploads.Uploads {
		if aws.ToString(u.Key) == "results/probe" {
			continue // the upload may be in progress
		}
		w.t.Errorf("an upload of %s was never finished", aws.ToString(u.Key))
	}
}

// bucket returns a client of the S3 service that is not our own.
func (w *world) bucket() *s3.Client {
	return s3.New(s3.Options{
		Region: w.s3.Region, BaseEndpoint: &w.s3.Endpoint, UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider(w.s3.AccessKeyID, w.s3.SecretAccessKey, ""),
	})
}

// checkWorkflows checks that no run hangs: only the singletons may be open.
func (w *world) checkWorkflows() {
	w.t.Helper()
	c := w.dial()
	defer c.Close()
	eventually(w.t, 30*time.Second, "all runs end", func() error {
		open, err := c.ListWorkflow(w.t.Context(), &workflowservice.ListWorkflowExecutionsRequest{
			Namespace: w.namespace, Query: `ExecutionStatus = "Running" AND WorkflowType IN ("Generate", "DeliverWebhook")`,
		})
		if err != nil {
			return err
		}
		var left []string
		for _, e := range open.GetExecutions() {
			left = append(left, e.GetExecution().GetWorkflowId())
		}
		if len(left) > 0 {
			return fmt.Errorf("still open: %v", left)
		}
		return nil
	})
}

// dial returns a client of the world's Temporal server.
func (w *world) dial() client.Client {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 30*time.Second)
	defer cancel()
	c, err := client.DialContext(ctx, client.Options{HostPort: w.temporalAt, Namespace: w.namespace, Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler))})
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// checkCharged checks the recorded vendor charges of all successful attempts. want is their
// provider and unit, and every amount must be positive.
func (w *world) checkCharged(want string) {
	w.t.Helper()
	got, err := w.column(`SELECT DISTINCT provider || ' ' || vendor_unit || CASE WHEN vendor_amount > 0 THEN '' ELSE ' for nothing' END
		FROM attempts WHERE succeeded`)
	if err != nil {
		w.t.Fatal(err)
	}
	if diff := gocmp.Diff([]string{want}, got); diff != "" {
		w.t.Errorf("what vendors charged (-want +got):\n%s", diff)
	}
}
