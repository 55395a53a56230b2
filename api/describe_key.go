package api

import (
	"net/http"
	"strings"

	"github.com/mediagate/mediagate"
)

// newKey is the body by which a key is made, as the document shows it.
type newKey struct {
	Name      string            `json:"name"`
	Unlimited bool              `json:"unlimited,omitempty"`
	Quota     string            `json:"quota,omitempty"`
	Models    []string          `json:"models,omitempty"`
	Group     string            `json:"group,omitempty"`
	ExpiresAt int64             `json:"expires_at,omitempty"`
	AllowIPs  []string          `json:"allow_ips,omitempty"`
	Caps      newCaps           `json:"caps,omitzero"`
	Rate      int               `json:"rate,omitempty"`
	InFlight  int               `json:"in_flight,omitempty"`
	Scopes    []mediagate.Scope `json:"scopes,omitempty"`
}

// keyChange is the body by which a key is changed: all of it is optional.
type keyChange struct {
	Name      string            `json:"name,omitempty"`
	Unlimited bool              `json:"unlimited,omitempty"`
	Quota     string            `json:"quota,omitempty"`
	Models    []string          `json:"models,omitempty"`
	Group     string            `json:"group,omitempty"`
	ExpiresAt int64             `json:"expires_at,omitempty"`
	AllowIPs  []string          `json:"allow_ips,omitempty"`
	Caps      newCaps           `json:"caps,omitzero"`
	Rate      int               `json:"rate,omitempty"`
	InFlight  int               `json:"in_flight,omitempty"`
	Scopes    []mediagate.Scope `json:"scopes,omitempty"`
}

type newCaps struct {
	Day   string `json:"day,omitempty"`
	Week  string `json:"week,omitempty"`
	Month string `json:"month,omitempty"`
}

type keyRotation struct {
	GraceSeconds int `json:"grace_seconds,omitempty"`
}

type keyList adminList[apiKey]

const exampleKeyID = keyIDPrefix + "01KAJ5XW2Z6R4N8B1D3M7QTVCE"

func exampleKey() apiKey {
	quota, day, rate := "12.50", "2.00", 60
	return apiKey{
		ID: exampleKeyID, Prefix: "mgk_9fK2xQ", LastFour: "h7Zp", Account: accountPrefix + "01KAJ5XVY0H3T9C5K7W1GSEPMB", Name: "ci",
		Quota: &quota, Held: "0.42", Spent: "3.75", Models: []string{"alpha-*"}, AllowIPs: []string{"203.0.113.0/24"},
		Caps: keyCaps{Day: &day}, Rate: &rate, Scopes: []mediagate.Scope{mediagate.ScopeGenerate, mediagate.ScopeRead}, Created: exampleCreated,
	}
}

// exampleKeyMade is the answer that shows a key's secret.
func exampleKeyMade() []answer {
	made := exampleKey()
	made.Held, made.Spent, made.Key = "0.00", "0.00", made.Prefix+strings.Repeat("0", keyLength-len(made.Prefix+made.LastFour))+made.LastFour
	return []answer{{status: http.StatusCreated, about: "The key, with its secret.", body: made, headers: []string{"Cache-Control"}}}
}

// What a key can give, said where keys are made and where they are changed.
const (
	givesNoMore = "No key has more than the key that made it: each scope, pattern of models, address, bound and the expiry must be within its own, " +
		"a limited key makes limited keys, and a key of a group of its own makes keys of that group. Else it is a 403 that names the field. "
	quotaIsTaken = "Quota that a limited key gives is taken from its own, and does not come back."
)

func describeKeyList() *description {
	return &description{
		id: "listKeys", tag: tagKeys, summary: "List keys", about: "The live keys of the account, newest first.",
		query: []parameter{
			intParameter("limit", "How many at most.", 1, maxLimit, defaultLimit),
			textParameter("after", "The id of the key after which the page begins."),
		},
		answers: []answer{{status: http.StatusOK, about: "A page of keys.", body: keyList{Object: "list", Data: []apiKey{exampleKey()}}}},
	}
}

func describeKeyCreation() *description {
	return &description{
		id: "createKey", tag: tagKeys, summary: "Make a key",
		about: "The secret is shown in this answer and never again. " + givesNoMore + quotaIsTaken,
		body: newKey{
			Name: "ci", Quota: "12.50", Models: []string{"alpha-*"}, Caps: newCaps{Day: "2"}, Rate: 60, AllowIPs: []string{"203.0.113.0/24"},
			Scopes: []mediagate.Scope{mediagate.ScopeGenerate, mediagate.ScopeRead},
		},
		answers: exampleKeyMade(),
	}
}

func describeKey() *description {
	return &description{
		id: "getKey", tag: tagKeys, summary: "Read a key", about: "Ids that are malformed, unknown or another account's are a 404 in the same words.",
		answers: []answer{{status: http.StatusOK, about: "The key.", body: exampleKey()}},
		errors:  []mediagate.Kind{mediagate.KindNotFound},
	}
}

func describeKeyChange() *description {
	return &description{
		id: "changeKey", tag: tagKeys, summary: "Change a key",
		about: "What is not named stays as it is; null takes a limit away. Any key may be narrowed. A key that becomes more must be one " +
			"that the caller could make, as a whole; itself it can only narrow. " + quotaIsTaken + " Everywhere it acts within a second.",
		body:    keyChange{Quota: "20", Caps: newCaps{Day: "5"}},
		answers: []answer{{status: http.StatusOK, about: "The key as it is now.", body: exampleKey()}},
		errors:  []mediagate.Kind{mediagate.KindNotFound},
	}
}

func describeKeyDeletion() *description {
	return &description{
		id: "deleteKey", tag: tagKeys, summary: "Revoke a key", about: "Everywhere it is refused within a second. A key may revoke itself.",
		answers: []answer{{status: http.StatusNoContent, about: "The key is no more."}},
		errors:  []mediagate.Kind{mediagate.KindNotFound},
	}
}

func describeKeyRotation() *description {
	return &description{
		id: "rotateKey", tag: tagKeys, summary: "Rotate a key",
		about: "A new key with the same settings, whose secret is shown in this answer and never again. Both share quota, caps and rates. " +
			"The key before lives for a grace time, and is rotated once. One that may do more than the caller is a 403 that names the field.",
		body:    keyRotation{GraceSeconds: 3600},
		answers: exampleKeyMade(), errors: []mediagate.Kind{mediagate.KindNotFound, mediagate.KindConflict},
	}
}
