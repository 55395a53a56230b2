package main

import (
	"io"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mediagate/mediagate/standalone/hostguard"
)

func TestParseOptions(t *testing.T) {
	t.Parallel()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	defaults := options{
		data: ".mediagate", api: "127.0.0.1:8080", temporal: "127.0.0.1:7233", ui: "127.0.0.1:8233",
		s3: "127.0.0.1:9000", sandbox: "127.0.0.1:9900", ops: "127.0.0.1:9090",
	}
	for name, test := range map[string]struct {
		args []string
		want func(*options)
	}{
		"defaults": {nil, func(*options) {}},
		"folder":   {[]string{"-data", "/x"}, func(o *options) { o.data = "/x" }},
		"addresses": {
			[]string{"-api", ":1", "-temporal", ":2", "-ui", ":3", "-s3", ":4", "-sandbox", ":5", "-ops", ":6"},
			func(o *options) {
				o.api, o.temporal, o.ui, o.s3, o.sandbox, o.ops = ":1", ":2", ":3", ":4", ":5", ":6"
				o.settings = []string{"-api-listen=:1", "-ops-listen=:6"}
			},
		},
		"database": {
			[]string{"-database-url", "postgres://x"},
			func(o *options) { o.settings = []string{"-database-url=postgres://x"} },
		},
		"names": {[]string{"-allowed-hosts", "a.example, b"}, func(o *options) {
			o.allowedHosts = hostguard.Names{"a.example", "b"}
		}},
		"settings":  {[]string{"-config", "/etc/x.yaml"}, func(o *options) { o.config = "/etc/x.yaml" }},
		"all infra": {[]string{"-infra", "temporal,ui,s3,sandbox"}, func(o *options) { o.infra = infraNames() }},
		"infra twice": {
			[]string{"-infra", "s3, s3"}, func(o *options) { o.infra = []string{"s3"} },
		},
		"ui elsewhere": {
			[]string{"-infra", "ui", "-temporal", "10.0.0.1:7233"},
			func(o *options) { o.infra, o.temporal = []string{"ui"}, "10.0.0.1:7233" },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := parseOptions(test.args, io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			want := defaults
			want.startedIn = here
			test.want(&want)
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(options{}), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("options (-want +got):\n%s", diff)
			}
			if got.infraOnly() != (want.infra != nil) {
				t.Errorf("infraOnly = %v", got.infraOnly())
			}
		})
	}
}

func TestParseOptionsRefuses(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"unknown flag":         {"-x"},
		"argument":             {"start"},
		"empty infra":          {"-infra", ""},
		"unknown infra":        {"-infra", "s3,api"},
		"address":              {"-api", "8080"},
		"allowed hosts":        {"-allowed-hosts", "https://temporal.example"},
		"a restore to come":    {"-restored-to", "2999-01-01T00:00:00Z"},
		"a restore to no time": {"-restored-to", "yesterday"},
		"ui without temporal":  {"-infra", "ui", "-temporal", "127.0.0.1:0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, err := parseOptions(args, io.Discard); err == nil {
				t.Errorf("parseOptions(%q) = %+v, want an error", args, got)
			}
		})
	}
}
