// Package all is the table of vendors. It opens a channel by the name of its provider. Packages
// that need the adapters import this package; the interfaces are in package providers.
package all

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/providers/acedata"
	"github.com/mediagate/mediagate/providers/dashscope"
	"github.com/mediagate/mediagate/providers/declared"
	"github.com/mediagate/mediagate/providers/gemini"
	"github.com/mediagate/mediagate/providers/kling"
	"github.com/mediagate/mediagate/providers/midjourney"
	"github.com/mediagate/mediagate/providers/openai"
	"github.com/mediagate/mediagate/providers/vendorhttp"
	"github.com/mediagate/mediagate/providers/veo"
	"github.com/mediagate/mediagate/providers/vertex"
)

// vendors returns the vendors that are written in Go, one a line.
func vendors() map[string]providers.Adapter {
	return map[string]providers.Adapter{
		"acedata":    newAdapter(acedata.Description(), acedata.New, vendorhttp.KeyAccount, acedata.Supports),
		"dashscope":  newAdapter(dashscope.Description(), dashscope.New, vendorhttp.KeyAccount, dashscope.Supports),
		"gemini":     newAdapter(gemini.Description(), gemini.New, vendorhttp.KeyAccount, gemini.Supports),
		"kling":      newAdapter(kling.Description(), kling.New, kling.Account, kling.Supports),
		"midjourney": newAdapter(midjourney.Description(), midjourney.New, midjourney.Account, midjourney.Supports),
		"openai":     newAdapter(openai.Description(), openai.New, vendorhttp.KeyAccount, openai.Supports),
		"veo":        newAdapter(veo.Description(), veo.New, vendorhttp.KeyAccount, veo.Supports),
		"vertex":     newAdapter(vertex.Description(), vertex.New, vertex.Account, vertex.Supports),
	}
}

// newAdapter returns the table row for the functions that an adapter's package exports.
func newAdapter[P providers.Provider](
	d providers.Description, open func(mediagate.Channel, providers.Options) (P, error),
	account func(mediagate.Channel) string, supports func(mediagate.Job, map[string]string) error,
) providers.Adapter {
	return providers.Adapter{
		Description: d, Account: account, Supports: supports,
		Open: func(ch mediagate.Channel, opt providers.Options) (providers.Provider, error) {
			p, err := open(ch, opt)
			if err != nil {
				return nil, err // an interface with a typed nil would not equal nil
			}
			return p, nil
		},
	}
}

// Vendors is a table of vendors. The zero value holds the built-in vendors.
type Vendors struct {
	rows   map[string]providers.Adapter
	files  map[string]*declared.Vendor // the rows that files declare
	loaded []*declared.Vendor          // from a folder, in the order of their names
}

// builtin returns the table of the built-in vendors. Tests check its files, so none has a fault.
var builtin = sync.OnceValue(func() Vendors {
	v := Vendors{rows: vendors(), files: map[string]*declared.Vendor{}}
	for _, file := range declared.Builtin() {
		v.add(file)
	}
	return v
})

// Builtin returns the table of the built-in vendors.
func Builtin() Vendors { return builtin() }

func (v Vendors) add(file *declared.Vendor) {
	v.rows[file.Name], v.files[file.Name] = file.Adapter(), file
}

// Load returns the built-in vendors and those that the files in dir declare. A file replaces a
// built-in file of the same name. The error joins all faults of all files.
func Load(dir string, allow declared.Allow) (Vendors, error) {
	files, err := declared.ReadDir(dir, allow)
	v := Vendors{rows: maps.Clone(builtin().rows), files: maps.Clone(builtin().files), loaded: files}
	for _, file := range files {
		if IsGo(file.Name) {
			err = errors.Join(err, nameTaken(file))
			continue
		}
		v.add(file)
	}
	return v, err
}

// ReadFile reads the file of one vendor in the way that Load reads each file of a folder.
func ReadFile(name string, allow declared.Allow) (*declared.Vendor, error) {
	file, err := declared.ReadFile(name, allow)
	if err == nil && IsGo(file.Name) {
		err = nameTaken(file)
	}
	return file, err
}

// IsGo reports whether the vendor of this name is built in and written in Go. A file cannot replace
// such a vendor.
func IsGo(name string) bool {
	_, known := vendors()[name]
	return known
}

func nameTaken(file *declared.Vendor) error {
	return file.Fault("%s is the name of a built-in vendor that a file cannot replace", file.Name)
}

// table returns v, or the built-in vendors if v is the zero value.
func (v Vendors) table() Vendors {
	if v.rows == nil {
		return builtin()
	}
	return v
}

// Names lists the names of all vendors.
func (v Vendors) Names() []string { return slices.Sorted(maps.Keys(v.table().rows)) }

// Adapter returns the adapter of the vendor with this name.
func (v Vendors) Adapter(name string) (providers.Adapter, bool) {
	a, ok := v.table().rows[name]
	return a, ok
}

// File returns the file that declares the vendor, or nil if no file does.
func (v Vendors) File(name string) *declared.Vendor { return v.table().files[name] }

// Loaded returns the files that Load has read from the folder.
func (v Vendors) Loaded() []*declared.Vendor { return v.loaded }

// New returns the provider of a channel. It makes no call. Its errors are of KindInvalid and join
// all problems. Each problem names the channel and the field.
func (v Vendors) New(ch mediagate.Channel, opt providers.Options) (providers.Provider, error) {
	a, ok := v.Adapter(ch.Provider)
	if !ok {
		return nil, mediagate.Invalid("provider", "channel %q: provider %q is unknown; known: %s",
			ch.Name, ch.Provider, strings.Join(v.Names(), ", "))
	}
	return a.Open(ch, opt)
}

// Fingerprint returns a hash that identifies the vendor account behind a channel without revealing it.
// The hash stays the same when the channel is renamed or gets another base URL. If the channel has an
// account label, the hash depends only on the provider and the label. Otherwise it depends on the
// credentials: a new secret for the same access key does not change it, and another account or a new
// API key does.
func (v Vendors) Fingerprint(ch mediagate.Channel) string {
	if ch.Account != "" {
		return fingerprint("label", ch.Provider, ch.Account)
	}
	return v.credentialsFingerprint(ch)
}

// Fingerprints returns all fingerprints under which a channel's account may be on record: first
// that of Fingerprint, then, if the channel has a label, that of its credentials. So an operator
// can add a label while jobs are under way.
func (v Vendors) Fingerprints(ch mediagate.Channel) []string {
	if ch.Account != "" {
		return []string{v.Fingerprint(ch), v.credentialsFingerprint(ch)}
	}
	return []string{v.Fingerprint(ch)}
}

func (v Vendors) credentialsFingerprint(ch mediagate.Channel) string {
	account := ""
	if a, ok := v.Adapter(ch.Provider); ok {
		account = a.Account(ch)
	}
	return fingerprint("account", ch.Provider, account)
}

func fingerprint(kind, provider, account string) string {
	sum := sha256.Sum256([]byte("mediagate channel " + kind + "\x00" + provider + "\x00" + account))
	return hex.EncodeToString(sum[:12])
}
