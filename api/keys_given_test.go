package api

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mediagate/mediagate"
)

// TestCoverModelsIsExact checks that a list of patterns covers another exactly if the other
// allows no additional model.
func TestCoverModelsIsExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.StringMatching(`[ab*]{1,5}`)
		most := rapid.SliceOfN(pattern, 1, 4).Draw(t, "most")
		one := pattern.Draw(t, "pattern")
		covered := matchesAny(most, one)
		// A text that no pattern has, and others that they have.
		for _, text := range []string{"c", "", "a", "b", "ab", "ba"} {
			name := strings.ReplaceAll(one, "*", text)
			if covered && !matchesAny(most, name) {
				t.Fatalf("%q is said to cover %s, which allows %s", most, one, name)
			}
		}
		if !covered && matchesAny(most, strings.ReplaceAll(one, "*", "c")) {
			t.Fatalf("%q covers %s, and is said not to", most, one)
		}
	})
}

func TestCoverModels(t *testing.T) {
	t.Parallel()
	models := BuiltIn(t)
	for name, test := range map[string]struct {
		has, group, given []string
		want              bool
	}{
		"all of all":                        {nil, nil, nil, true},
		"some of all":                       {nil, nil, []string{"alpha-*", "theta-image-turbo"}, true},
		"all of a star":                     {[]string{"*"}, nil, nil, true},
		"all of some":                       {[]string{"alpha-*"}, nil, nil, false},
		"a star of some":                    {[]string{"alpha-*"}, nil, []string{"*"}, false},
		"narrower":                          {[]string{"a*"}, nil, []string{"alpha-*", "a*3"}, true},
		"wider":                             {[]string{"alpha-*"}, nil, []string{"a*"}, false},
		"one of several":                    {[]string{"alpha-*"}, nil, []string{"alpha-v3", "beta-q3"}, false},
		"an ending":                         {[]string{"*-v3"}, nil, []string{"alpha*-v3"}, true},
		"what only two patterns would know": {[]string{"alpha-*", "beta-*"}, nil, []string{"*-*"}, false},
		"beyond the group":                  {nil, []string{"theta-*"}, []string{"alpha-v3"}, false},
		"within the group":                  {nil, []string{"theta-*"}, []string{"theta-image-*"}, true},
		"all, in a group":                   {nil, []string{"theta-*"}, nil, true},
		"a model of no catalog":             {nil, nil, []string{"omega"}, false},
		"one that a star is not":            {[]string{"*"}, nil, []string{"omega"}, false},
		"one that it names":                 {[]string{"omega"}, nil, []string{"omega"}, true},
	} {
		p := grantable{key: mediagate.Key{Models: test.has}, group: test.group, catalog: models}
		if got := p.coversModels(test.given); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestCoverAddresses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		most, given []string
		want        bool
	}{
		"any of any":            {nil, nil, true},
		"some of any":           {nil, []string{"10.0.0.0/8"}, true},
		"any of some":           {[]string{"10.0.0.0/8"}, nil, false},
		"the same":              {[]string{"10.0.0.0/8", "2001:db8::1"}, []string{"2001:db8::1", "10.0.0.0/8"}, true},
		"one inside":            {[]string{"10.0.0.0/8"}, []string{"10.1.2.3", "10.2.0.0/16"}, true},
		"wider":                 {[]string{"10.0.0.0/9"}, []string{"10.0.0.0/8"}, false},
		"beside":                {[]string{"10.0.0.0/9"}, []string{"10.128.0.0"}, false},
		"two halves":            {[]string{"10.0.0.0/9", "10.128.0.0/9"}, []string{"10.0.0.0/8"}, true},
		"a half and a quarter":  {[]string{"10.0.0.0/9", "10.128.0.0/10"}, []string{"10.0.0.0/8"}, false},
		"pieces":                {[]string{"10.0.0.0/31", "10.0.0.2", "10.0.0.3"}, []string{"10.0.0.0/30"}, true},
		"the other family":      {[]string{"10.0.0.0/8"}, []string{"::a00:1"}, false},
		"mapped":                {[]string{"10.0.0.0/8"}, []string{"::ffff:10.0.0.1"}, true},
		"of what is unreadable": {[]string{"nowhere"}, []string{"10.0.0.1"}, false},
	} {
		if got := coversAddresses(test.most, test.given); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestLacks checks that each right of a key beyond another key's is named.
func TestLacks(t *testing.T) {
	t.Parallel()
	models := BuiltIn(t)
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	key := func(changes ...func(k *mediagate.Key)) mediagate.Key {
		k := mediagate.Key{
			Scopes: []mediagate.Scope{mediagate.ScopeRead, mediagate.ScopeManage}, Models: []string{"alpha-*"}, Group: "half", AllowIPs: []string{"10.0.0.0/8"},
			ExpiresAt: now, Quota: 10, Caps: mediagate.Caps{Day: new(mediagate.Micros(1)), Week: new(mediagate.Micros(2)), Month: new(mediagate.Micros(3))},
			Rate: new(4), InFlight: new(5),
		}
		for _, change := range changes {
			change(&k)
		}
		return k
	}
	limits := map[string][]struct {
		same, more func(k *mediagate.Key) // within, and beyond
	}{
		"scopes": {{
			func(k *mediagate.Key) { k.Scopes = k.Scopes[:1] },
			func(k *mediagate.Key) { k.Scopes = append(slices.Clone(k.Scopes), mediagate.ScopeGenerate) },
		}},
		"models":     {{func(k *mediagate.Key) { k.Models = []string{"alpha-v3"} }, func(k *mediagate.Key) { k.Models = nil }}},
		"group":      {{func(*mediagate.Key) {}, func(k *mediagate.Key) { k.Group = "" }}, {func(*mediagate.Key) {}, func(k *mediagate.Key) { k.Group = "default" }}},
		"allow_ips":  {{func(k *mediagate.Key) { k.AllowIPs = []string{"10.1.1.1"} }, func(k *mediagate.Key) { k.AllowIPs = []string{"11.0.0.0/8"} }}},
		"expires_at": {{func(k *mediagate.Key) { k.ExpiresAt = now }, func(k *mediagate.Key) { k.ExpiresAt = now.Add(1) }}, {func(*mediagate.Key) {}, func(k *mediagate.Key) { k.ExpiresAt = time.Time{} }}},
		"unlimited":  {{func(*mediagate.Key) {}, func(k *mediagate.Key) { k.Unlimited = true }}},
		"quota":      {{func(k *mediagate.Key) { k.Quota = 12; k.Spent = 2 }, func(k *mediagate.Key) { k.Quota = 11 }}},
		"caps.day":   {{func(k *mediagate.Key) { k.Caps.Day = new(mediagate.Micros(0)) }, func(k *mediagate.Key) { k.Caps.Day = new(mediagate.Micros(2)) }}},
		"caps.week":  {{func(k *mediagate.Key) { k.Caps.Week = new(mediagate.Micros(2)) }, func(k *mediagate.Key) { k.Caps.Week = nil }}},
		"caps.month": {{func(k *mediagate.Key) { k.Caps.Month = new(mediagate.Micros(3)) }, func(k *mediagate.Key) { k.Caps.Month = new(mediagate.Micros(4)) }}},
		"rate":       {{func(k *mediagate.Key) { k.Rate = new(0) }, func(k *mediagate.Key) { k.Rate = nil }}},
		"in_flight":  {{func(k *mediagate.Key) { k.InFlight = new(5) }, func(k *mediagate.Key) { k.InFlight = new(6) }}},
	}
	has := grantable{key: key(), catalog: models}
	for field, cases := range limits {
		for _, c := range cases {
			if got := has.excess(key(c.same)); len(got) > 0 {
				t.Errorf("%s within: %s", field, got)
			}
			if got := has.excess(key(c.more)); !slices.Equal(got, []string{field}) {
				t.Errorf("%s beyond: %s", field, got)
			}
		}
	}
	all := grantable{key: mediagate.Key{Unlimited: true, Scopes: mediagate.Scopes(), Group: "half"}, catalog: models}
	if got := all.excess(key()); len(got) > 0 {
		t.Errorf("a key without limits lacks %s", got)
	}
}
