package app

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"os"
	"slices"

	"github.com/mediagate/mediagate/api"
	"github.com/mediagate/mediagate/catalog"
	"github.com/mediagate/mediagate/providers/all"
)

// vendors reads the files of vendor_dir. If one of them is invalid, channels and models are not
// checked, since they may name its vendor.
func (r *reader) vendors(c *Config) {
	if c.VendorDir == "" || !r.known("vendor_dir") {
		return
	}
	_, err := os.ReadDir(c.VendorDir)
	if err != nil {
		err = problem{"vendor_dir", err.Error()}
	} else if c.vendors, err = all.Load(c.VendorDir, c.allowsHost); err == nil {
		return
	}
	for _, path := range []string{"channels", "catalog_dir"} {
		r.broken[path] = true
	}
	r.problems = append(r.problems, leaves(err)...)
}

// allowsHost reports whether outbound.allow contains a host: its address, or the loopback for a name
// of this machine.
func (c Config) allowsHost(host string) bool {
	address, err := netip.ParseAddr(host)
	if err != nil {
		if !loopback(host) {
			return false
		}
		address = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	return slices.ContainsFunc(c.Outbound.Allow, func(text string) bool {
		prefix, err := netip.ParsePrefix(text)
		return err == nil && prefix.Contains(address.Unmap())
	})
}

// TestVendors runs the examples in the files of vendor_dir, and in the built-in files that
// channels name. It makes no calls.
func (c Config) TestVendors(ctx context.Context) error {
	files := slices.Clone(c.vendors.Loaded())
	for _, ch := range c.Channels {
		if file := c.vendors.File(ch.Provider); file != nil && !slices.Contains(files, file) {
			files = append(files, file)
		}
	}
	var err error
	for _, file := range files {
		err = errors.Join(err, file.Test(ctx))
	}
	return err
}

// apiVendors converts the vendors to what operators see over the API.
func apiVendors(vendors all.Vendors) []api.Vendor {
	var list []api.Vendor
	for _, name := range vendors.Names() {
		adapter, _ := vendors.Adapter(name)
		about, source := adapter.Description, api.VendorInGo
		if file := vendors.File(name); file != nil {
			if source = api.VendorFile; slices.Contains(vendors.Loaded(), file) {
				source = api.VendorAdded
			}
		}
		list = append(list, api.Vendor{
			Name: name, Source: source,
			Credentials: append([]string{}, about.Credentials...), Options: append([]string{}, about.Options...),
			Operations: append([]string{}, slices.Sorted(maps.Keys(about.Operations))...),
		})
	}
	return list
}

// checkVendorFields reports fields in files of vendor_dir that no request can have: fields of no
// model and not of the base contract.
func (v *validator) checkVendorFields(vendors all.Vendors, models *catalog.Catalog) {
	known := map[string]bool{}
	for _, m := range models.Models() {
		for _, o := range m.Operations() {
			for _, field := range o.Fields() {
				known[field] = true
			}
		}
	}
	for _, file := range vendors.Loaded() {
		for _, field := range file.Fields() {
			has := known[field.Name] || slices.Contains(baseFields, field.Name)
			v.check(has, field.Position, "no model has a field %s", field.Name)
		}
	}
}

// baseFields are the fields of the base contract.
var baseFields = []string{"prompt", "image_urls", "duration", "resolution", "size", "aspect_ratio", "n", "seed"}
