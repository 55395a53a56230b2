package api_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api"
)

// TestLinks checks that links live as long as the setting, and that the answer says so. Only the
// client's own cache may store a read of one task, and no cache a list.
func TestLinks(t *testing.T) {
	t.Parallel()
	g := newGateway(t, func(c *api.Config) { c.LinkTTL = 90 * time.Minute })
	id := g.submit("/v1/images/generations", `{"model":"theta-image-turbo","prompt":"a red boat"}`)
	g.complete(id, mediagate.Result{
		Role: mediagate.RoleMain, Key: "results/" + id + "/1/0", MimeType: "image/png", Size: 9, SHA256: strings.Repeat("ab", 32), Width: 64, Height: 64,
	})
	want := g.clock.now().Add(90 * time.Minute).Unix()
	const own = "private, no-cache"
	for path, caching := range map[string]string{
		"/v1/tasks/" + id:              own,
		"/v1/tasks/" + id + "?wait=1":  own,
		"/v1/tasks":                    "no-store",
		"/v1/images/generations/" + id: own,
	} {
		a := g.get(path)
		if a.status != http.StatusOK || !strings.Contains(a.body, "X-Amz-Expires=5400") || !strings.Contains(a.body, `"expires_at":`+strconv.FormatInt(want, 10)) {
			t.Errorf("%s: %d %s, want links until %d", path, a.status, a.body, want)
		}
		if a.header.Get("Cache-Control") != caching || a.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s may be kept: %v, want %s", path, a.header, caching)
		}
	}
}
