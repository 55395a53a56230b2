package app

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api"
	"github.com/mediagate/mediagate/internal/outbound"
	"github.com/mediagate/mediagate/internal/signin"
)

// operatorName matches valid names of operators. They can be mistaken neither for the id of a key
// nor for a person whom an identity provider names.
var operatorName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.@-]{0,63}$`)

// operators returns the operators in the settings, that of the admin key first, or all problems.
// It reads their key files.
func (c Config) operators() ([]api.Operator, []problem) {
	v := &validator{}
	var list []api.Operator
	if c.AdminKey != "" {
		list = append(
			list, api.Operator{Name: mediagate.AdminOperator, KeyHash: api.HashKey(c.AdminKey), Role: mediagate.RoleAdmin},
		)
	}
	for i, o := range c.Operators {
		path := fmt.Sprintf("operators[%d]", i)
		hash, ok := v.operatorKey(path, o)
		for _, other := range list {
			v.check(!ok || hash != other.KeyHash, path, "has the key of the operator %s", other.Name)
		}
		if ok {
			list = append(list, api.Operator{Name: o.Name, KeyHash: hash, Role: mediagate.OperatorRole(o.Role)})
		}
	}
	return list, v.problems
}

// operatorKey returns the hash of an operator's key.
func (v *validator) operatorKey(path string, o Operator) (hash [32]byte, ok bool) {
	before := len(v.problems)
	switch {
	case (o.KeyHash == "") == (o.KeyFile == ""):
		v.add(path, "must have either key_hash or key_file")
	case o.KeyHash != "":
		raw, err := hex.DecodeString(o.KeyHash)
		v.check(err == nil && copy(hash[:], raw) == len(hash) && len(raw) == len(hash), path+".key_hash",
			"must be the SHA-256 of the key, 64 hexadecimal digits, as of: printf %%s KEY | sha256sum")
	default:
		text, err := readKeyFile(o.KeyFile)
		if err != nil {
			v.add(path+".key_file", err.Error())
			break
		}
		key := strings.TrimSpace(text)
		v.adminKey(path+".key_file", key)
		hash = api.HashKey(key)
	}
	return hash, len(v.problems) == before
}

// adminKey checks an operator's key.
func (v *validator) adminKey(path, key string) {
	v.check(len(key) >= minAdminKey, path, "must have at least %d characters", minAdminKey)
	v.check(len(key) < minAdminKey || !regular([]byte(key)), path, "%s", tooRegular)
}

// operators checks the settings of operators. Their keys matter only in a process that operators
// call.
func (v *validator) operators(c Config, role Role) {
	seen := map[string]bool{mediagate.AdminOperator: true}
	for i, o := range c.Operators {
		path := fmt.Sprintf("operators[%d]", i)
		v.check(
			operatorName.MatchString(o.Name), path+".name",
			"must have 1 to 64 letters, digits and .@-, and begin with a letter or digit",
		)
		switch {
		case o.Name == mediagate.AdminOperator:
			v.add(path+".name", "is the operator of admin_key: take another name")
		case seen[o.Name]:
			v.add(path+".name", fmt.Sprintf("%q is taken", o.Name))
		}
		seen[o.Name] = true
		v.operatorRole(path+".role", o.Role)
	}
	if role.needsOperators() {
		_, problems := c.operators()
		v.problems = append(v.problems, problems...)
	}
}

func (v *validator) operatorRole(path, role string) {
	v.check(
		slices.Contains(mediagate.OperatorRoles(), mediagate.OperatorRole(role)), path, "must be read, operate or admin",
	)
}

// oidc checks the settings of OpenID Connect.
func (v *validator) oidc(c Config, role Role) {
	o := c.OIDC
	if !o.isSet() {
		return
	}
	v.issuer("oidc.issuer", c)
	v.check(o.ClientID != "", "oidc.client_id", "must not be empty")
	v.check(c.PublicURL != "", "public_url", "must be set: a sign-in by OpenID Connect comes back to it")
	v.check(len(o.Roles) > 0, "oidc.roles", "must give at least one claim=value a role")
	for _, rule := range slices.Sorted(maps.Keys(o.Roles)) {
		claim, value, _ := strings.Cut(rule, "=")
		v.check(claim != "" && value != "", below("oidc.roles", rule), "must be named claim=value")
		v.operatorRole(below("oidc.roles", rule), o.Roles[rule])
	}
	switch {
	case o.ClientSecretFile == "":
		v.add("oidc.client_secret_file", "must not be empty")
	case role.needsOperators():
		if _, err := o.secret(); err != nil {
			v.add("oidc.client_secret_file", err.Error())
		}
	}
}

// issuer checks the provider's address. Without TLS it must be a loopback address that
// outbound.allow contains.
func (v *validator) issuer(path string, c Config) {
	issuer := c.OIDC.Issuer
	if issuer == "" {
		v.add(path, "must not be empty")
		return
	}
	if problem := baseAddress.problem(issuer); problem != "" {
		v.add(path, problem)
		return
	}
	u, err := url.Parse(issuer)
	if err != nil || u.Scheme == "https" {
		return
	}
	host := u.Hostname()
	v.check(
		loopback(host) && c.allowsHost(host), path,
		"must be an https URL; plain http only at a loopback address that outbound.allow has",
	)
}

// isSet reports whether OpenID Connect is configured.
func (o OIDC) isSet() bool {
	return cmp.Or(o.Issuer, o.ClientID, o.ClientSecretFile) != "" || len(o.Roles) > 0
}

// secret reads the client's secret.
func (o OIDC) secret() (string, error) {
	text, err := readKeyFile(o.ClientSecretFile)
	if err != nil {
		return "", err
	}
	if text = strings.TrimSpace(text); text == "" {
		return "", errors.New(o.ClientSecretFile + " is empty")
	}
	return text, nil
}

// identityProvider makes the configured provider, or nil if there is none.
func (g *Gateway) identityProvider() (*signin.Provider, error) {
	o := g.Config.OIDC
	if !o.isSet() {
		return nil, nil //nolint:nilnil // there is none
	}
	roles := make(map[string]mediagate.OperatorRole, len(o.Roles))
	for rule, role := range o.Roles {
		roles[rule] = mediagate.OperatorRole(role)
	}
	provider, err := signin.New(signin.Config{
		Issuer:      o.Issuer,
		ClientID:    o.ClientID,
		Secret:      o.secret,
		Roles:       roles,
		RedirectURL: api.CallbackURL(g.publicURL()),
		Rules:       g.rules,
		Now:         g.Store.Now,
	})
	if err != nil {
		return nil, fmt.Errorf("oidc.issuer: %s", outbound.Describe(err))
	}
	return provider, nil
}

// openOperators reads the operators at the start, and prepares their reloading if a file names
// them.
func (g *Gateway) openOperators() ([]api.Operator, error) {
	list, problems := g.Config.operators()
	if len(problems) > 0 {
		return nil, problems[0]
	}
	src := g.opts.Sources
	if src == nil {
		return list, nil
	}
	keyFiles := g.Config.operatorFiles()
	settings, _, err := parseFlags(*src)
	if err != nil || settings == "" && len(keyFiles) == 0 {
		return list, err
	}
	g.operators = &reloader[[]api.Operator]{
		setting: "operators", log: g.log, size: func(list []api.Operator) int { return len(list) },
		state: func() string { // a faulty setting may name any file, of any size
			return filesState(append([]string{settings}, keyFiles...), readSettingsFile)
		},
		load: func() ([]api.Operator, []string) {
			c, err := Load(*src)
			keyFiles = c.operatorFiles()
			if err != nil {
				return nil, strings.Split(err.Error(), "\n")
			}
			list, problems := c.operators()
			var texts []string
			for _, p := range problems {
				texts = append(texts, p.Error())
			}
			return list, texts
		},
	}
	g.operators.seen = g.operators.state()
	g.operators.last = g.operators.seen
	return list, nil
}

// operatorFiles lists the files with keys of operators.
func (c Config) operatorFiles() []string {
	files := []string{c.AdminKeyFile}
	for _, o := range c.Operators {
		files = append(files, o.KeyFile)
	}
	return slices.DeleteFunc(files, func(name string) bool { return name == "" })
}
