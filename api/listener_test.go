package api_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/mediagate/mediagate/api"
)

// TestAdminListener checks that with its own listener the admin API is served only there, for any
// spelling of its path, and that nothing else is served there but health.
func TestAdminListener(t *testing.T) {
	t.Parallel()
	own, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	g := newGateway(t, func(c *api.Config) { c.AdminListener = own })
	public, adminAt := g.serve(), own.Addr().String()
	for name, test := range map[string]struct {
		method, target, key string
		public, admin       int
	}{
		"accounts":              {http.MethodGet, "/admin/v1/accounts", adminKey, 404, 200},
		"a method that is none": {http.MethodDelete, "/admin/v1/accounts", adminKey, 404, 405},
		"without a key":         {http.MethodGet, "/admin/v1/accounts", "", 404, 401},
		"with a client's key":   {http.MethodGet, "/admin/v1/accounts", g.key, 404, 403},
		"a route with a name":   {http.MethodGet, "/admin/v1/channels/kling-a", adminKey, 404, 200},
		"an escaped letter":     {http.MethodGet, "/%61dmin/v1/accounts", adminKey, 404, 404},
		"an escaped slash":      {http.MethodGet, "/admin%2Fv1/accounts", adminKey, 404, 404},
		"two slashes":           {http.MethodGet, "//admin/v1/accounts", adminKey, 404, 404},
		"a way around":          {http.MethodGet, "/v1/../admin/v1/accounts", adminKey, 404, 404},
		"the whole address":     {http.MethodGet, "http://" + adminAt + "/admin/v1/accounts", adminKey, 404, 200},
		"a path of no route":    {http.MethodGet, "/admin/v1/nothing", adminKey, 404, 404},
		"models":                {http.MethodGet, "/v1/models", g.key, 200, 404},
		"the document":          {http.MethodGet, "/openapi.json", "", 200, 404},
		"ready":                 {http.MethodGet, "/readyz", "", 200, 200},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for at, want := range map[string]int{public: test.public, adminAt: test.admin} {
				s := dial(t, at)
				_, err := fmt.Fprintf(s, "%s %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nConnection: close\r\n\r\n", test.method, test.target, test.key)
				must(t, err)
				resp, err := http.ReadResponse(s.answers, nil)
				must(t, err)
				body, err := io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				if err != nil || resp.StatusCode != want {
					t.Errorf("%s: status %d (%v), want %d", at, resp.StatusCode, err, want)
				}
				var e struct{ Error struct{ Message string } }
				if want == http.StatusNotFound &&
					(json.Unmarshal(body, &e) != nil || !strings.Contains(e.Error.Message, "no such route")) {
					t.Errorf("%s: the answer of an unknown route is %s", at, body)
				}
			}
		})
	}
}
