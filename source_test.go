package mediagate_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
)

// An account is told apart by its fingerprint; by the channel's name only where
// no account has it.
func TestMadeBy(t *testing.T) {
	t.Parallel()
	source := &mediagate.Source{Channel: "east", Fingerprint: "f1"}
	maker := func(name string, fingerprints ...string) mediagate.VendorAccount {
		return mediagate.VendorAccount{Channel: name, Fingerprints: fingerprints}
	}
	for name, test := range map[string]struct {
		accounts []mediagate.VendorAccount
		want     []bool
	}{
		"nobody":                    {nil, []bool{}},
		"the fingerprint":           {[]mediagate.VendorAccount{maker("west", "f2"), maker("north", "f3", "f1")}, []bool{false, true}},
		"two with one account":      {[]mediagate.VendorAccount{maker("west", "f1"), maker("east", "f1")}, []bool{true, true}},
		"the name, if nothing else": {[]mediagate.VendorAccount{maker("west", "f2"), maker("east", "f4")}, []bool{false, true}},
		"not the name beside it":    {[]mediagate.VendorAccount{maker("east", "f2"), maker("west", "f1")}, []bool{false, true}},
		"a former name":             {[]mediagate.VendorAccount{{Channel: "west", Former: []string{"east"}, Fingerprints: []string{"f4"}}}, []bool{true}},
		"strangers":                 {[]mediagate.VendorAccount{maker("west", "f2")}, []bool{false}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, source.MadeBy(test.accounts)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A source without a file has no link.
func TestAs(t *testing.T) {
	t.Parallel()
	source := &mediagate.Source{VendorID: "v"}
	if told := source.As(true, "https://files"); !told.Own || told.URL != "" || source.Own {
		t.Errorf("told %+v of %+v", told, source)
	}
	source.Key = "results/1"
	if told := source.As(false, "https://files"); told.Own || told.URL != "https://files" || told.VendorID != "v" {
		t.Errorf("told %+v", told)
	}
	if (*mediagate.Source)(nil).As(true, "https://files") != nil {
		t.Error("no source became one")
	}
}
