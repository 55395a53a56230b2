package app_test

import (
	"strings"
	"testing"

	"github.com/mediagate/mediagate/cmd/mediagate/app"
)

// TestListen checks that each role has its listeners, and that a failed one is reported with its
// setting.
func TestListen(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		admin       string
		api, worker bool
		want        string // listeners in the order of Roles
		wrong       string
	}{
		"api":                            {api: true, want: "api ops"},
		"api and admin":                  {admin: "127.0.0.1:0", api: true, want: "api admin ops"},
		"all":                            {admin: "127.0.0.1:0", api: true, worker: true, want: "api admin ops"},
		"a worker has no admin API":      {admin: "127.0.0.1:0", worker: true, want: "ops"},
		"an address that is not our own": {admin: "192.0.2.1:0", api: true, wrong: "admin_listen: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := app.Defaults()
			c.APIListen, c.OpsListen, c.AdminListen = "127.0.0.1:0", "127.0.0.1:0", test.admin
			r, err := c.Listen(t.Context(), test.api, test.worker)
			if test.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), test.wrong) {
					t.Errorf("error %v, want one with %q", err, test.wrong)
				}
				return
			}
			must(t, err)
			var got []string
			if r.API != nil {
				got = append(got, "api")
				defer func() { _ = r.API.Close() }()
			}
			if r.Admin != nil {
				got = append(got, "admin")
				defer func() { _ = r.Admin.Close() }()
			}
			if r.Ops != nil {
				got = append(got, "ops")
				defer func() { _ = r.Ops.Close() }()
			}
			if strings.Join(got, " ") != test.want || r.Worker != test.worker {
				t.Errorf("listens for %v, want %q", got, test.want)
			}
		})
	}
}
