package operator_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate/cmd/mediagate/operator"
)

const adminKey = "0123456789abcdef0123456789abcdef"

// request is what the gateway saw.
type request struct {
	Method, Target, Auth string
	Body                 map[string]any
}

// gateway answers every request alike and keeps what was asked.
type gateway struct {
	*httptest.Server
	seen chan request
}

func serve(t *testing.T, status int, answer string) *gateway {
	t.Helper()
	g := &gateway{seen: make(chan request, 8)}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := request{Method: r.Method, Target: r.URL.RequestURI(), Auth: r.Header.Get("Authorization")}
		text, _ := io.ReadAll(r.Body)
		if len(text) > 0 {
			if err := json.Unmarshal(text, &q.Body); err != nil {
				t.Errorf("the body %q is no JSON: %v", text, err)
			}
		}
		g.seen <- q
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(g.Close)
	return g
}

// requests are those that were made so far.
func (g *gateway) requests() (list []request) {
	for {
		select {
		case q := <-g.seen:
			list = append(list, q)
		default:
			return list
		}
	}
}

func (g *gateway) env() []string {
	return []string{"MEDIAGATE_URL=" + g.URL, "MEDIAGATE_ADMIN_KEY=" + adminKey}
}

func run(t *testing.T, env []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = operator.Run(t.Context(), args, env, &out, &err)
	return code, out.String(), err.String()
}

const (
	account = `{"id":"acc_1","name":"acme","group":"default","available":"12.5","held":"1","spent":"0.25","created":1700000000}`
	key     = `{"id":"key_1","prefix":"mg-ab","last_four":"wxyz","account":"acc_1","name":"ci","unlimited":false,"quota":"5",` +
		`"held":"0.5","spent":"1.25","models":[],"group":null,"expires_at":null,"allow_ips":[],"created":1700000000,"last_used_at":null}`
	free = `{"id":"key_2","prefix":"mg-cd","last_four":"wxyz","account":"acc_1","name":"other","unlimited":true,"quota":null,` +
		`"held":"0","spent":"0","expires_at":1800000000,"last_used_at":1700000000}`
	channel = `{"name":"kling-a","provider":"kling","models":[],"priority":0,"weight":1,"concurrency":50,"enabled":true,"state":"broken",` +
		`"reason":"provider_out_of_funds","since":1772366400,"next_probe_at":1772366430,"in_flight":3,"waiting":12,"oldest":1772360000,` +
		`"polling":2,"error_rate":0.2857,"last_error":"submit: funds","last_error_at":1772366400}`
	idle = `{"name":"veo","provider":"veo","models":[],"priority":0,"weight":1,"concurrency":0,"enabled":true,"state":"up","reason":null,"since":null,` +
		`"next_probe_at":null,"in_flight":0,"waiting":0,"oldest":null,"polling":0,"error_rate":null,"last_error":null,"last_error_at":null}`
	channelHead = "NAME     PROVIDER  STATE   REASON                 SINCE                 NEXT_PROBE_AT         IN_FLIGHT  WAITING  OLDEST                POLLING  ERROR_RATE  LAST_ERROR\n" +
		"kling-a  kling     broken  provider_out_of_funds  2026-03-01T12:00:00Z  2026-03-01T12:00:30Z  3          12       2026-03-01T10:13:20Z  2        0.2857      submit: funds\n"
)

func list(more bool, items ...string) string {
	text, _ := json.Marshal(more)
	return `{"object":"list","data":[` + strings.Join(items, ",") + `],"has_more":` + string(text) + `}`
}

func TestCommands(t *testing.T) {
	t.Parallel()
	const created = `{"id":"key_1","name":"ci","key":"mg-secret","prefix":"mg-ab"}`
	for name, test := range map[string]struct {
		args   []string
		status int
		answer string
		want   request // less the key
		table  string
		json   string // empty: the answer
	}{
		"accounts list, a page": {
			args: []string{"accounts", "list", "-limit", "1", "-after", "acc_0"}, status: 200, answer: list(true, account),
			want: request{Method: "GET", Target: "/accounts?after=acc_0&limit=1"},
			table: "ID     NAME  GROUP    AVAILABLE  HELD  SPENT\n" +
				"acc_1  acme  default  12.5       1     0.25\n" +
				"… more: -after acc_1\n",
		},
		"no accounts": {
			args: []string{"accounts", "list"}, status: 200, answer: list(false),
			want:  request{Method: "GET", Target: "/accounts?limit=100"},
			table: "ID  NAME  GROUP  AVAILABLE  HELD  SPENT\n",
		},
		"accounts create": {
			args: []string{"accounts", "create", "-name", "acme"}, status: 201, answer: account,
			want: request{Method: "POST", Target: "/accounts", Body: map[string]any{"name": "acme"}},
			table: "ID     NAME  GROUP    AVAILABLE  HELD  SPENT\n" +
				"acc_1  acme  default  12.5       1     0.25\n",
		},
		"accounts create with limits": {
			args: []string{
				"accounts", "create", "-name", "acme", "-group", "gold", "-rate", "60", "-in-flight", "0", "-erase-inputs",
			},
			status: 201, answer: account,
			want: request{Method: "POST", Target: "/accounts", Body: map[string]any{
				"name": "acme", "group": "gold", "rate": 60.0, "in_flight": 0.0, "erase_inputs": true,
			}},
			table: "ID     NAME  GROUP    AVAILABLE  HELD  SPENT\n" +
				"acc_1  acme  default  12.5       1     0.25\n",
		},
		"accounts grant": {
			args:   []string{"accounts", "grant", "-account", "acc_1", "-amount", "-12.50", "-reference", "invoice 1"},
			status: 201, answer: `{"id":"led_1","amount":"-12.5","reference":"invoice 1","available":"3"}`,
			want: request{
				Method: "POST", Target: "/accounts/acc_1/grants",
				Body: map[string]any{"amount": "-12.50", "reference": "invoice 1"},
			},
			table: "ID     AMOUNT  REFERENCE  AVAILABLE\nled_1  -12.5   invoice 1  3\n",
		},
		"accounts usage": {
			args: []string{"accounts", "usage", "-group-by", "day,provider", "-from", "2026-03-01"}, status: 200,
			answer: list(false, `{"day":"2026-03-01","cost":1000000.25,"credits_cost":1000000250,"tasks":{"pending":1,"processing":2,"completed":1000000,"failed":0,"cancelled":4},`+
				`"provider":"kling","vendor_charges":[{"amount":"2.5","unit":"unit"},{"amount":"0.35","unit":"USD"}]}`),
			want: request{Method: "GET", Target: "/usage?from=2026-03-01&group_by=day%2Cprovider"},
			table: "DAY         PROVIDER  COST        OPEN  COMPLETED  FAILED  CANCELLED  VENDOR_CHARGES\n" +
				"2026-03-01  kling     1000000.25  3     1000000    0       4          2.5 unit, 0.35 USD\n",
		},
		"accounts usage, with spaces": {
			args: []string{"accounts", "usage", "-group-by", "day, model"}, status: 200,
			answer: list(false, `{"day":"2026-03-01","model":"alpha-v3","cost":1,"tasks":{"pending":0,"processing":0,"completed":1,"failed":0,"cancelled":0}}`),
			want:   request{Method: "GET", Target: "/usage?group_by=day%2C+model"},
			table: "DAY         MODEL     COST  OPEN  COMPLETED  FAILED  CANCELLED\n" +
				"2026-03-01  alpha-v3  1     0     1          0       0\n",
		},
		"accounts statement": {
			args: []string{"accounts", "statement", "-account", "acc/1", "-to", "1772366400", "-after", "txn_0"}, status: 200,
			answer: `{"object":"statement","opening":{"available":"1.00","held":"0.00","spent":"0.00"},"data":[{"id":"txn_1","kind":"hold","amount":"0.42",` +
				`"task":"task_1","key":"key_1","at":1772366400,"reference":null,"model":"alpha-v3","change":{"available":"-0.42","held":"0.42","spent":"0.00"}}],` +
				`"closing":{"available":"0.58","held":"0.42","spent":"0.00"},"has_more":true}`,
			want: request{Method: "GET", Target: "/accounts/acc%2F1/statement?after=txn_0&limit=100&to=1772366400"},
			table: "AT                    KIND     AVAILABLE  HELD  SPENT  TASK    MODEL     KEY    REFERENCE\n" +
				"                      opening  1.00       0.00  0.00                            \n" +
				"2026-03-01T12:00:00Z  hold     -0.42      0.42  0.00   task_1  alpha-v3  key_1  \n" +
				"                      closing  0.58       0.42  0.00                            \n" +
				"… more: -after txn_1\n",
		},
		"keys list": {
			args: []string{"keys", "list", "-account", "acc_1"}, status: 200, answer: list(false, key),
			want: request{Method: "GET", Target: "/keys?account=acc_1&limit=100"},
			table: "ID     NAME  PREFIX  QUOTA  SPENT  EXPIRES_AT  LAST_USED_AT\n" +
				"key_1  ci    mg-ab   5      1.25               \n",
		},
		"keys list of all accounts": {
			args: []string{"keys", "list"}, status: 200, answer: list(false, key, free),
			want: request{Method: "GET", Target: "/keys?limit=100"},
			table: "ID     ACCOUNT  NAME   PREFIX  QUOTA      SPENT\n" +
				"key_1  acc_1    ci     mg-ab   5          1.25\n" +
				"key_2  acc_1    other  mg-cd   unlimited  0\n",
		},
		"keys list with times": {
			args: []string{"keys", "list", "-account", "acc_1"}, status: 200, answer: list(false, free),
			want: request{Method: "GET", Target: "/keys?account=acc_1&limit=100"},
			table: "ID     NAME   PREFIX  QUOTA      SPENT  EXPIRES_AT  LAST_USED_AT\n" +
				"key_2  other  mg-cd   unlimited  0      2027-01-15  2023-11-14\n",
		},
		"keys rotate": {
			args: []string{"keys", "rotate", "-key", "key/1"}, status: 201, answer: created,
			want:  request{Method: "POST", Target: "/keys/key%2F1/rotate", Body: map[string]any{}},
			table: "ID     NAME  KEY\nkey_1  ci    mg-secret\n",
		},
		"keys rotate with a grace time": {
			args: []string{"keys", "rotate", "-key", "key_1", "-grace", "90m"}, status: 201, answer: created,
			want:  request{Method: "POST", Target: "/keys/key_1/rotate", Body: map[string]any{"grace_seconds": 5400.0}},
			table: "ID     NAME  KEY\nkey_1  ci    mg-secret\n",
		},
		"keys rotate at once": {
			args: []string{"keys", "rotate", "-key", "key_1", "-grace", "0"}, status: 201, answer: created,
			want:  request{Method: "POST", Target: "/keys/key_1/rotate", Body: map[string]any{"grace_seconds": 0.0}},
			table: "ID     NAME  KEY\nkey_1  ci    mg-secret\n",
		},
		"audit list": {
			args: []string{"audit", "list", "-account", "acc_1", "-limit", "1"}, status: 200,
			answer: list(true, `{"id":"aud_1","at":1700000000,"by":"admin","action":"grant","object":"txn_1","account":"acc_1","before":null,"after":{"amount":"1.00"},"address":"192.0.2.1","request_id":"req_1"}`),
			want:   request{Method: "GET", Target: "/audit?account=acc_1&limit=1"},
			table: "AT                    BY     ACTION  OBJECT  ADDRESS\n" +
				"2023-11-14T22:13:20Z  admin  grant   txn_1   192.0.2.1\n" +
				"… more: -after aud_1\n",
		},
		"audit list with filters": {
			args: []string{"audit", "list", "-by", "admin", "-action", "grant", "-from", "2026-03-01"}, status: 200, answer: list(false),
			want:  request{Method: "GET", Target: "/audit?action=grant&by=admin&from=2026-03-01&limit=100"},
			table: "AT  BY  ACTION  OBJECT  ADDRESS\n",
		},
		"keys create": {
			args:   []string{"keys", "create", "-account", "acc/1", "-name", "ci", "-unlimited"},
			status: 201, answer: created,
			want: request{
				Method: "POST", Target: "/accounts/acc%2F1/keys", Body: map[string]any{"name": "ci", "unlimited": true},
			},
			table: "ID     NAME  KEY\nkey_1  ci    mg-secret\n",
		},
		"keys create with limits": {
			args: []string{
				"keys", "create", "-account", "acc_1", "-name", "ci", "-quota", "5", "-models", "alpha-*,theta-*",
				"-group", "gold", "-expires", "2030-01-01T00:00:00Z", "-allow-ips", "203.0.113.0/24",
				"-caps-day", "1", "-caps-week", "5.5", "-caps-month", "0", "-rate", "0", "-in-flight", "3", "-scopes", "read,generate",
			},
			status: 201, answer: created,
			want: request{Method: "POST", Target: "/accounts/acc_1/keys", Body: map[string]any{
				"name": "ci", "unlimited": false, "quota": "5", "models": []any{"alpha-*", "theta-*"}, "group": "gold",
				"expires_at": "2030-01-01T00:00:00Z", "allow_ips": []any{"203.0.113.0/24"},
				"caps": map[string]any{"day": "1", "week": "5.5", "month": "0"}, "rate": 0.0, "in_flight": 3.0, "scopes": []any{"read", "generate"},
			}},
			table: "ID     NAME  KEY\nkey_1  ci    mg-secret\n",
		},
		"keys create until a Unix second": {
			args:   []string{"keys", "create", "-account", "acc_1", "-name", "ci", "-unlimited", "-expires", "1999999999"},
			status: 201, answer: created,
			want: request{Method: "POST", Target: "/accounts/acc_1/keys", Body: map[string]any{
				"name": "ci", "unlimited": true, "expires_at": 1999999999.0,
			}},
			table: "ID     NAME  KEY\nkey_1  ci    mg-secret\n",
		},
		"keys revoke": {
			args: []string{"keys", "revoke", "-key", `key_"1`}, status: 204,
			want:  request{Method: "DELETE", Target: "/keys/key_%221"},
			table: "ID      STATE\nkey_\"1  revoked\n",
			json:  `{"id":"key_\"1","state":"revoked"}`,
		},
		"channels list": {
			args: []string{"channels", "list", "-limit", "2"}, status: 200, answer: list(true, channel, idle),
			want: request{Method: "GET", Target: "/channels?limit=2"},
			table: channelHead +
				"veo      veo       up                                                                         0          0                              0                    \n" +
				"… more: -after veo\n",
		},
		"channels list, a model is retired": {
			args: []string{"channels", "list"}, status: 200, want: request{Method: "GET", Target: "/channels?limit=100"},
			answer: list(false, strings.Replace(idle, `"last_error_at":null`, `"last_error_at":null,"retired":[{"upstream":"veo-3","until":1772366400},{"upstream":"veo-4","until":1772366430}]`, 1)),
			table: "NAME  PROVIDER  STATE  REASON  SINCE  NEXT_PROBE_AT  IN_FLIGHT  WAITING  OLDEST  POLLING  ERROR_RATE  LAST_ERROR  RETIRED\n" +
				"veo   veo       up                                   0          0                0                                veo-3 until 2026-03-01T12:00:00Z, veo-4 until 2026-03-01T12:00:30Z\n",
		},
		"channels enable": {
			args: []string{"channels", "enable", "kling-a"}, status: 200, answer: channel,
			want:  request{Method: "PATCH", Target: "/channels/kling-a", Body: map[string]any{"enabled": true}},
			table: channelHead,
		},
		"channels disable": {
			args: []string{"channels", "disable", "-channel", "kling/a"}, status: 200, answer: channel,
			want:  request{Method: "PATCH", Target: "/channels/kling%2Fa", Body: map[string]any{"enabled": false}},
			table: channelHead,
		},
		"channels disable for a reason": {
			args: []string{"channels", "disable", "kling-a", "-reason", "INC-7"}, status: 200, answer: channel,
			want:  request{Method: "PATCH", Target: "/channels/kling-a", Body: map[string]any{"enabled": false, "reason": "INC-7"}},
			table: channelHead,
		},
		"accounts list by name": {
			args: []string{"accounts", "list", "-q", "a&b"}, status: 200, answer: list(false),
			want:  request{Method: "GET", Target: "/accounts?limit=100&q=a%26b"},
			table: "ID  NAME  GROUP  AVAILABLE  HELD  SPENT\n",
		},
		"accounts suspend": {
			args: []string{"accounts", "suspend", "acc_1", "-reason", "does not pay"}, status: 200, answer: `{"id":"acc_1","name":"acme","suspended":true}`,
			want:  request{Method: "PATCH", Target: "/accounts/acc_1", Body: map[string]any{"suspended": true, "reason": "does not pay"}},
			table: "ID     NAME  GROUP  AVAILABLE  HELD  SPENT  SUSPENDED\nacc_1  acme                                 true\n",
		},
		"accounts resume": {
			args: []string{"accounts", "resume", "acc_1"}, status: 200, answer: `{"id":"acc_1","name":"acme","suspended":false}`,
			want:  request{Method: "PATCH", Target: "/accounts/acc_1", Body: map[string]any{"suspended": false}},
			table: "ID     NAME  GROUP  AVAILABLE  HELD  SPENT  SUSPENDED\nacc_1  acme                                 false\n",
		},
		"ledger check": {
			args: []string{"ledger", "check"}, status: 200, answer: `{"ok":true,"checked":7,"problems":[]}`,
			want:  request{Method: "GET", Target: "/ledger/check"},
			table: "7 accounts, keys and tasks checked, 0 problems\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := serve(t, test.status, test.answer)
			want := test.want
			want.Target, want.Auth = "/admin/v1"+want.Target, "Bearer "+adminKey
			if test.json == "" {
				test.json = test.answer
			}
			for format, output := range map[string]string{"table": test.table, "json": test.json + "\n"} {
				code, stdout, stderr := run(t, g.env(), append(test.args, "-o", format)...)
				if code != 0 || stderr != "" {
					t.Errorf("%s: exit %d, standard error %q", format, code, stderr)
				}
				if diff := cmp.Diff(output, stdout); diff != "" {
					t.Errorf("%s (-want +got):\n%s", format, diff)
				}
				if diff := cmp.Diff([]request{want}, g.requests()); diff != "" {
					t.Errorf("%s: requests (-want +got):\n%s", format, diff)
				}
			}
			if _, stdout, _ := run(t, g.env(), test.args...); stdout != test.table {
				t.Errorf("without -o: %q", stdout)
			}
		})
	}
}

// TestTablesShowControlCharacters checks that a customer's name cannot add rows to a table, move
// the cursor or reverse the text.
func TestTablesShowControlCharacters(t *testing.T) {
	t.Parallel()
	hostile := `{"id":"key_1","prefix":"mg-ab","account":"acc_1","name":"a\u001b[2J\nkey_2\tb\u009b1m\u202egnp\u200b\u007f é ключ","unlimited":true,"spent":"1"}`
	g := serve(t, 200, list(false, hostile))
	code, out, _ := run(t, g.env(), "keys", "list")
	want := "ID     ACCOUNT  NAME                                                  PREFIX  QUOTA      SPENT\n" +
		`key_1  acc_1    a\x1b[2J\nkey_2\tb\u009b1m\u202egnp\u200b\x7f é ключ  mg-ab   unlimited  1` + "\n"
	if diff := cmp.Diff(want, out); code != 0 || diff != "" {
		t.Errorf("%d (-want +got):\n%s", code, diff)
	}
	g = serve(t, 400, `{"error":{"message":"no \u001b]0;x\u0007"}}`)
	if _, _, failure := run(t, g.env(), "keys", "list"); strings.ContainsAny(failure, "\x1b\x07") {
		t.Errorf("%q", failure)
	}
	g = serve(t, 200, list(false, strings.ReplaceAll(strings.ReplaceAll(hostile, `\u009b`, "\u009b"), `\u202e`, "\u202e")))
	_, out, _ = run(t, g.env(), "keys", "list", "-o", "json")
	if strings.ContainsAny(out, "\u009b\u202e") || !json.Valid([]byte(out)) {
		t.Errorf("as JSON: %q", out)
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	const broken = `{"ok":false,"checked":7,"problems":["acc_1: 3 is not 4"]}`
	for name, test := range map[string]struct {
		args     []string
		status   int
		answer   string
		out, err string
	}{
		"an error of the API": {
			args: []string{"accounts", "grant", "-account", "acc_1", "-amount", "1", "-reference", "x"}, status: 409,
			answer: `{"error":{"message":"the reference was used for another amount","request_id":"req_1"}}`,
			err:    "mediagate accounts grant: the reference was used for another amount (HTTP 409, request req_1)\n",
		},
		"a proxy's error": {
			args: []string{"keys", "revoke", "-key", "key_1"}, status: 502, answer: "<html>",
			err: "mediagate keys revoke: the gateway answered HTTP 502 Bad Gateway\n",
		},
		"no JSON": {
			args: []string{"accounts", "list"}, status: 200, answer: "<html>", err: "the answer is not readable",
		},
		"no report": {
			args: []string{"ledger", "check"}, status: 200, answer: "<html>", err: "the answer is not readable",
		},
		"a broken ledger": {
			args: []string{"ledger", "check"}, status: 200, answer: broken,
			out: "acc_1: 3 is not 4\n7 accounts, keys and tasks checked, 1 problems\n",
			err: "mediagate ledger check: the ledger does not hold\n",
		},
		"a broken ledger, for scripts": {
			args: []string{"ledger", "check", "-o", "json"}, status: 200, answer: broken,
			out: broken + "\n", err: "mediagate ledger check: the ledger does not hold\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := run(t, serve(t, test.status, test.answer).env(), test.args...)
			if code != 1 || !strings.Contains(stderr, test.err) {
				t.Errorf("exit %d, standard error %q, want 1 and %q", code, stderr, test.err)
			}
			if diff := cmp.Diff(test.out, stdout); diff != "" {
				t.Errorf("standard output (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNoGateway(t *testing.T) {
	t.Parallel()
	g := serve(t, 200, "")
	g.Close()
	if code, _, stderr := run(t, g.env(), "accounts", "list"); code != 1 || !strings.Contains(stderr, "refused") {
		t.Errorf("exit %d, %q", code, stderr)
	}
}

func TestWrongUse(t *testing.T) {
	t.Parallel()
	g := serve(t, 200, list(false))
	for name, test := range map[string]struct {
		args []string
		env  []string // nil: the gateway's
		err  string
	}{
		"unknown flag":      {args: []string{"accounts", "list", "-nope"}, err: "-nope"},
		"argument":          {args: []string{"ledger", "check", "now"}, err: `unexpected argument "now"`},
		"format":            {args: []string{"ledger", "check", "-o", "xml"}, err: "-o is table or json"},
		"no number":         {args: []string{"keys", "list", "-limit", "many"}, err: "-limit"},
		"nothing to create": {args: []string{"accounts", "create"}, err: "-name is missing"},
		"nothing to grant":  {args: []string{"accounts", "grant", "-account", "a"}, err: "-amount is missing, -reference is missing"},
		"no key's account":  {args: []string{"keys", "create", "-name", "a"}, err: "-account is missing"},
		"no key to rotate":  {args: []string{"keys", "rotate", "-grace", "1h"}, err: "-key is missing"},
		"no grace":          {args: []string{"keys", "rotate", "-key", "a", "-grace", "soon"}, err: "-grace: a time in whole seconds"},
		"half a second":     {args: []string{"keys", "rotate", "-key", "a", "-grace", "1500ms"}, err: "-grace: a time in whole seconds"},
		"no rate":           {args: []string{"accounts", "create", "-name", "a", "-rate", "fast"}, err: "-rate: a whole number"},
		"no truth":          {args: []string{"keys", "create", "-account", "a", "-name", "a", "-unlimited=perhaps"}, err: "true or false"},
		"empty scopes":      {args: []string{"keys", "create", "-account", "a", "-name", "a", "-unlimited", "-scopes", ""}, err: "-scopes: a value is wanted"},
		"empty addresses":   {args: []string{"keys", "create", "-account", "a", "-name", "a", "-unlimited", "-allow-ips="}, err: "-allow-ips: a value is wanted"},
		"empty cap":         {args: []string{"keys", "create", "-account", "a", "-name", "a", "-unlimited", "-caps-day", ""}, err: "-caps-day: a value is wanted"},
		"empty grace time":  {args: []string{"keys", "rotate", "-key", "a", "-grace", ""}, err: "-grace: a value is wanted"},
		"no key":            {args: []string{"keys", "revoke"}, err: "-key is missing"},
		"no channel":        {args: []string{"channels", "enable"}, err: "-channel is missing"},
		"two channels":      {args: []string{"channels", "disable", "a", "b"}, err: `unexpected argument "b"`},
		"no address":        {args: []string{"keys", "list"}, env: []string{"MEDIAGATE_ADMIN_KEY=" + adminKey}, err: "MEDIAGATE_URL"},
		"a query":           {args: []string{"keys", "list"}, env: []string{"MEDIAGATE_ADMIN_KEY=" + adminKey, "MEDIAGATE_URL=" + g.URL + "?x=1"}, err: "without query and fragment"},
		"a fragment":        {args: []string{"keys", "list"}, env: []string{"MEDIAGATE_ADMIN_KEY=" + adminKey, "MEDIAGATE_URL=" + g.URL + "#x"}, err: "without query and fragment"},
		"no scheme":         {args: []string{"keys", "list"}, env: []string{"MEDIAGATE_ADMIN_KEY=" + adminKey, "MEDIAGATE_URL=127.0.0.1:8080"}, err: "MEDIAGATE_URL"},
		"no admin key":      {args: []string{"keys", "list"}, env: []string{"MEDIAGATE_URL=" + g.URL}, err: "MEDIAGATE_ADMIN_KEY"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := test.env
			if env == nil {
				env = g.env()
			}
			code, stdout, stderr := run(t, env, test.args...)
			if code != 2 || stdout != "" || !strings.Contains(stderr, test.err) || !strings.Contains(stderr, "mediagate "+test.args[0]) {
				t.Errorf("exit %d, standard output %q, standard error %q; want 2, nothing and %q", code, stdout, stderr, test.err)
			}
		})
	}
	t.Cleanup(func() {
		if made := g.requests(); len(made) > 0 {
			t.Errorf("requests of wrong use: %+v", made)
		}
	})
}

// TestForeignAnswers checks that an answer of another server is an error of the command: the
// command does not repeat the call, and takes nothing of the answer for a task.
func TestForeignAnswers(t *testing.T) {
	t.Parallel()
	const more = `{"object":"list","data":[],"marked":0,"has_more":true,"next":%q}`
	for name, test := range map[string]struct {
		args   []string
		answer string
		code   int
		err    string
		calls  int
	}{
		"a page as a task":      {[]string{"tasks", "show", "task_1"}, "<html>", 1, `the answer is not the task task_1: "<html>"`, 1},
		"nothing as a task":     {[]string{"tasks", "show", "task_1"}, "", 1, `the answer is not the task task_1: ""`, 1},
		"something else":        {[]string{"tasks", "show", "task_1"}, `{"ok":true}`, 1, "the answer is not the task task_1", 1},
		"another task":          {[]string{"tasks", "watch", "task_1"}, ended + "}", 1, "the answer is not the task task_1", 1},
		"something to watch":    {[]string{"tasks", "watch", "task_1"}, `{"ok":true}`, 1, "the answer is not the task task_1", 1},
		"no next page":          {[]string{"recover", "-restored-to", "5"}, fmt.Sprintf(more, ""), 1, "does not name the next one", 1},
		"the same page again":   {[]string{"recover", "-restored-to", "5"}, fmt.Sprintf(more, "mark"), 1, "does not name the next one", 2},
		"more after nothing":    {[]string{"keys", "list"}, fmt.Sprintf(more, ""), 0, "", 1},
		"more after no entries": {[]string{"accounts", "statement", "-account", "a"}, fmt.Sprintf(more, ""), 0, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := serve(t, http.StatusOK, test.answer)
			code, _, stderr := run(t, g.env(), test.args...)
			if calls := len(g.requests()); code != test.code || !strings.Contains(stderr, test.err) || calls != test.calls {
				t.Errorf("exit %d after %d calls: %q; want %d, %d and %q", code, calls, stderr, test.code, test.calls, test.err)
			}
		})
	}
}

// TestVerbs checks that an object without a verb, or with an unknown one, lists its own verbs.
func TestVerbs(t *testing.T) {
	t.Parallel()
	verbs := map[string]int{}
	for line := range strings.Lines(operator.Summary()) {
		if name, list, ok := strings.Cut(strings.TrimSpace(line), " "); ok { // the others have no verbs
			verbs[name] = len(strings.Split(list, "|"))
		}
	}
	for name, want := range verbs {
		for _, args := range [][]string{{name}, {name, "burn"}, {name, "-o", "json"}} {
			code, stdout, stderr := run(t, nil, args...)
			lines := strings.Split(strings.TrimSpace(stderr), "\n")[1:]
			for _, line := range lines {
				if !strings.HasPrefix(line, "  mediagate "+name+" ") {
					t.Errorf("%v lists %q", args, line)
				}
			}
			if code != 2 || stdout != "" || len(lines) != want {
				t.Errorf("%v: exit %d, standard output %q, standard error %q; want 2 and %d verbs", args, code, stdout, stderr, want)
			}
		}
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"of a command":  {[]string{"keys", "create", "-h"}, "usage: mediagate keys create -account ID"},
		"among flags":   {[]string{"accounts", "grant", "-amount", "1", "--help"}, "usage: mediagate accounts grant"},
		"of a subject":  {[]string{"accounts", "-h"}, "mediagate accounts create -name NAME"},
		"asked in full": {[]string{"ledger", "help"}, "mediagate ledger check"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := run(t, nil, test.args...)
			if code != 0 || stderr != "" || !strings.Contains(stdout, test.want) {
				t.Errorf("exit %d, standard output %q, standard error %q; want 0 and %q", code, stdout, stderr, test.want)
			}
		})
	}
}

// TestData checks that a standalone's folder names its address and key and takes precedence over
// the environment.
func TestData(t *testing.T) {
	t.Parallel()
	g := serve(t, 200, list(false))
	folder := func(text string) string {
		dir := t.TempDir()
		if text != "" {
			if err := os.WriteFile(filepath.Join(dir, "standalone.json"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	for name, test := range map[string]struct {
		file string
		code int
		err  string
	}{
		"running":     {`{"api":"` + g.URL + `/","admin_key":"of-the-folder"}`, 0, ""},
		"apart":       {`{"api":"http://127.0.0.1:1","admin":"` + g.URL + `","admin_key":"of-the-folder"}`, 0, ""},
		"not running": {"", 1, "no standalone runs on"},
		"no JSON":     {"{", 1, "standalone.json"},
		"infra only":  {`{"temporal":"127.0.0.1:7233"}`, 2, "MEDIAGATE_URL"},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := run(t, []string{"MEDIAGATE_URL=http://127.0.0.1:1", "MEDIAGATE_ADMIN_KEY=x"},
				"keys", "list", "-data", folder(test.file))
			if code != test.code || !strings.Contains(stderr, test.err) {
				t.Errorf("exit %d, %q, %q; want %d, %q", code, stdout, stderr, test.code, test.err)
			}
			var want []request
			if test.code == 0 {
				want = []request{{Method: "GET", Target: "/admin/v1/keys?limit=100", Auth: "Bearer of-the-folder"}}
			}
			if diff := cmp.Diff(want, g.requests()); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}
