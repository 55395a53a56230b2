package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

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

// TestOwnKeys checks that a customer manages its keys without an operator.
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
	list := g.manage(secret, http.MethodGet, "", "")
	if list.status != 200 || list.at("data", 0, "id") != id || list.at("data", 1, "id") != g.keyRow.ID || list.at("data", 2) != nil || list.at("has_more") != false {
		t.Errorf("list: %d %s", list.status, list.body)
	}
	rotated := g.manage(g.key, http.MethodPost, "/"+id+"/rotate", `{"grace_seconds":60}`)
	if rotated.status != 201 || rotated.header.Get("Cache-Control") != "no-store" {
		t.Errorf("rotation: %d %s", rotated.status, rotated.body)
	}
	if a := g.manage(secret, http.MethodGet, "", ""); a.status != 200 { // so it is remembered
		t.Errorf("in its grace time: %d %s", a.status, a.body)
	}
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

// TestUnknownKeys checks that a key of another account, one that never existed and an invalid id
// get the same answer on each route. TestTenancyOfEveryRoute compares the answers.
func TestUnknownKeys(t *testing.T) {
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
		g.manage(g.key, call.method, "/"+foreign.ID+call.path, call.body).wantError(t, 404, "not_found_error", "key not found")
		for _, id := range []string{deleted.ID, "key_01JZZZZZZZZZZZZZZZZZZZZZZZ", "x", "key_%00", account.ID} {
			g.operate(call.method, "/keys/"+id+call.path, call.body).wantError(t, 404, "not_found_error", "key not found")
		}
	}
	g.manage(g.key, http.MethodGet, "?after="+foreign.ID, "").wantError(t, 400, "invalid_request_error", "after must be the id of an entry in this list")
}

// TestKeysGiveNoMoreThanTheyHave checks that a key cannot grant a right that it lacks, and that a
// granted quota is taken from its own. TestLacks has each setting.
func TestKeysGiveNoMoreThanTheyHave(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	row, giver := g.newKey(mediagate.Key{
		Quota: 10 * mediagate.MicrosPerUnit, Models: []string{"alpha-*"}, Caps: mediagate.Caps{Day: new(mediagate.MicrosPerUnit)},
		Scopes: []mediagate.Scope{mediagate.ScopeRead, mediagate.ScopeManage},
	})
	const rest = `"name":"child","models":["alpha-v3"],"scopes":["read"],`
	within := `{` + rest + `"quota":"3","caps":{"day":"1"},"group":"default"}`
	g.manage(giver, http.MethodPost, "", within).wantStatus(t, 201, "within")
	for body, field := range map[string]string{
		`{"name":"child","models":["alpha-v3"],"quota":"1","caps":{"day":"1"}}`: "scopes",
		`{` + rest + `"quota":"7.000001","caps":{"day":"1"}}`:                   "quota",
		`{` + rest + `"quota":"1","caps":{"day":"1.000001"}}`:                   "caps.day",
		`{` + rest + `"quota":"1","caps":{"day":"1"},"group":"half"}`:           "group",
	} {
		g.manage(giver, http.MethodPost, "", body).
			wantError(t, 403, "permission_error", field+" exceeds what this API key has itself")
	}
	if left := g.manage(giver, http.MethodGet, "/"+row.ID, "").at("quota"); left != "7.00" {
		t.Errorf("%s is left", left)
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

// TestChangedKeysUseTheGiversQuota checks that a limited key pays from its own quota for the
// quota that a call makes usable. The store's test checks amounts held and amounts too large.
func TestChangedKeysUseTheGiversQuota(t *testing.T) {
	t.Parallel()
	const unit = mediagate.MicrosPerUnit
	for name, test := range map[string]struct {
		key    mediagate.Key
		change string // empty: a rotation
		status int
		left   string // of the giver's quota of 10
	}{
		"a rotation":                     {mediagate.Key{Quota: 4 * unit}, "", 201, "6.00"},
		"a rotation of an unlimited key": {mediagate.Key{Unlimited: true}, "", 403, "10.00"},
		"narrowing, for others":          {mediagate.Key{Unlimited: true}, `{"quota":"10"}`, 200, "10.00"},
		"a later end":                    {mediagate.Key{Quota: 4 * unit, ExpiresAt: time.Unix(1, 0)}, `{"expires_at":null}`, 200, "6.00"},
		"a later end of more":            {mediagate.Key{Quota: 11 * unit, ExpiresAt: time.Unix(1, 0)}, `{"expires_at":null}`, 403, "10.00"},
		"narrowing and widening at once": {mediagate.Key{Unlimited: true, Rate: new(0)}, `{"quota":"10","rate":null}`, 200, "0.00"},
		"raising and widening at once":   {mediagate.Key{Quota: 4 * unit, Rate: new(0)}, `{"quota":"5","rate":null}`, 200, "5.00"},
		"raising":                        {mediagate.Key{Quota: 4 * unit}, `{"quota":"5"}`, 200, "9.00"},
		"a name":                         {mediagate.Key{Quota: 4 * unit}, `{"name":"x","rate":5}`, 200, "10.00"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGateway(t)
			giver, secret := g.newKey(mediagate.Key{Quota: 10 * unit})
			other, _ := g.newKey(test.key)
			before := g.operate(http.MethodGet, "/keys/"+other.ID, "").body
			method, path := http.MethodPatch, "/"+other.ID
			if test.change == "" {
				method, path = http.MethodPost, path+"/rotate"
			}
			g.manage(secret, method, path, test.change).wantStatus(t, test.status)
			if after := g.operate(http.MethodGet, "/keys/"+other.ID, "").body; test.status == 403 && after != before {
				t.Errorf("refused, and the key is %s", after)
			}
			if left := g.operate(http.MethodGet, "/keys/"+giver.ID, "").at("quota"); left != test.left {
				t.Errorf("%s is left of the giver's quota, want %s", left, test.left)
			}
		})
	}
}

// TestChangesOfStrongerKeys checks that a key may narrow any key but cannot extend one beyond its
// own rights, and cannot rotate a stronger key to get its secret.
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
			a.wantStatus(t, 200, step.body)
			continue
		}
		a.wantError(t, 403, "permission_error", step.field+" exceeds")
		if after := g.operate(http.MethodGet, "/keys/"+step.id, "").body; after != before {
			t.Errorf("%s: refused, and the key is %s", step.body, after)
		}
	}
	g.manage(weak, http.MethodPost, "/"+g.keyRow.ID+"/rotate", "").wantError(t, 403, "permission_error", "scopes exceeds")
	if a := g.operate(http.MethodGet, "/keys/"+g.keyRow.ID, ""); a.at("rotated_to") != nil || a.at("expires_at") != nil {
		t.Errorf("the key that was not rotated: %s", a.body)
	}
	g.manage(weak, http.MethodDelete, "/"+g.keyRow.ID, "").wantStatus(t, 204, "deleting a stronger key")
}

// TestChangesOfKeysAreBounded checks that changes of keys are limited for all keys of an account
// together.
func TestChangesOfKeysAreBounded(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	_, second := g.newKey(mediagate.Key{Unlimited: true})
	g.repeat(200, "the keys of an account may be changed 120 times a minute", func(i int) answer {
		return g.manage([]string{g.key, second}[i%2], http.MethodPatch, "/"+g.keyRow.ID, fmt.Sprintf(`{"name":"%d"}`, i))
	})
	g.manage(g.key, http.MethodGet, "", "").wantStatus(t, 200, "reading")
	g.manage(g.other(), http.MethodPost, "", `{"name":"a","unlimited":true}`).wantStatus(t, 201, "another account")
}

// TestLimitsOfAPairAreThoseOfBoth checks that limits shared after a rotation can be raised only
// by a key that could make both. Otherwise a key could raise those of the stronger key through
// the weaker one.
func TestLimitsOfAPairAreThoseOfBoth(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	_, weak := g.newKey(mediagate.Key{Unlimited: true, Models: []string{"alpha-*"}})
	row, secret := g.newKey(mediagate.Key{
		Quota: mediagate.MicrosPerUnit, Caps: mediagate.Caps{Day: new(mediagate.MicrosPerUnit)}, Rate: new(1), InFlight: new(1),
	})
	made := g.manage(secret, http.MethodPost, "/"+row.ID+"/rotate", "")
	made.wantStatus(t, 201)
	strong := made.text("id")
	g.manage(weak, http.MethodPatch, "/"+row.ID, `{"models":["alpha-*"]}`).wantStatus(t, 200, "narrowing")
	before := g.operate(http.MethodGet, "/keys/"+strong, "").body
	for field, body := range map[string]string{
		"unlimited": `{"unlimited":true}`, "quota": `{"quota":"1000"}`, "caps": `{"caps":null}`, "rate": `{"rate":null}`, "in_flight": `{"in_flight":9}`,
	} {
		g.manage(weak, http.MethodPatch, "/"+row.ID, body).wantError(t, 403, "permission_error", "models exceeds what this API key has itself")
		if after := g.operate(http.MethodGet, "/keys/"+strong, "").body; after != before {
			t.Errorf("%s: refused, and the stronger key is %s", field, after)
		}
	}
	g.manage(weak, http.MethodPatch, "/"+row.ID, `{"rate":0,"quota":"0.5"}`).
		wantStatus(t, 200, "narrowing what both have")
	// What ended needs no care.
	g.must(g.store.DeleteKey(t.Context(), strong))
	g.manage(weak, http.MethodPatch, "/"+row.ID, `{"rate":2}`).wantStatus(t, 200, "of a key that is left alone")
}

// TestLostPowersAreNotGiven checks that a key cannot grant a right that another process has just
// removed from it, even while this process still accepts the key.
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
	g.manage(giver, http.MethodGet, "", "").wantStatus(t, 200)
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
