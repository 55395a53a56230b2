package e2e_test

import (
	"database/sql"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/google/go-cmp/cmp"
	enumspb "go.temporal.io/api/enums/v1"
	_ "modernc.org/sqlite"

	"github.com/mediagate/mediagate/internal/failpoint"
)

// TestErasureOutlivesTheProcess checks that an erasure is completed if the process dies before
// it has touched the bucket. The test reads the database, the bucket and Temporal directly. None
// of them may contain the prompt or a link. The database may not contain the vendor's id of the
// job either, which histories keep.
func TestErasureOutlivesTheProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{shape: standalone, failpoint: failpoint.TaskErased})
	doomed, kept := w.submit(job{model: alpha, idemKey: "erased"}), w.submit(job{model: alpha})
	ends := w.awaitEnds(recoverTime)
	link := ends[doomed.id].items()[0]
	if err := w.fetch(link); err != nil {
		t.Fatal(err)
	}
	jobs, err := w.jobs(doomed)
	if err != nil || len(jobs) != 1 {
		t.Fatalf("jobs %+v, %v", jobs, err)
	}
	for _, word := range []string{doomed.ref, jobs[0].ID} {
		if found := w.inDatabase(word); len(found) == 0 {
			t.Fatalf("the database never had %s", word)
		}
	}

	erase := request{method: http.MethodDelete, url: w.apiURLs[0] + "/v1/tasks/" + doomed.id, key: w.key}
	if a, err := erase.do(t.Context()); err == nil {
		t.Fatalf("the erasure was answered: %d %s", a.status, a.body)
	}
	w.victim().awaitKilled(t, crashLimit)
	w.victim().start(t)
	if a, err := erase.do(t.Context()); err != nil || a.status != http.StatusBadRequest {
		t.Errorf("again: %d %s, %v", a.status, a.body, err)
	}
	eventually(t, time.Minute, "the bucket has nothing of it", func() error {
		return w.notInBucket(doomed.id)
	})
	if a, err := (request{method: http.MethodGet, url: link.URL[0]}).do(t.Context()); err != nil || a.status != http.StatusNotFound {
		t.Errorf("its link answers %d, %v", a.status, err)
	}
	for _, word := range []string{doomed.ref, jobs[0].ID, "results/" + doomed.id} {
		if found := w.inDatabase(word); len(found) > 0 {
			t.Errorf("the database has %s:\n%s", word, strings.Join(found, "\n"))
		}
		if word != jobs[0].ID && w.inHistory(doomed.id, word) {
			t.Errorf("Temporal has %s", word)
		}
	}

	// Without a crash, the link no longer works once the erasure is answered.
	last := ends[kept.id].items()[0]
	erase.url = w.apiURLs[0] + "/v1/tasks/" + kept.id
	if a, err := erase.do(t.Context()); err != nil || a.status != http.StatusNoContent {
		t.Fatalf("erasure: %d %s, %v", a.status, a.body, err)
	}
	if a, err := (request{method: http.MethodGet, url: last.URL[0]}).do(t.Context()); err != nil || a.status != http.StatusNotFound {
		t.Errorf("the other's link answers %d, %v", a.status, err)
	}
	w.tasks = nil
	var check struct{ OK bool }
	w.admin(http.MethodGet, "/ledger/check", nil, &check)
	if !check.OK {
		t.Error("the ledger is broken")
	}
	for _, task := range []*task{doomed, kept} {
		w.checkLedger(task, "post", "hold")
	}
	w.checkBucket(nil)
	w.checkWorkflows()
}

// checkLedger compares the kinds of the task's ledger entries, newest first.
func (w *world) checkLedger(t *task, kinds ...string) {
	w.t.Helper()
	var ledger struct {
		Data []struct{ Kind string }
	}
	w.admin(http.MethodGet, "/accounts/"+w.account+"/ledger?task="+t.id, nil, &ledger)
	var got []string
	for _, entry := range ledger.Data {
		got = append(got, entry.Kind)
	}
	if diff := cmp.Diff(kinds, got); diff != "" {
		w.t.Errorf("ledger entries of %s (-want +got):\n%s", t.id, diff)
	}
}

// inDatabase returns the rows of a standalone's own tables that contain the text.
func (w *world) inDatabase(text string) (found []string) {
	w.t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(w.dir, "data", "mediagate.db")+"?mode=ro")
	if err != nil {
		w.t.Fatal(err)
	}
	defer db.Close()
	tables := w.rows(db, "SELECT name FROM sqlite_master WHERE type = 'table'")
	if len(tables) < 15 {
		w.t.Fatalf("only the tables %v", tables)
	}
	for _, table := range tables {
		for _, row := range w.rows(db, "SELECT * FROM "+table) {
			if strings.Contains(row, text) {
				found = append(found, table+": "+row)
			}
		}
	}
	return found
}

// rows returns the rows of a query as text.
func (w *world) rows(db *sql.DB, query string) (texts []string) {
	w.t.Helper()
	rows, err := db.QueryContext(w.t.Context(), query)
	if err != nil {
		w.t.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		w.t.Fatal(err)
	}
	for rows.Next() {
		values := make([]sql.NullString, len(columns))
		into := make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			w.t.Fatal(err)
		}
		var cells []string
		for _, v := range values {
			cells = append(cells, v.String)
		}
		texts = append(texts, strings.Join(cells, " "))
	}
	if err := rows.Err(); err != nil {
		w.t.Fatal(err)
	}
	return texts
}

// notInBucket returns an error while the bucket has an object of the task or an unfinished
// upload.
func (w *world) notInBucket(id string) error {
	store := w.bucket()
	objects, err := store.ListObjectsV2(w.t.Context(), &s3.ListObjectsV2Input{Bucket: &w.s3.Bucket})
	if err != nil {
		return err
	}
	uploads, err := store.ListMultipartUploads(w.t.Context(), &s3.ListMultipartUploadsInput{Bucket: &w.s3.Bucket})
	if err != nil {
		return err
	}
	for _, o := range objects.Contents {
		if strings.Contains(aws.ToString(o.Key), id) {
			return fmt.Errorf("there is %s", aws.ToString(o.Key))
		}
	}
	for _, u := range uploads.Uploads {
		if strings.Contains(aws.ToString(u.Key), id) {
			return fmt.Errorf("there is an upload of %s", aws.ToString(u.Key))
		}
	}
	return nil
}

// inHistory reports whether Temporal's data of the task contains the text: its history, its
// memo, or its page.
func (w *world) inHistory(id, text string) bool {
	w.t.Helper()
	c := w.dial()
	defer c.Close()
	events := 0
	for _, workflow := range []string{id, "webhook/" + id + "/1"} {
		for history := c.GetWorkflowHistory(w.t.Context(), workflow, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); history.HasNext(); events++ {
			event, err := history.Next()
			if err != nil {
				w.t.Fatal(err)
			}
			raw, err := event.Marshal() // contains the payloads as they were written
			if err != nil {
				w.t.Fatal(err)
			}
			if strings.Contains(string(raw), text) {
				return true
			}
		}
		described, err := c.DescribeWorkflow(w.t.Context(), workflow, "")
		if err != nil {
			w.t.Fatal(err)
		}
		if strings.Contains(fmt.Sprintf("%+v", described), text) {
			return true
		}
	}
	if events < 10 {
		w.t.Fatalf("only %d events of %s", events, id)
	}
	return false
}
