package vendorhttp

import (
	"cmp"
	"errors"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/mediagate/mediagate"
)

// Settings collects what is wrong with a channel, so that an operator reads
// all of it at once.
type Settings struct {
	channel mediagate.Channel
	errs    []error
}

// Check starts to judge a channel's settings.
func Check(ch mediagate.Channel) *Settings { return &Settings{channel: ch} }

// Wrong adds a problem with a field, such as credentials.api_key.
func (s *Settings) Wrong(field, problem string) {
	s.errs = append(s.errs, mediagate.Invalid(field, "channel %q: %s %s", s.channel.Name, field, problem))
}

// Err is nil, or an error of KindInvalid with all problems; each names the
// channel and the field.
func (s *Settings) Err() error { return errors.Join(s.errs...) }

// Known refuses credentials and options of other names.
func (s *Settings) Known(credentials, options []string) {
	for _, name := range slices.Sorted(maps.Keys(s.channel.Credentials)) {
		if !slices.Contains(credentials, name) {
			s.Wrong("credentials."+name, "is unknown; known: "+strings.Join(credentials, ", "))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.channel.Options)) {
		if !slices.Contains(options, name) {
			s.Wrong("options."+name, "is unknown")
		}
	}
}

// maxCredential keeps the head of a request within what servers take.
const maxCredential = 2048

// Credential returns a credential that must be there and fit a header.
func (s *Settings) Credential(name string) mediagate.Secret {
	value := s.channel.Credentials[name].Reveal()
	switch {
	case value == "":
		s.Wrong("credentials."+name, "is missing")
	case len(value) > maxCredential:
		s.Wrong("credentials."+name, "is too long")
	case strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r > '~' }):
		s.Wrong("credentials."+name, "holds spaces or characters that are not ASCII")
	}
	return s.channel.Credentials[name]
}

// BaseURL returns the channel's base URL, or the vendor's public one, without
// a slash at its end.
func (s *Settings) BaseURL(public string) string {
	raw := cmp.Or(s.channel.BaseURL, public)
	u, err := url.Parse(raw)
	switch {
	case err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "":
		s.Wrong("base_url", "must be an absolute http or https URL")
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		s.Wrong("base_url", "takes scheme, host and prefix only")
	}
	return strings.TrimRight(raw, "/")
}
