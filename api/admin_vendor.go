package api

import (
	"slices"

	"github.com/mediagate/mediagate"
)

// The sources of vendors, as operators read them.
const (
	VendorInGo  = "go"         // an adapter in Go
	VendorFile  = "built-in"   // a file that is part of the program
	VendorAdded = "vendor_dir" // a file of the operator's
)

// Vendor describes a vendor that channels can name as their provider.
type Vendor struct {
	Name        string   `json:"name"`
	Source      string   `json:"source"`
	Credentials []string `json:"credentials"`
	Options     []string `json:"options"`
	Operations  []string `json:"operations"`
}

var errVendorPage = mediagate.Invalid("after", "after must be the name of a vendor")

// handleVendors lists the vendors by name.
func (s *Server) handleVendors(c *call) error {
	q := c.query()
	limit, err := intQuery(q, "limit", 1, maxLimit, defaultLimit)
	if err != nil {
		return err
	}
	list := s.cfg.Vendors
	if after := q.Get("after"); after != "" {
		at := slices.IndexFunc(list, func(v Vendor) bool { return v.Name == after })
		if at < 0 {
			return errVendorPage
		}
		list = list[at+1:]
	}
	page := list[:min(limit, len(list))]
	return c.ok(adminList[Vendor]{Object: "list", Data: append([]Vendor{}, page...), HasMore: len(page) < len(list)})
}
