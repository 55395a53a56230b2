// Package all is the table of vendors: it opens a channel by the name of its
// provider. Whoever needs the adapters themselves imports it; the interface is
// the parent's.
package all

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/providers/acedata"
	"github.com/mediagate/mediagate/providers/dashscope"
	"github.com/mediagate/mediagate/providers/gemini"
	"github.com/mediagate/mediagate/providers/kling"
	"github.com/mediagate/mediagate/providers/midjourney"
	"github.com/mediagate/mediagate/providers/minimax"
	"github.com/mediagate/mediagate/providers/musicapi"
	"github.com/mediagate/mediagate/providers/openai"
	"github.com/mediagate/mediagate/providers/sunoapi"
	"github.com/mediagate/mediagate/providers/vendorhttp"
	"github.com/mediagate/mediagate/providers/veo"
	"github.com/mediagate/mediagate/providers/vertex"
	"github.com/mediagate/mediagate/providers/vidu"
)

// vendors is the table of all vendors: one line each.
func vendors() map[string]providers.Adapter {
	return map[string]providers.Adapter{
		"acedata":    row(acedata.Description(), acedata.New, vendorhttp.KeyAccount, acedata.Express),
		"dashscope":  row(dashscope.Description(), dashscope.New, vendorhttp.KeyAccount, dashscope.Express),
		"gemini":     row(gemini.Description(), gemini.New, vendorhttp.KeyAccount, gemini.Express),
		"kling":      row(kling.Description(), kling.New, kling.Account, kling.Express),
		"midjourney": row(midjourney.Description(), midjourney.New, midjourney.Account, midjourney.Express),
		"minimax":    row(minimax.Description(), minimax.New, vendorhttp.KeyAccount, minimax.Express),
		"musicapi":   row(musicapi.Description(), musicapi.New, vendorhttp.KeyAccount, musicapi.Express),
		"openai":     row(openai.Description(), openai.New, vendorhttp.KeyAccount, openai.Express),
		"sunoapi":    row(sunoapi.Description(), sunoapi.New, vendorhttp.KeyAccount, sunoapi.Express),
		"veo":        row(veo.Description(), veo.New, vendorhttp.KeyAccount, veo.Express),
		"vertex":     row(vertex.Description(), vertex.New, vertex.Account, vertex.Express),
		"vidu":       row(vidu.Description(), vidu.New, vendorhttp.KeyAccount, vidu.Express),
	}
}

// row makes one of the table of what an adapter's package exports.
func row[P providers.Provider](
	d providers.Description, open func(mediagate.Channel, providers.Options) (P, error),
	account func(mediagate.Channel) string, express func(mediagate.Job, map[string]string) error,
) providers.Adapter {
	return providers.Adapter{
		Description: d, Account: account, Express: express,
		Open: func(ch mediagate.Channel, opt providers.Options) (providers.Provider, error) {
			p, err := open(ch, opt)
			if err != nil {
				return nil, err // not a typed nil in an interface
			}
			return p, nil
		},
	}
}

// Known lists the names of all vendors.
func Known() []string { return slices.Sorted(maps.Keys(vendors())) }

// Adapter is what is known of a vendor by the name of its provider.
func Adapter(name string) (providers.Adapter, bool) {
	v, ok := vendors()[name]
	return v, ok
}

// New makes the provider of a channel. It makes no call. An error is of
// KindInvalid; each of the problems that it joins names channel and field.
func New(ch mediagate.Channel, opt providers.Options) (providers.Provider, error) {
	v, ok := Adapter(ch.Provider)
	if !ok {
		return nil, mediagate.Invalid("provider", "channel %q: provider %q is unknown; known: %s",
			ch.Name, ch.Provider, strings.Join(Known(), ", "))
	}
	return v.Open(ch, opt)
}

// Fingerprint names the vendor account behind a channel without giving it
// away. It stays the same when a channel is renamed or reaches the vendor at
// another address. Where the channel has a label for its account, nothing else
// counts; without one it stays the same with a new secret for the same access
// key, and changes with another account or a new API key.
func Fingerprint(ch mediagate.Channel) string {
	if ch.Account != "" {
		return fingerprint("label", ch.Provider, ch.Account)
	}
	return credentialsFingerprint(ch)
}

// Fingerprints are all by which a channel's account may be on record: that of
// Fingerprint first, then the one that the same credentials have without a
// label, so that a label may be given while jobs are under way.
func Fingerprints(ch mediagate.Channel) []string {
	if ch.Account != "" {
		return []string{Fingerprint(ch), credentialsFingerprint(ch)}
	}
	return []string{Fingerprint(ch)}
}

func credentialsFingerprint(ch mediagate.Channel) string {
	account := ""
	if v, ok := Adapter(ch.Provider); ok {
		account = v.Account(ch)
	}
	return fingerprint("account", ch.Provider, account)
}

func fingerprint(kind, provider, account string) string {
	sum := sha256.Sum256([]byte("mediagate channel " + kind + "\x00" + provider + "\x00" + account))
	return hex.EncodeToString(sum[:12])
}
