package api_test

import (
	"net/http"
	"testing"

	"github.com/mediagate/mediagate/api"
)

// TestVendors checks the list of vendors and where each comes from.
func TestVendors(t *testing.T) {
	t.Parallel()
	g := newGateway(t, func(c *api.Config) {
		c.Vendors = []api.Vendor{
			{Name: "acme", Source: api.VendorAdded, Credentials: []string{}, Options: []string{}, Operations: []string{"video"}},
			{Name: "kling", Source: api.VendorInGo, Credentials: []string{"access_key"}, Options: []string{"base_url"}, Operations: []string{"image"}},
		}
	})
	a := g.operate(http.MethodGet, "/vendors?limit=1", "")
	if a.at("data", 0, "name") != "acme" || a.at("data", 0, "source") != "vendor_dir" || a.at("data", 0, "operations", 0) != "video" || a.at("has_more") != true {
		t.Errorf("first page: %s", a.body)
	}
	if a = g.operate(http.MethodGet, "/vendors?after=acme", ""); a.at("data", 0, "name") != "kling" || a.at("has_more") != false {
		t.Errorf("second page: %s", a.body)
	}
	g.operate(http.MethodGet, "/vendors?after=nobody", "").wantError(t, 400, "invalid_request_error", "after")
}
