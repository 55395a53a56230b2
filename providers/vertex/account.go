package vertex

import (
	"cmp"
	"encoding/json"
	"io"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/oauth2/jwt"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// The credentials of a channel.
const (
	credAccount  = "service_account"
	credProject  = "project"
	credLocation = "location"
)

// scope is the scope of the tokens.
const scope = "https://www.googleapis.com/auth/cloud-platform"

// googleOAuth is the address that makes tokens if the account does not state one.
const googleOAuth = "https://oauth2.googleapis.com/token"

// settings are the checked settings of a channel.
type settings struct {
	base, project, location string
	account                 serviceAccount
	secrets                 []mediagate.Secret
}

// serviceAccount is the key file of a service account.
type serviceAccount struct {
	Type         string `json:"type"`
	ClientEmail  string `json:"client_email"`
	PrivateKey   string `json:"private_key"`
	PrivateKeyID string `json:"private_key_id"`
	TokenURI     string `json:"token_uri"`
}

var (
	projectPattern  = regexp.MustCompile(`^[a-z0-9][a-z0-9.:-]{0,80}$`)
	locationPattern = regexp.MustCompile(`^[a-z][a-z0-9-]{0,40}$`)
)

// publicURL returns the vendor's public address for a location.
func publicURL(location string) string {
	if location == "global" {
		return "https://aiplatform.googleapis.com"
	}
	return "https://" + location + "-aiplatform.googleapis.com"
}

func readSettings(ch mediagate.Channel) (settings, error) {
	check := vendorhttp.Check(ch)
	check.CheckNames(Description().Credentials, nil)
	s := settings{project: check.Credential(credProject).Reveal(), location: check.Credential(credLocation).Reveal()}
	if s.project != "" && !projectPattern.MatchString(s.project) {
		check.AddProblem("credentials."+credProject, "is no project's id or number")
	}
	public := "https://aiplatform.googleapis.com"
	switch {
	case s.location == "":
	case !locationPattern.MatchString(s.location):
		check.AddProblem("credentials."+credLocation, "is no location of the vendor's")
	default:
		public = publicURL(s.location)
	}
	s.base = check.BaseURL(public)
	raw, problem := accountText(ch.Credentials[credAccount].Reveal())
	if problem == "" {
		s.account, problem = readAccount(raw)
	}
	if problem != "" {
		check.AddProblem("credentials."+credAccount, problem)
	}
	for _, text := range append(
		keyLines(s.account.PrivateKey),
		raw, s.account.PrivateKeyID, s.account.ClientEmail, s.project, s.location,
	) {
		s.secrets = append(s.secrets, mediagate.NewSecret(text))
	}
	s.secrets = append(s.secrets, ch.Credentials[credAccount])
	return s, check.Err()
}

// keyLines returns the lines of a key. Each line is a secret of its own, because Clean checks texts
// without line breaks. The BEGIN and END lines are left out, because their words are common.
func keyLines(key string) []string {
	return slices.DeleteFunc(strings.Fields(key), func(word string) bool {
		return strings.Contains(word, "-----") || word == "PRIVATE"
	})
}

// maxAccount is far above the size of a key file.
const maxAccount = 64 << 10

// accountText returns the JSON of a key. value is the JSON itself or the path of its file.
func accountText(value string) (text, problem string) {
	value = strings.TrimSpace(value)
	switch {
	case value == "":
		return "", "is missing"
	case len(value) > maxAccount:
		return "", "is too long"
	case strings.HasPrefix(value, "{"):
		return value, ""
	}
	file, err := os.Open(value)
	if err != nil {
		return "", "is neither JSON nor the path of a file that can be read"
	}
	defer file.Close()
	b, err := io.ReadAll(io.LimitReader(file, maxAccount))
	if err != nil {
		return "", "is neither JSON nor the path of a file that can be read"
	}
	return string(b), ""
}

// readAccount reads and checks a key file. It makes no call.
func readAccount(text string) (a serviceAccount, problem string) {
	if json.Unmarshal([]byte(text), &a) != nil {
		return serviceAccount{}, "is no JSON of a service account"
	}
	a.TokenURI = cmp.Or(a.TokenURI, googleOAuth)
	tokens, err := url.Parse(a.TokenURI)
	switch {
	case a.Type != "service_account":
		return a, `must be the key of a service account, with type "service_account"`
	case a.ClientEmail == "":
		return a, "has no client_email"
	case !validKey(a.PrivateKey):
		return a, "has no private_key of RSA in PEM"
	case err != nil, tokens.Scheme != "https" && tokens.Scheme != "http", tokens.Hostname() == "",
		tokens.User != nil, tokens.Fragment != "":
		return a, "has a token_uri that is no http or https URL"
	}
	return a, ""
}

// config returns the configuration that signs requests for tokens.
func (a serviceAccount) config() *jwt.Config {
	return &jwt.Config{
		Email: a.ClientEmail, PrivateKey: []byte(a.PrivateKey), PrivateKeyID: a.PrivateKeyID,
		Scopes: []string{scope}, TokenURL: a.TokenURI,
	}
}

// Account names the vendor account behind a channel by project and location. Every service account
// that has access to them can find their operations.
func Account(ch mediagate.Channel) string {
	return ch.Credentials[credProject].Reveal() + "\x00" + ch.Credentials[credLocation].Reveal()
}
