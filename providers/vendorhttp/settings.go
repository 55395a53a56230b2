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

// Settings collects all problems of a channel's settings, so that an operator sees them at once.
type Settings struct {
	channel mediagate.Channel
	errs    []error
}

// Check returns a Settings to check the channel with.
func Check(ch mediagate.Channel) *Settings { return &Settings{channel: ch} }

// AddProblem adds a problem with a field, such as credentials.api_key.
func (s *Settings) AddProblem(field, problem string) {
	s.errs = append(s.errs, mediagate.Invalid(field, "channel %q: %s %s", s.channel.Name, field, problem))
}

// Err returns all problems as one error of KindInvalid, or nil. Each problem names channel and
// field.
func (s *Settings) Err() error { return errors.Join(s.errs...) }

// CheckNames adds a problem for each credential and option with a name that is not listed.
func (s *Settings) CheckNames(credentials, options []string) {
	for _, name := range slices.Sorted(maps.Keys(s.channel.Credentials)) {
		if !slices.Contains(credentials, name) {
			s.AddProblem("credentials."+name, "is unknown; known: "+strings.Join(credentials, ", "))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.channel.Options)) {
		if !slices.Contains(options, name) {
			s.AddProblem("options."+name, "is unknown")
		}
	}
}

// maxCredential bounds a credential, to keep the head of a request within what servers accept.
const maxCredential = 2048

// Credential returns a credential. It must be present and fit into a header.
func (s *Settings) Credential(name string) mediagate.Secret {
	value := s.channel.Credentials[name].Reveal()
	switch {
	case value == "":
		s.AddProblem("credentials."+name, "is missing")
	case len(value) > maxCredential:
		s.AddProblem("credentials."+name, "is too long")
	case strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r > '~' }):
		s.AddProblem("credentials."+name, "holds spaces or characters that are not ASCII")
	}
	return s.channel.Credentials[name]
}

// BaseURL returns the channel's base URL, or else the vendor's public one, without trailing
// slashes.
func (s *Settings) BaseURL(public string) string {
	raw := cmp.Or(s.channel.BaseURL, public)
	u, err := url.Parse(raw)
	switch {
	case err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "":
		s.AddProblem("base_url", "must be an absolute http or https URL")
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		s.AddProblem("base_url", "takes scheme, host and prefix only")
	}
	return strings.TrimRight(raw, "/")
}
