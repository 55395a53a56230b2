package app

import (
	"encoding/hex"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api"
)

const (
	rootKey = "0123456789abcdef0123456789abcdef"
	adaKey  = "the-key-of-ada-who-operates-012345678"
	rosaKey = "the-key-of-rosa-who-reads-01234567890"
)

func hashOf(key string) string {
	hash := api.HashKey(key)
	return hex.EncodeToString(hash[:])
}

// must ends the test with an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// keyFile makes a file that holds a text.
func keyFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "key")
	must(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

// sourcesOf are those of a settings file with the text, beside an admin key.
func sourcesOf(t *testing.T, text string) Sources {
	t.Helper()
	base := Defaults()
	base.AdminKey, base.EncryptionKeys = rootKey, []string{"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="}
	return Sources{Base: base, File: keyFile(t, text), Embedded: true}
}

func TestOperatorsOfSettings(t *testing.T) {
	t.Parallel()
	c, err := Load(sourcesOf(t, "operators:\n- {name: ada, key_file: "+keyFile(t, adaKey+"\n")+", role: operate}\n- {name: rosa@example.com, key_hash: "+strings.ToUpper(hashOf(rosaKey))+", role: read}\n"))
	must(t, err)
	want := []api.Operator{
		{Name: "admin", KeyHash: api.HashKey(rootKey), Role: mediagate.RoleAdmin},
		{Name: "ada", KeyHash: api.HashKey(adaKey), Role: mediagate.RoleOperate},
		{Name: "rosa@example.com", KeyHash: api.HashKey(rosaKey), Role: mediagate.RoleRead},
	}
	got, problems := c.operators()
	if diff := cmp.Diff(want, got); diff != "" || len(problems) > 0 {
		t.Errorf("%v (-want +got):\n%s", problems, diff)
	}
	text, err := c.Print()
	if err != nil || strings.Contains(strings.ToLower(text), hashOf(rosaKey)) || strings.Contains(text, adaKey) || !strings.Contains(text, "name: rosa@example.com") {
		t.Errorf("%v:\n%s", err, text)
	}
}

func wantProblems(t *testing.T, err error, want []string) {
	t.Helper()
	var got []string
	for _, one := range leaves(err) {
		got = append(got, one.Error())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestOperatorsNameEveryProblem(t *testing.T) {
	t.Parallel()
	ada := "{name: ada, key_hash: " + hashOf(adaKey) + ", role: read}"
	for name, tt := range map[string]struct {
		operators string
		want      []string
	}{
		"two of one name":   {ada + ", {name: ada, key_hash: " + hashOf(rosaKey) + ", role: read}", []string{`operators[1].name: "ada" is taken`}},
		"two of one key":    {ada + ", {name: rosa, key_hash: " + hashOf(adaKey) + ", role: read}", []string{"operators[1]: has the key of the operator ada"}},
		"the admin key":     {"{name: ada, key_hash: " + hashOf(rootKey) + ", role: read}", []string{"operators[0]: has the key of the operator admin"}},
		"the name admin":    {"{name: admin, key_hash: " + hashOf(adaKey) + ", role: read}", []string{"operators[0].name: is the operator of admin_key: take another name"}},
		"a key's name":      {"{name: key_1, key_hash: " + hashOf(adaKey) + ", role: read}", []string{"operators[0].name: must have 1 to 64 letters, digits and .@-, and begin with a letter or digit"}},
		"no name, no role":  {"{key_hash: " + hashOf(adaKey) + "}", []string{"operators[0].name: must have 1 to 64 letters, digits and .@-, and begin with a letter or digit", "operators[0].role: must be read, operate or admin"}},
		"an unknown role":   {"{name: ada, key_hash: " + hashOf(adaKey) + ", role: root}", []string{"operators[0].role: must be read, operate or admin"}},
		"a short hash":      {"{name: ada, key_hash: abcd, role: read}", []string{"operators[0].key_hash: must be the SHA-256 of the key, 64 hexadecimal digits, as of: printf %s KEY | sha256sum"}},
		"a long hash":       {"{name: ada, key_hash: " + hashOf(adaKey) + "00, role: read}", []string{"operators[0].key_hash: must be the SHA-256 of the key, 64 hexadecimal digits, as of: printf %s KEY | sha256sum"}},
		"neither":           {"{name: ada, role: read}", []string{"operators[0]: must have either key_hash or key_file"}},
		"both":              {"{name: ada, key_hash: " + hashOf(adaKey) + ", key_file: /a, role: read}", []string{"operators[0]: must have either key_hash or key_file"}},
		"no such file":      {"{name: ada, key_file: /nowhere/key, role: read}", []string{"operators[0].key_file: open /nowhere/key: no such file or directory"}},
		"a short key":       {"{name: ada, key_file: " + keyFile(t, "short") + ", role: read}", []string{"operators[0].key_file: must have at least 32 characters"}},
		"an unknown key":    {"{name: ada, key_hash: " + hashOf(adaKey) + ", role: read, key: x}", []string{"operators[0].key: no such setting"}},
		"several at a time": {"{name: admin, role: x}", []string{"operators[0].name: is the operator of admin_key: take another name", "operators[0].role: must be read, operate or admin", "operators[0]: must have either key_hash or key_file"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Load(sourcesOf(t, "operators: ["+tt.operators+"]\n"))
			wantProblems(t, err, tt.want)
		})
	}
}

// TestWorkersNeedNoOperator checks that a worker starts without the operators' keys.
func TestWorkersNeedNoOperator(t *testing.T) {
	t.Parallel()
	src := sourcesOf(t, "operators: [{name: ada, key_file: /nowhere/key, role: read}]\npublic_url: https://api.example.com\noidc: {issuer: https://login.example.com, client_id: x, client_secret_file: /nowhere/secret, roles: {groups=ops: read}}\n")
	src.Role, src.Base.AdminKey = RoleMigrate, ""
	if _, err := Load(src); err != nil {
		t.Error(err)
	}
}

func TestOIDCNamesEveryProblem(t *testing.T) {
	t.Parallel()
	secret := keyFile(t, "the secret of the client\n")
	rest := ", client_id: mediagate, client_secret_file: " + secret + ", roles: {groups=ops: operate}}\n"
	https := "oidc: {issuer: https://login.example.com"
	at := "public_url: https://api.example.com\n"
	const tls = "oidc.issuer: must be an https URL; plain http only at a loopback address that outbound.allow has"
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"fine":                      {at + https + rest, nil},
		"with a path":               {at + "oidc: {issuer: https://login.example.com/realms/a" + rest, nil},
		"loopback that is allowed":  {at + "outbound: {allow: [127.0.0.0/8]}\noidc: {issuer: http://127.0.0.1:8090" + rest, nil},
		"localhost that is allowed": {at + "outbound: {allow: [127.0.0.0/8]}\noidc: {issuer: http://localhost:8090" + rest, nil},
		"loopback that is not":      {at + "oidc: {issuer: http://127.0.0.1:8090" + rest, []string{tls}},
		"without TLS":               {at + "outbound: {allow: [10.0.0.0/8]}\noidc: {issuer: http://10.0.0.1" + rest, []string{tls}},
		"a name without TLS":        {at + "outbound: {allow: [127.0.0.0/8]}\noidc: {issuer: http://login.example.com" + rest, []string{tls}},
		"no address":                {at + "oidc: {issuer: login.example.com" + rest, []string{"oidc.issuer: must be an http or https URL"}},
		"a query":                   {at + "oidc: {issuer: 'https://login.example.com/?a=b'" + rest, []string{"oidc.issuer: must have no query"}},
		"nowhere to come back to":   {https + rest, []string{"public_url: must be set: a sign-in by OpenID Connect comes back to it"}},
		"only an issuer":            {at + https + "}\n", []string{"oidc.client_id: must not be empty", "oidc.roles: must give at least one claim=value a role", "oidc.client_secret_file: must not be empty"}},
		"only roles":                {at + "oidc: {roles: {groups=ops: root, ops: read, =x: read}}\n", []string{"oidc.issuer: must not be empty", "oidc.client_id: must not be empty", `oidc.roles."=x": must be named claim=value`, `oidc.roles."groups=ops": must be read, operate or admin`, "oidc.roles.ops: must be named claim=value", "oidc.client_secret_file: must not be empty"}},
		"no such file":              {at + https + ", client_id: x, client_secret_file: /nowhere/secret, roles: {groups=ops: read}}\n", []string{"oidc.client_secret_file: open /nowhere/secret: no such file or directory"}},
		"an empty file":             {at + https + ", client_id: x, client_secret_file: " + os.DevNull + ", roles: {groups=ops: read}}\n", []string{"oidc.client_secret_file: /dev/null is empty"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := Load(sourcesOf(t, tt.text))
			wantProblems(t, err, tt.want)
			if text, err := c.Print(); err != nil || strings.Contains(text, "the secret of the client") {
				t.Errorf("%v:\n%s", err, text)
			}
		})
	}
}

// TestOperatorsAreReadAnew checks that operators are read again when the settings file or a key
// file changes. An error changes nothing.
func TestOperatorsAreReadAnew(t *testing.T) {
	t.Parallel()
	ada := keyFile(t, adaKey)
	line := "- {name: ada, key_file: " + ada + ", role: operate}\n"
	src := sourcesOf(t, "operators:\n"+line)
	c, err := Load(src)
	must(t, err)
	g := &Gateway{Config: c, log: slog.New(slog.DiscardHandler), opts: Options{Sources: &src}}
	inForce, err := g.openOperators()
	must(t, err)
	g.operators.use = func(list []api.Operator) error {
		inForce = list
		return nil
	}
	change := func(name, text string) {
		t.Helper()
		must(t, os.WriteFile(name, []byte(text), 0o600))
		for range 4 { // twice: a settings file may name other files
			g.operators.checkFiles(t.Context())
		}
	}
	want := func(operators map[string]string, broken string) {
		t.Helper()
		got := map[string]string{}
		for _, o := range inForce {
			got[o.Name] = hex.EncodeToString(o.KeyHash[:])
		}
		operators["admin"] = hashOf(rootKey)
		if diff := cmp.Diff(operators, got); diff != "" {
			t.Errorf("in force (-want +got):\n%s", diff)
		}
		err := g.operators.check(t.Context())
		if (err == nil) != (broken == "") || err != nil && !strings.Contains(err.Error(), broken) {
			t.Errorf("%v, want %q", err, broken)
		}
	}
	want(map[string]string{"ada": hashOf(adaKey)}, "")
	change(ada, rosaKey)
	want(map[string]string{"ada": hashOf(rosaKey)}, "")
	change(src.File, "operators:\n"+line+"- {name: rosa, key_hash: x, role: read}\n")
	want(map[string]string{"ada": hashOf(rosaKey)}, "operators[1].key_hash: must be the SHA-256")
	change(src.File, "operators:\n"+line+"- {name: rosa, key_hash: "+hashOf(adaKey)+", role: read}\n")
	want(map[string]string{"ada": hashOf(rosaKey), "rosa": hashOf(adaKey)}, "")
	change(src.File, "operators: [{name: ada, key_file: /dev/zero, role: operate}]\n")
	want(map[string]string{"ada": hashOf(rosaKey), "rosa": hashOf(adaKey)}, "operators[0].key_file: /dev/zero is larger than 65536 bytes")
	change(src.File, "currency: EUR\n")
	want(map[string]string{}, "")
}

// TestOperatorsWithoutAFile checks that settings outside files stay as they are, and that SIGHUP
// keeps its meaning.
func TestOperatorsWithoutAFile(t *testing.T) {
	t.Parallel()
	src := sourcesOf(t, "")
	src.File = ""
	c, err := Load(src)
	must(t, err)
	g := &Gateway{Config: c, log: slog.New(slog.DiscardHandler), opts: Options{Sources: &src}}
	if list, err := g.openOperators(); err != nil || len(list) != 1 || g.follows() || g.operators.check(t.Context()) != nil {
		t.Errorf("%v, %v", list, err)
	}
}

// TestCautionAboutOIDCAtAdminListen checks the caution about sign-ins that come back to
// public_url, which does not serve the admin API if that has its own listener.
func TestCautionAboutOIDCAtAdminListen(t *testing.T) {
	t.Parallel()
	c := Config{OIDC: OIDC{Issuer: "https://login.example.com"}}
	if text := c.Cautions(); text != "" {
		t.Errorf("doubts: %s", text)
	}
	c.AdminListen = "127.0.0.1:8081"
	if text := c.Cautions(); !strings.HasPrefix(text, "# oidc: ") {
		t.Errorf("doubts: %s", text)
	}
}
