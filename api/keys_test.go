package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
)

// manage calls /v1/keys with a key.
func (g *gateway) manage(key, method, path, body string) answer {
	g.t.Helper()
	return g.send(request{method: method, path: "/v1/keys" + path, key: key, body: body, remote: "192.0.2.1:1"})
}

func (a answer) text(name string) string {
	s, _ := a.at(name).(string)
	return s
}

// A customer runs its keys without an operator.
func TestOwnKeys(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	made := g.manage(g.key, http.MethodPost, "", `{"name":"ci","quota":"5","models":["alpha-*"],"caps":{"day":1},"rate":3,"scopes":["read","manage"]}`)
	id, secret := made.text("id"), made.text("key")
	if made.status != 201 || made.header.Get("Cache-Control") != "no-store" || len(secret) != 42 || made.at("account") != g.account.ID {
		t.Fatalf("%d %s", made.status, made.body)
	}
	shown := g.manage(g.key, http.MethodGet, "/"+id, "")
	if want := strings.Replace(made.body, `"key":"`+secret+`",`, "", 1); shown.status != 200 || shown.body != want {
		t.Errorf("read back %d %s", shown.status, shown.body)
	}
	if admin := g.operate(http.MethodGet, "/keys/"+id, ""); admin.body != shown.body {
		t.Errorf("operators see %s", admin.body)
	}
	list := g.manage(secret, http.MethodGet, "", "")
	if list.status != 200 || list.at("data", 0, "id") != id || list.at("data", 1, "id") != g.keyRow.ID || list.at("data", 2) != nil || list.at("has_more") != false {
		t.Errorf("list: %d %s", list.status, list.body)
	}
	if page := g.manage(g.key, http.MethodGet, "?limit=1&after="+id, ""); page.at("data", 0, "id") != g.keyRow.ID {
		t.Errorf("second page: %s", page.body)
	}
	if a := g.manage(g.key, http.MethodPatch, "/"+id, `{"rate":null,"quota":"9"}`); a.status != 200 || a.at("rate") != nil || a.at("quota") != "9.00" {
		t.Errorf("change: %d %s", a.status, a.body)
	}
	rotated := g.manage(g.key, http.MethodPost, "/"+id+"/rotate", `{"grace_seconds":60}`)
	if rotated.status != 201 || rotated.header.Get("Cache-Control") != "no-store" || rotated.text("key") == "" || rotated.at("quota") != "9.00" {
		t.Errorf("rotation: %d %s", rotated.status, rotated.body)
	}
	g.manage(g.key, http.MethodPost, "/"+id+"/rotate", "").wantError(t, 409, "invalid_request_error", "rotated already")
	if a := g.manage(g.key, http.MethodDelete, "/"+id, ""); a.status != 204 || a.body != "" {
		t.Errorf("deletion: %d %s", a.status, a.body)
	}
	g.manage(secret, http.MethodGet, "", "").wantError(t, 401, "authentication_error", "invalid API key")
	// It may end itself.
	fresh := rotated.text("key")
	if a := g.manage(fresh, http.MethodPost, "/"+rotated.text("id")+"/rotate", `{"grace_seconds":0}`); a.status != 201 {
		t.Errorf("rotating itself: %d %s", a.status, a.body)
	} else if a := g.manage(a.text("key"), http.MethodDelete, "/"+a.text("id"), ""); a.status != 204 {
		t.Errorf("deleting itself: %d %s", a.status, a.body)
	}
	g.manage(fresh, http.MethodGet, "", "").wantError(t, 401, "authentication_error", "invalid API key")
}

// Another account's key, one that was never made and what is no key's id are the
// same to a caller, whatever it asks for; all but the first are so to an operator.
func TestForeignKeysAreUnknown(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	account, err := g.store.CreateAccount(t.Context(), mediagate.Account{Name: "other"})
	g.must(err)
	foreign, _ := g.newKey(mediagate.Key{AccountID: account.ID, Unlimited: true})
	deleted, _ := g.newKey(mediagate.Key{Unlimited: true})
	g.must(g.store.DeleteKey(t.Context(), deleted.ID))
	for _, call := range []struct{ method, path, body string }{
		{http.MethodGet, "", ""}, {http.MethodPatch, "", `{"name":"x"}`}, {http.MethodDelete, "", ""}, {http.MethodPost, "/rotate", ""},
	} {
		answers := map[string]bool{}
		for _, id := range []string{foreign.ID, deleted.ID, "key_01JZZZZZZZZZZZZZZZZZZZZZZZ", "x", "key_%00", account.ID} {
			a := g.manage(g.key, call.method, "/"+id+call.path, call.body)
			a.wantError(t, 404, "not_found_error", "key not found")
			answers[strings.Replace(a.body, a.header.Get("X-Request-Id"), "", 1)] = true
			if id != foreign.ID {
				g.operate(call.method, "/keys/"+id+call.path, call.body).wantError(t, 404, "not_found_error", "key not found")
			}
		}
		if len(answers) != 1 {
			t.Errorf("%s %s can be told apart: %v", call.method, call.path, answers)
		}
	}
	g.manage(g.key, http.MethodGet, "?after="+foreign.ID, "").wantError(t, 400, "invalid_request_error", "after must be an id of this list")
	if a := g.operate(http.MethodGet, "/keys/"+foreign.ID, ""); a.at("name") != "test" {
		t.Errorf("the foreign key is now %s", a.body)
	}
}

// A key gives nothing that it lacks.
func TestKeysGiveNoMoreThanTheyHave(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	until := g.clock.now().Add(time.Hour)
	bounded := mediagate.Key{
		Name: "bounded", Quota: 10 * mediagate.MicrosPerUnit, Models: []string{"alpha-*", "omega"}, AllowIPs: []string{"192.0.2.0/24"}, ExpiresAt: until,
		Caps: mediagate.Caps{Day: new(mediagate.MicrosPerUnit)}, Rate: new(5), InFlight: new(2),
		Scopes: []mediagate.Scope{mediagate.ScopeRead, mediagate.ScopeManage},
	}
	_, giver := g.newKey(bounded)
	fields := map[string]string{
		"name": `"child"`, "quota": `"1"`, "models": `["alpha-v3"]`, "allow_ips": `["192.0.2.1"]`, "expires_at": fmt.Sprint(until.Unix()),
		"caps": `{"day":"1"}`, "rate": `5`, "in_flight": `2`, "scopes": `["read"]`,
	}
	body := func(changes map[string]string) string {
		var parts []string
		for name, value := range fields {
			if changed, ok := changes[name]; ok {
				value = changed
			}
			if value != "" {
				parts = append(parts, fmt.Sprintf("%q:%s", name, value))
			}
		}
		for name, value := range changes {
			if _, ok := fields[name]; !ok {
				parts = append(parts, fmt.Sprintf("%q:%s", name, value))
			}
		}
		return "{" + strings.Join(parts, ",") + "}"
	}
	child := g.manage(giver, http.MethodPost, "", body(nil))
	if child.status != 201 {
		t.Fatalf("within: %d %s", child.status, child.body)
	}
	keys := func() int {
		rows, _, err := g.store.Keys(t.Context(), g.account.ID, "", 100)
		g.must(err)
		return len(rows)
	}
	before := keys()
	for name, test := range map[string]struct {
		changes map[string]string
		field   string // empty: given
	}{
		"all scopes":          {map[string]string{"scopes": ""}, "scopes"},
		"one scope more":      {map[string]string{"scopes": `["read","generate"]`}, "scopes"},
		"all models":          {map[string]string{"models": ""}, "models"},
		"other models":        {map[string]string{"models": `["alpha-v3","beta-q3"]`}, "models"},
		"wider pattern":       {map[string]string{"models": `["a*"]`}, "models"},
		"narrower pattern":    {map[string]string{"models": `["alpha-*3"]`}, ""},
		"a model of its own":  {map[string]string{"models": `["omega"]`}, ""},
		"another such":        {map[string]string{"models": `["alpha-x"]`}, "models"},
		"its account's group": {map[string]string{"group": `"default"`}, ""},
		"another group":       {map[string]string{"group": `"half"`}, "group"},
		"any address":         {map[string]string{"allow_ips": ""}, "allow_ips"},
		"all its addresses":   {map[string]string{"allow_ips": `["192.0.2.0/25","192.0.2.128/25"]`}, ""},
		"other addresses":     {map[string]string{"allow_ips": `["192.0.3.1"]`}, "allow_ips"},
		"no end":              {map[string]string{"expires_at": ""}, "expires_at"},
		"a later end":         {map[string]string{"expires_at": fmt.Sprint(until.Unix() + 1)}, "expires_at"},
		"unlimited":           {map[string]string{"quota": "", "unlimited": "true"}, "unlimited"},
		"more than is left":   {map[string]string{"quota": `"9.000001"`}, "quota"},
		"no caps":             {map[string]string{"caps": ""}, "caps.day"},
		"a higher cap":        {map[string]string{"caps": `{"day":"1.000001"}`}, "caps.day"},
		"a further cap":       {map[string]string{"caps": `{"day":"0","month":"9"}`}, ""},
		"no rate":             {map[string]string{"rate": ""}, "rate"},
		"a higher rate":       {map[string]string{"rate": "6"}, "rate"},
		"no tasks in flight":  {map[string]string{"in_flight": ""}, "in_flight"},
		"more in flight":      {map[string]string{"in_flight": "3"}, "in_flight"},
	} {
		a := g.manage(giver, http.MethodPost, "", body(test.changes))
		if test.field == "" {
			before++
			if a.status != 201 {
				t.Errorf("%s: %d %s", name, a.status, a.body)
			}
			continue
		}
		a.wantError(t, 403, "permission_error", test.field+" goes beyond what this API key has itself")
	}
	if n := keys(); n != before {
		t.Errorf("%d keys, want %d", n, before)
	}
	// The group of its account is not pinned: the key follows the account.
	if a := g.manage(g.key, http.MethodPost, "", `{"name":"a","unlimited":true,"group":"default"}`); a.status != 201 || a.at("group") != nil {
		t.Errorf("of the account's group: %d %s", a.status, a.body)
	}
	_, pinned := g.newKey(mediagate.Key{Unlimited: true, Group: "images"})
	g.manage(pinned, http.MethodPost, "", `{"name":"a","unlimited":true}`).wantError(t, 403, "permission_error", "group")
	g.manage(pinned, http.MethodPost, "", `{"name":"a","unlimited":true,"group":"images","models":["alpha-*"]}`).wantError(t, 403, "permission_error", "models")
	if a := g.manage(pinned, http.MethodPost, "", `{"name":"a","unlimited":true,"group":"images","models":["theta-*"]}`); a.status != 201 || a.at("group") != "images" {
		t.Errorf("of its own group: %d %s", a.status, a.body)
	}
}

// Of quota there is never more than there was, however often it is given.
func TestGivenQuotaIsTaken(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	row, giver := g.newKey(mediagate.Key{Quota: 10 * mediagate.MicrosPerUnit})
	var mu sync.Mutex
	var calls sync.WaitGroup
	statuses := map[int]int{}
	for range 6 {
		calls.Go(func() {
			a := g.manage(giver, http.MethodPost, "", `{"name":"child","quota":"3"}`)
			mu.Lock()
			defer mu.Unlock()
			statuses[a.status]++
		})
	}
	calls.Wait()
	if diff := cmp.Diff(map[int]int{201: 3, 403: 3}, statuses); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
	quota := func(id string) any { return g.manage(giver, http.MethodGet, "/"+id, "").at("quota") }
	if got := quota(row.ID); got != "1.00" {
		t.Errorf("%s is left", got)
	}
	child, _ := g.manage(giver, http.MethodGet, "", "").at("data", 0, "id").(string)
	g.manage(giver, http.MethodPatch, "/"+child, `{"quota":"5"}`).wantError(t, 403, "permission_error", "quota")
	if a := g.manage(giver, http.MethodPatch, "/"+child, `{"quota":"0.5"}`); a.status != 200 {
		t.Errorf("lowering: %d %s", a.status, a.body)
	}
	if a := g.manage(giver, http.MethodPatch, "/"+child, `{"quota":"0.75"}`); a.status != 200 {
		t.Errorf("raising: %d %s", a.status, a.body)
	}
	if got := quota(row.ID); got != "0.75" {
		t.Errorf("%s is left", got)
	}
}

// A limited key pays from its own quota for all the quota that comes into its
// hands, whatever the call.
func TestQuotaThatAKeyTakesHoldOfIsTaken(t *testing.T) {
	t.Parallel()
	const unit = mediagate.MicrosPerUnit
	for name, test := range map[string]struct {
		key   mediagate.Key
		holds int         // tasks of the key, of 5.04 each
		calls [][3]string // method, path behind the id, body
		last  int         // status of the last call; the others succeed
		left  string      // of the giver's quota of 10
	}{
		"a rotation": {
			key: mediagate.Key{Quota: 4 * unit}, calls: [][3]string{{"POST", "/rotate", ""}}, last: 201, left: "6.00",
		},
		"a rotation of more": {
			key: mediagate.Key{Quota: 11 * unit}, calls: [][3]string{{"POST", "/rotate", ""}}, last: 403, left: "10.00",
		},
		"a rotation of an unlimited key": {
			key: mediagate.Key{Unlimited: true}, calls: [][3]string{{"POST", "/rotate", ""}}, last: 403, left: "10.00",
		},
		"narrowing, for others": {
			key: mediagate.Key{Unlimited: true}, calls: [][3]string{{"PATCH", "", `{"quota":"10"}`}}, last: 200, left: "10.00",
		},
		"narrowing, then a rotation": {
			key: mediagate.Key{Unlimited: true}, calls: [][3]string{{"PATCH", "", `{"quota":"10"}`}, {"POST", "/rotate", ""}}, last: 201, left: "0.00",
		},
		"what is held comes back by a cancel": {
			key: mediagate.Key{Unlimited: true}, holds: 1, calls: [][3]string{{"PATCH", "", `{"quota":"6"}`}, {"POST", "/rotate", ""}}, last: 201, left: "4.00",
		},
		"more of it is held than the giver has": {
			key: mediagate.Key{Unlimited: true}, holds: 2, calls: [][3]string{{"PATCH", "", `{"quota":"10.08"}`}, {"POST", "/rotate", ""}}, last: 403, left: "10.00",
		},
		"a later end": {
			key: mediagate.Key{Quota: 4 * unit, ExpiresAt: time.Unix(1, 0)}, calls: [][3]string{{"PATCH", "", `{"expires_at":null}`}}, last: 200, left: "6.00",
		},
		"a later end of more": {
			key: mediagate.Key{Quota: 11 * unit, ExpiresAt: time.Unix(1, 0)}, calls: [][3]string{{"PATCH", "", `{"expires_at":null}`}}, last: 403, left: "10.00",
		},
		"narrowing and widening at once": {
			key: mediagate.Key{Unlimited: true, Rate: new(0)}, calls: [][3]string{{"PATCH", "", `{"quota":"10","rate":null}`}}, last: 200, left: "0.00",
		},
		"raising and widening at once": {
			key: mediagate.Key{Quota: 4 * unit, Rate: new(0)}, calls: [][3]string{{"PATCH", "", `{"quota":"5","rate":null}`}}, last: 200, left: "5.00",
		},
		"raising": {
			key: mediagate.Key{Quota: 4 * unit}, calls: [][3]string{{"PATCH", "", `{"quota":"5"}`}}, last: 200, left: "9.00",
		},
		"models": {
			key: mediagate.Key{Quota: 4 * unit, Models: []string{"theta-*"}}, calls: [][3]string{{"PATCH", "", `{"models":null}`}}, last: 200, left: "6.00",
		},
		"scopes": {
			key:   mediagate.Key{Quota: 4 * unit, Scopes: []mediagate.Scope{mediagate.ScopeRead}},
			calls: [][3]string{{"PATCH", "", `{"scopes":["read","generate"]}`}}, last: 200, left: "6.00",
		},
		"addresses": {
			key: mediagate.Key{Quota: 4 * unit, AllowIPs: []string{"192.0.2.9"}}, calls: [][3]string{{"PATCH", "", `{"allow_ips":null}`}}, last: 200, left: "6.00",
		},
		"a group": {
			key: mediagate.Key{Quota: 4 * unit, Group: "half"}, calls: [][3]string{{"PATCH", "", `{"group":null}`}}, last: 200, left: "6.00",
		},
		"caps": {
			key: mediagate.Key{Quota: 4 * unit, Caps: mediagate.Caps{Day: new(mediagate.Micros(0))}}, calls: [][3]string{{"PATCH", "", `{"caps":null}`}}, last: 200, left: "6.00",
		},
		"tasks in flight": {
			key: mediagate.Key{Quota: 4 * unit, InFlight: new(0)}, calls: [][3]string{{"PATCH", "", `{"in_flight":9}`}}, last: 200, left: "6.00",
		},
		"a name": {
			key: mediagate.Key{Quota: 4 * unit}, calls: [][3]string{{"PATCH", "", `{"name":"x","rate":5}`}}, last: 200, left: "10.00",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGateway(t)
			giver, secret := g.newKey(mediagate.Key{Quota: 10 * unit})
			other, busy := g.newKey(test.key)
			for range test.holds {
				a := g.send(request{method: http.MethodPost, path: videos, key: busy, body: `{"model":"alpha-v3","prompt":"a cat","mode":"4k","audio":true,"duration":10}`})
				if a.status != 200 {
					t.Fatalf("%d %s", a.status, a.body)
				}
			}
			for i, call := range test.calls {
				want := 200
				if i == len(test.calls)-1 {
					want = test.last
				}
				before := g.operate(http.MethodGet, "/keys/"+other.ID, "").body
				if a := g.manage(secret, call[0], "/"+other.ID+call[1], call[2]); a.status != want {
					t.Errorf("%s: %d %s", call, a.status, a.body)
				}
				if after := g.operate(http.MethodGet, "/keys/"+other.ID, "").body; want == 403 && after != before {
					t.Errorf("%s: refused, and the key is %s", call, after)
				}
			}
			if left := g.operate(http.MethodGet, "/keys/"+giver.ID, "").at("quota"); left != test.left {
				t.Errorf("%s is left of the giver's quota, want %s", left, test.left)
			}
		})
	}
}

// Of two keys that one quota would pay for, a key that rotates both at once comes
// to have one.
func TestOneQuotaBuysOneRotation(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	giver, secret := g.newKey(mediagate.Key{Quota: mediagate.MicrosPerUnit})
	var mu sync.Mutex
	var calls sync.WaitGroup
	statuses := map[int]int{}
	for range 4 {
		other, _ := g.newKey(mediagate.Key{Unlimited: true})
		if a := g.manage(secret, http.MethodPatch, "/"+other.ID, `{"quota":"1"}`); a.status != 200 {
			t.Fatalf("%d %s", a.status, a.body)
		}
		calls.Go(func() {
			a := g.manage(secret, http.MethodPost, "/"+other.ID+"/rotate", `{"grace_seconds":0}`)
			mu.Lock()
			defer mu.Unlock()
			statuses[a.status]++
		})
	}
	calls.Wait()
	if diff := cmp.Diff(map[int]int{201: 1, 403: 3}, statuses); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
	if a := g.operate(http.MethodGet, "/keys/"+giver.ID, ""); a.at("quota") != "0.00" {
		t.Errorf("the giver: %s", a.body)
	}
}

// Any key may be narrowed, and none becomes more than its changer; nor does a
// stronger key's secret come into its hands.
func TestChangesOfStrongerKeys(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	weakRow, weak := g.newKey(mediagate.Key{Unlimited: true, Models: []string{"alpha-*"}, Rate: new(5), Scopes: []mediagate.Scope{mediagate.ScopeRead, mediagate.ScopeManage}})
	strong, _ := g.newKey(mediagate.Key{Unlimited: true, Rate: new(1)})
	for _, step := range []struct {
		id, body, field string
	}{
		{strong.ID, `{"name":"renamed"}`, ""},
		{strong.ID, `{"rate":0}`, ""},
		{strong.ID, `{"rate":2}`, "scopes"}, // less than its own, of a key that it could not make
		{strong.ID, `{"rate":2,"scopes":["read"]}`, "models"},
		{strong.ID, `{"scopes":["read"]}`, ""},
		{strong.ID, `{"rate":2,"models":["alpha-*"]}`, ""},
		{strong.ID, `{"rate":6}`, "rate"},
		{strong.ID, `{"scopes":["read","manage"]}`, ""},
		{strong.ID, `{"scopes":null}`, "scopes"},
		{weakRow.ID, `{"rate":6}`, "rate"},
		{weakRow.ID, `{"models":null}`, "models"},
		{weakRow.ID, `{"scopes":["generate","manage"]}`, "scopes"},
		{weakRow.ID, `{"rate":4,"models":["alpha-v3"]}`, ""},
		{weakRow.ID, `{"rate":5}`, "rate"}, // once narrowed, it stays so
		{weakRow.ID, `{"quota":"3"}`, ""},
		{weakRow.ID, `{"quota":"3.000001"}`, "quota"},
		{weakRow.ID, `{"unlimited":true}`, "unlimited"},
	} {
		before := g.operate(http.MethodGet, "/keys/"+step.id, "").body
		a := g.manage(weak, http.MethodPatch, "/"+step.id, step.body)
		if step.field == "" {
			if a.status != 200 {
				t.Errorf("%s: %d %s", step.body, a.status, a.body)
			}
			continue
		}
		a.wantError(t, 403, "permission_error", step.field+" goes beyond")
		if after := g.operate(http.MethodGet, "/keys/"+step.id, "").body; after != before {
			t.Errorf("%s: refused, and the key is %s", step.body, after)
		}
	}
	g.manage(weak, http.MethodPost, "/"+g.keyRow.ID+"/rotate", "").wantError(t, 403, "permission_error", "scopes goes beyond")
	if a := g.operate(http.MethodGet, "/keys/"+g.keyRow.ID, ""); a.at("rotated_to") != nil || a.at("expires_at") != nil {
		t.Errorf("the key that was not rotated: %s", a.body)
	}
	if a := g.manage(weak, http.MethodDelete, "/"+g.keyRow.ID, ""); a.status != 204 {
		t.Errorf("deleting a stronger key: %d %s", a.status, a.body)
	}
}

// A key does not fill the audit, nor the table of keys, by any number of keys.
func TestChangesOfKeysAreBounded(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	_, second := g.newKey(mediagate.Key{Unlimited: true})
	change := func(key string, i int) answer {
		return g.manage(key, http.MethodPatch, "/"+g.keyRow.ID, fmt.Sprintf(`{"name":"%d"}`, i))
	}
	made, refused := 0, answer{}
	for i := range 1000 {
		if a := change([]string{g.key, second}[i%2], i); a.status != 200 {
			refused = a
			break
		}
		made++
	}
	refused.wantError(t, 429, "rate_limit_error", "the keys of an account may be changed 120 times a minute")
	if refused.header.Get("Retry-After") == "" || made < 120 {
		t.Errorf("%d changes, then %v", made, refused.header)
	}
	if a := g.manage(g.key, http.MethodGet, "", ""); a.status != 200 {
		t.Errorf("reading: %d %s", a.status, a.body)
	}
	if a := g.manage(g.other(), http.MethodPost, "", `{"name":"a","unlimited":true}`); a.status != 201 {
		t.Errorf("another account: %d %s", a.status, a.body)
	}
}

// What keys share by a rotation is widened for all of them at once. So a key that
// could not make the stronger one of a pair does not widen its limits through the
// weaker one.
func TestLimitsOfAPairAreThoseOfBoth(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	_, weak := g.newKey(mediagate.Key{Unlimited: true, Models: []string{"alpha-*"}})
	row, secret := g.newKey(mediagate.Key{
		Quota: mediagate.MicrosPerUnit, Caps: mediagate.Caps{Day: new(mediagate.MicrosPerUnit)}, Rate: new(1), InFlight: new(1),
	})
	made := g.manage(secret, http.MethodPost, "/"+row.ID+"/rotate", "")
	if made.status != 201 {
		t.Fatalf("%d %s", made.status, made.body)
	}
	strong := made.text("id")
	if a := g.manage(weak, http.MethodPatch, "/"+row.ID, `{"models":["alpha-*"]}`); a.status != 200 {
		t.Fatalf("narrowing: %d %s", a.status, a.body)
	}
	before := g.operate(http.MethodGet, "/keys/"+strong, "").body
	for field, body := range map[string]string{
		"unlimited": `{"unlimited":true}`, "quota": `{"quota":"1000"}`, "caps": `{"caps":null}`, "rate": `{"rate":null}`, "in_flight": `{"in_flight":9}`,
	} {
		g.manage(weak, http.MethodPatch, "/"+row.ID, body).wantError(t, 403, "permission_error", "models goes beyond what this API key has itself")
		if after := g.operate(http.MethodGet, "/keys/"+strong, "").body; after != before {
			t.Errorf("%s: refused, and the stronger key is %s", field, after)
		}
	}
	if a := g.manage(weak, http.MethodPatch, "/"+row.ID, `{"rate":0,"quota":"0.5"}`); a.status != 200 {
		t.Errorf("narrowing what both have: %d %s", a.status, a.body)
	}
	// What ended needs no care.
	g.must(g.store.DeleteKey(t.Context(), strong))
	if a := g.manage(weak, http.MethodPatch, "/"+row.ID, `{"rate":2}`); a.status != 200 {
		t.Errorf("of a key that is left alone: %d %s", a.status, a.body)
	}
}

// What was taken from a key a moment ago elsewhere it does not give any more,
// though this process still lets it in.
func TestLostPowersAreNotGiven(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	row, giver := g.newKey(mediagate.Key{Unlimited: true})
	change := func(how func(k *mediagate.Key)) {
		_, err := g.store.UpdateKey(t.Context(), row.ID, func(k *mediagate.Key) error {
			how(k)
			return nil
		})
		g.must(err)
	}
	if a := g.manage(giver, http.MethodGet, "", ""); a.status != 200 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	const body = `{"name":"child","unlimited":true}`
	change(func(k *mediagate.Key) { k.Models = []string{"alpha-*"} })
	g.manage(giver, http.MethodPost, "", body).wantError(t, 403, "permission_error", "models")
	change(func(k *mediagate.Key) { k.Models, k.Scopes = nil, []mediagate.Scope{mediagate.ScopeRead} })
	g.manage(giver, http.MethodPost, "", body).wantError(t, 403, "permission_error", "scope manage")
	g.manage(giver, http.MethodPatch, "/"+g.keyRow.ID, `{"rate":0}`).wantError(t, 403, "permission_error", "scope manage")
	g.manage(giver, http.MethodPost, "/"+g.keyRow.ID+"/rotate", "").wantError(t, 403, "permission_error", "scope manage")
	g.must(g.store.DeleteKey(t.Context(), row.ID))
	g.manage(giver, http.MethodPost, "", body).wantError(t, 401, "authentication_error", "invalid API key")
}
