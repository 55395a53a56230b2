package e2e_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/jackc/pgx/v5"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/proto"

	"github.com/mediagate/mediagate/sandbox/sample"
)

// columns holds the columns of our database that may contain words of clients, and why. No other
// column may.
var columns = map[string]string{
	"tasks.params":              "the request, which the vendor is sent",
	"tasks.webhook_url":         "where the callback goes",
	"tasks.document made":       "title and lyrics of a song and the final prompt of a picture, as the vendor tells them: they belong to the result",
	"attempts.document outcome": "the same, until and after it has become the result",
}

// leak holds the secrets and the words of a run, and the API's answers.
type leak struct {
	*world
	secrets map[string]string // by their meaning; may be nowhere
	words   map[string]string // words of clients; may be only in the columns above
	answers bytes.Buffer      // of the API, except those that hand out a secret
}

// secret returns a new secret that the search recognises everywhere.
func (l *leak) secret(what string) string {
	l.secrets[what] = "sEc" + randomText(37)
	return l.secrets[what]
}

// word returns a new word of a client.
func (l *leak) word(what string) string {
	l.words[what] = "wOrd" + randomText(24)
	return l.words[what]
}

// TestLeak runs everything once and then searches for each secret and each word of a client in
// all output of the product: its database, Temporal's histories, the logs, the names in the
// bucket, the printed settings, the arguments of processes and the answers of the API.
func TestLeak(t *testing.T) {
	t.Parallel()
	long(t)
	l := &leak{secrets: map[string]string{}, words: map[string]string{}}
	vendor := echoVendor(t)
	l.world = newWorld(t, options{shape: production, alter: func(settings map[string]any) {
		settings["log_level"] = "debug"
		settings["admin_key"] = l.secret("admin key")
		first, former := randomText(32), randomText(32)
		l.secrets["encryption key"], l.secrets["former encryption key"] = first, former
		settings["encryption_keys"] = []string{base64.StdEncoding.EncodeToString([]byte(first)), base64.StdEncoding.EncodeToString([]byte(former))}
		u, err := url.Parse(settings["database_url"].(string))
		if err != nil {
			t.Fatal(err)
		}
		u.User = url.UserPassword(u.User.Username(), l.secret("password of the database")) // the server does not check it
		settings["database_url"] = u.String()
		l.secrets["key of the bucket"] = settings["s3"].(map[string]any)["secret_access_key"].(string)
		for _, c := range settings["channels"].([]map[string]any) {
			c["callback_secret"] = l.secret("callback secret of " + c["name"].(string))
			if c["provider"] == "minimax" {
				c["base_url"], c["credentials"] = vendor, map[string]string{"api_key": l.secret("key of a vendor that repeats it")}
				continue
			}
			for name, value := range c["credentials"].(map[string]string) {
				if name != "project" && name != "location" && name != "service_account" {
					l.secrets[name+" of "+c["name"].(string)] = value
				}
			}
		}
	}})
	l.secrets["API key"] = l.key
	l.run()
	l.await()
	l.ask()

	l.searchDatabase()
	l.searchHistories()
	l.searchFiles()
	l.search("the answers", l.answers.Bytes(), nil)
}

// echoVendor refuses all calls and repeats their content in the refusal, including the
// credentials.
func echoVendor(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := r.Header.Get("Authorization")
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Echo", key)
		_ = json.NewEncoder(w).Encode(map[string]any{
			"task_id": "", "base_resp": map[string]any{
				"status_code": 2013, "status_msg": "invalid params for " + key + " (" + strings.TrimPrefix(key, "Bearer ") + ", " + base64.StdEncoding.EncodeToString([]byte(key)) + ")",
			},
		})
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// post makes a client's call.
func (l *leak) post(path, key string, body map[string]any, status int) answer {
	l.t.Helper()
	a, err := request{method: http.MethodPost, url: l.apiURLs[0] + path, key: key, body: body}.do(l.t.Context())
	if err != nil || a.status != status {
		l.t.Fatalf("POST %s: %d %s %v", path, a.status, a.body, err)
	}
	return a
}

// ends submits a task that may end in any way.
func (l *leak) ends(path string, body map[string]any) {
	l.t.Helper()
	id, err := taskID(l.post(path, l.key, body, http.StatusOK))
	if err != nil {
		l.t.Fatal(err)
	}
	l.tasks = append(l.tasks, &task{id: id})
}

func (l *leak) run() {
	prompt := func(what, directive string) string {
		text := "a fox " + l.word("prompt of "+what)
		if directive != "" {
			text += " [[sandbox: " + directive + "]]"
		}
		return text
	}
	video := func(what, directive string, more map[string]any) {
		body := map[string]any{"model": alpha, "prompt": prompt(what, directive)}
		maps.Copy(body, more)
		l.ends("/v1/videos/generations", body)
	}
	hook := l.hooks.url + "?token=" + l.word("token of a webhook")
	video("a video", "duration=1s", map[string]any{"webhook": hook, "negative_prompt": l.word("negative prompt")})
	video("a moderated video", "fail=moderation", map[string]any{"webhook": hook})
	video("a rejected video", "fail=reject", nil)
	video("a video that fails", "fail=internal, at=poll", map[string]any{"webhook": hook})
	video("a video whose link is broken", "fail=internal, at=download", nil)
	l.ends("/v1/videos/generations", map[string]any{"model": delta, "prompt": prompt("a vendor that repeats its key", "")})
	l.ends("/v1/videos/generations", map[string]any{"model": beta, "prompt": prompt("a video of a picture", ""), "image_urls": []string{
		l.upload(l.word("name of a file")+".png", sample.Image(640, 360)), l.media.url(goodImage) + "?token=" + l.word("token of a picture"),
	}})
	l.ends("/v1/videos/generations", map[string]any{"model": beta, "prompt": prompt("a video of no picture", ""), "image_urls": []string{
		l.media.url("gone/" + l.word("address of no picture")),
	}})
	for _, model := range []string{theta, zeta} {
		l.ends("/v1/images/generations", map[string]any{"model": model, "prompt": prompt("an image of "+model, "")})
	}
	l.ends("/v1/music/generations", map[string]any{
		"model": "music-a", "custom": true, "instrumental": false, "title": l.word("title of a song"), "style": l.word("style of a song"), "prompt": prompt("a song", ""),
	})
	l.ends("/v1"+artgen, map[string]any{"prompt": prompt("art", "")})
	l.post("/v1/audio/speech", l.key, map[string]any{"model": "eta-4o-mini-tts", "input": l.word("words to speak"), "voice": "coral"}, http.StatusOK)

	// A refused request is neither stored nor logged.
	refused := l.word("refused prompt")
	l.answers.Write(l.post("/v1/videos/generations", "mgk_"+l.secret("unknown key"), map[string]any{"model": alpha, "prompt": refused}, http.StatusUnauthorized).body)
	l.post("/v1/videos/generations", l.key, map[string]any{"model": alpha, "prompt": refused, "duration": refused}, http.StatusBadRequest)
	l.post("/v1/videos/generations", l.key, map[string]any{"model": refused, "prompt": refused}, http.StatusBadRequest)
	l.post("/v1/videos/generations", l.key, map[string]any{"model": alpha, "prompt": []string{refused}}, http.StatusBadRequest)
	video("a callback to where none may go", "", map[string]any{"webhook": "http://10.0.0.1/" + l.word("refused address of a webhook")})

	// Keys and secrets that are created, replaced and revoked.
	var made struct{ ID, Key string }
	l.admin(http.MethodPost, "/accounts/"+l.account+"/keys", map[string]any{"name": "short", "unlimited": true}, &made)
	l.secrets["revoked key"] = made.Key
	if a, err := (request{method: http.MethodDelete, url: l.apiURLs[0] + "/admin/v1/keys/" + made.ID, key: l.adminKey}).do(l.t.Context()); err != nil || a.status/100 != 2 {
		l.t.Fatalf("revoke: %d %s %v", a.status, a.body, err)
	}
	eventually(l.t, 10*time.Second, "the revoked key is refused", func() error {
		a, err := request{method: http.MethodGet, url: l.apiURLs[0] + "/v1/tasks", key: made.Key}.do(l.t.Context())
		if err == nil && a.status != http.StatusUnauthorized {
			err = fmt.Errorf("the answer is %d", a.status)
		}
		l.answers.Write(a.body)
		return err
	})
}

// await waits for the ends of tasks and callbacks, and then replaces the account's signing
// secret.
func (l *leak) await() {
	for _, one := range l.tasks {
		eventually(l.t, time.Minute, one.id+" ends", func() error {
			o, err := l.read(one.id)
			if err == nil && (!o.terminal() || o.Webhook != nil && o.Webhook.State == "pending") {
				err = errors.New("it is " + o.Status)
			}
			return err
		})
	}
	var secret struct{ Secret string }
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		a, err := request{method: method, url: l.apiURLs[0] + "/v1/webhooks/secret", key: l.key}.do(l.t.Context())
		if err == nil {
			err = a.decode(&secret)
		}
		if err != nil {
			l.t.Fatal(err)
		}
		l.secrets["webhook secret of "+method] = strings.TrimPrefix(secret.Secret, "whsec_")
		raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret.Secret, "whsec_"))
		if err != nil {
			l.t.Fatal(err)
		}
		l.secrets["bytes of the webhook secret of "+method] = string(raw)
	}
}

// ask records the answers that operators get.
func (l *leak) ask() {
	for _, path := range []string{"/admin/v1/keys", "/admin/v1/channels", "/admin/v1/accounts", "/admin/v1/accounts/" + l.account + "/ledger", "/readyz"} {
		a, err := request{method: http.MethodGet, url: l.apiURLs[0] + path, key: l.adminKey}.do(l.t.Context())
		if err != nil || a.status != http.StatusOK {
			l.t.Fatalf("GET %s: %d %s %v", path, a.status, a.body, err)
		}
		l.answers.Write(a.body)
	}
}

// forms returns the encodings in which a text may have been written. Within longer data, its
// base64 depends on its offset.
func forms(text string) map[string]string {
	quoted, _ := json.Marshal(text)
	all := map[string]string{
		"": text, ", quoted": strings.Trim(string(quoted), `"`), ", escaped": url.QueryEscape(text),
		", in hex": hex.EncodeToString([]byte(text)), ", in HEX": strings.ToUpper(hex.EncodeToString([]byte(text))),
	}
	for shift := range 3 {
		for name, encoding := range map[string]*base64.Encoding{"base64": base64.RawStdEncoding, "base64 for URLs": base64.RawURLEncoding} {
			encoded := encoding.EncodeToString(append(make([]byte, shift), text...))
			begin := (shift*8 + 5) / 6 // the first digit that depends on the text alone
			all[", in "+name+" "+strconv.Itoa(shift)] = encoded[begin : len(encoded)-1]
		}
	}
	return all
}

// search searches for all secrets, and for the words of clients that are not allowed.
func (l *leak) search(where string, written []byte, allowed func(what string) bool) {
	l.t.Helper()
	for _, sought := range []map[string]string{l.secrets, l.words} {
		for what, text := range sought {
			if _, word := l.words[what]; word && allowed != nil && allowed(what) {
				continue
			}
			for form, look := range forms(text) {
				if i := bytes.Index(written, []byte(look)); i >= 0 {
					l.t.Errorf("%s: the %s%s: …%q…", where, what, form, written[max(0, i-60):min(len(written), i+len(look)+20)])
					break
				}
			}
		}
	}
}

// searchDatabase searches each column of each table, and bytes as they are.
func (l *leak) searchDatabase() {
	ctx := l.t.Context()
	db, err := pgx.Connect(ctx, l.databaseURL)
	if err != nil {
		l.t.Fatal(err)
	}
	defer func() { _ = db.Close(context.WithoutCancel(ctx)) }()
	rows, err := db.Query(ctx, `SELECT table_name, column_name, data_type FROM information_schema.columns
		WHERE table_schema NOT IN ('pg_catalog', 'information_schema') ORDER BY 1, 2`)
	if err != nil {
		l.t.Fatal(err)
	}
	type column struct{ Table, Name, Type string }
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[column])
	if err != nil {
		l.t.Fatal(err)
	}
	seen := map[string]bool{}
	search := func(table, name, value string) {
		rows, err := db.Query(ctx, "SELECT "+value+" FROM "+pgx.Identifier{table}.Sanitize())
		if err != nil {
			l.t.Fatal(err)
		}
		var all bytes.Buffer
		for rows.Next() {
			var text []byte
			if err := rows.Scan(&text); err != nil {
				l.t.Fatal(err)
			}
			all.Write(text)
			all.WriteByte('\n')
		}
		if err := rows.Err(); err != nil {
			l.t.Fatal(err)
		}
		name = table + "." + name
		_, may := columns[name]
		l.search("the database's "+name, all.Bytes(), func(string) bool { return may })
		for _, word := range l.words {
			seen[name] = seen[name] || may && bytes.Contains(all.Bytes(), []byte(word))
		}
	}
	parts := map[string]string{"tasks.document": "made", "attempts.document": "outcome"}
	for _, c := range list {
		column := pgx.Identifier{c.Name}.Sanitize()
		if part := parts[c.Table+"."+c.Name]; part != "" { // searched separately
			search(c.Table, c.Name, "("+column+"::jsonb - '"+part+"')::text")
			search(c.Table, c.Name+" "+part, "("+column+"::jsonb -> '"+part+"')::text")
		} else if c.Type == "bytea" {
			search(c.Table, c.Name, column)
		} else {
			search(c.Table, c.Name, column+"::text")
		}
	}
	for name := range columns {
		if !seen[name] {
			l.t.Errorf("%s contains no word of a client: remove it from columns", name)
		}
	}
	if len(list) < 50 {
		l.t.Errorf("only %d columns were read", len(list))
	}
}

// searchHistories searches all runs: their events and their descriptions, with memo, search
// attributes, summaries and the heartbeats of activities in progress.
func (l *leak) searchHistories() {
	ctx := l.t.Context()
	c := l.dial()
	defer c.Close()
	var events int
	read := func(id, run string) {
		var all bytes.Buffer
		add := func(m proto.Message) {
			raw, err := proto.Marshal(m)
			if err != nil {
				l.t.Fatal(err)
			}
			all.Write(raw)
		}
		history := c.GetWorkflowHistory(ctx, id, run, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for history.HasNext() {
			event, err := history.Next()
			if err != nil {
				l.t.Fatal(err)
			}
			add(event)
			events++
		}
		about, err := c.DescribeWorkflowExecution(ctx, id, run)
		if err != nil {
			l.t.Fatal(err)
		}
		add(about)
		l.search("the history of "+id, all.Bytes(), nil)
	}
	var runs []*workflowservice.ListWorkflowExecutionsResponse
	eventually(l.t, time.Minute, "all runs are listed", func() error {
		runs = nil
		ids := map[string]bool{}
		for next := []byte(nil); ; {
			page, err := c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Namespace: l.namespace, NextPageToken: next})
			if err != nil {
				return err
			}
			runs = append(runs, page)
			for _, e := range page.GetExecutions() {
				ids[e.GetExecution().GetWorkflowId()] = true
			}
			if next = page.GetNextPageToken(); len(next) == 0 {
				break
			}
		}
		for _, one := range l.tasks {
			if !ids[one.id] {
				return errors.New("that of " + one.id + " is not")
			}
		}
		return nil
	})
	for _, page := range runs {
		for _, e := range page.GetExecutions() {
			read(e.GetExecution().GetWorkflowId(), e.GetExecution().GetRunId())
		}
	}
	if events < 10*len(l.tasks) {
		l.t.Errorf("only %d events were read", events)
	}
}

// searchFiles searches the logs and the arguments of all processes, the output of `mediagate
// config`, and the names in the bucket.
func (l *leak) searchFiles() {
	logs, err := filepath.Glob(filepath.Join(l.dir, "*.log"))
	if err != nil || len(logs) < 3 {
		l.t.Fatalf("logs: %q %v", logs, err)
	}
	for _, name := range logs {
		text, err := os.ReadFile(name)
		if err != nil {
			l.t.Fatal(err)
		}
		if strings.HasPrefix(filepath.Base(name), "worker") && !bytes.Contains(text, []byte(`"level":"DEBUG"`)) {
			l.t.Errorf("%s has no lines of level DEBUG", name)
		}
		l.search(filepath.Base(name), text, nil)
	}
	for _, s := range slices.Concat(l.apis, l.workers) {
		arguments, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", s.cmd.Process.Pid))
		if err != nil {
			l.t.Fatal(err)
		}
		l.search("the arguments of "+s.name, arguments, nil)
	}
	config := exec.CommandContext(l.t.Context(), filepath.Join(suite.bin, "mediagate"), "config")
	config.Env = []string{"MEDIAGATE_CONFIG=" + filepath.Join(l.dir, "mediagate.yaml")} // the command gets no other setting
	printed, err := config.CombinedOutput()
	if err != nil || !bytes.Contains(printed, []byte("minimax-a")) {
		l.t.Fatalf("mediagate config: %v\n%s", err, printed)
	}
	l.search("mediagate config", printed, nil)

	var names bytes.Buffer
	pages := s3.NewListObjectsV2Paginator(l.bucket(), &s3.ListObjectsV2Input{Bucket: aws.String(l.s3.Bucket)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(l.t.Context())
		if err != nil {
			l.t.Fatal(err)
		}
		for _, o := range page.Contents {
			_, _ = io.WriteString(&names, aws.ToString(o.Key)+"\n")
		}
	}
	if names.Len() == 0 {
		l.t.Error("the bucket is empty")
	}
	l.search("the names in the bucket", names.Bytes(), nil)
}
