package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api"
	"github.com/mediagate/mediagate/cmd/mediagate/app"
	"github.com/mediagate/mediagate/standalone/datadir"
	"github.com/mediagate/mediagate/storage"
	"github.com/mediagate/mediagate/storage/sqlite"
)

func dataDir(t *testing.T) (*datadir.Dir, datadir.Secrets) {
	t.Helper()
	dir, err := datadir.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dir.Close() })
	secrets, err := dir.Secrets()
	if err != nil {
		t.Fatal(err)
	}
	return dir, secrets
}

// openStore opens the database of the folder and creates its tables.
func openStore(t *testing.T, dir *datadir.Dir) *storage.Store {
	t.Helper()
	store, err := sqlite.OpenStore(t.Context(), dir.Path("mediagate.db"), storage.Config{
		EncryptionKeys: [][]byte{make([]byte, 32)}, Logger: slog.New(slog.DiscardHandler), MaxOpenConns: 2,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	if err := store.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return store
}

// embedded returns the addresses of embedded servers.
func embedded() *announcement {
	return &announcement{
		Temporal: "127.0.0.1:7233", Sandbox: "http://127.0.0.1:9900",
		S3: &s3Access{
			Endpoint: "http://127.0.0.1:9000", Region: "us-east-1", Bucket: "b", AccessKeyID: "a", SecretAccessKey: "s",
		},
	}
}

// TestProductConfig checks that the user's settings override those that the program makes up.
func TestProductConfig(t *testing.T) {
	const admin = "0123456789abcdef0123456789abcdef"
	write := func(text string) string {
		name := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	_, secrets := dataDir(t)
	for name, test := range map[string]struct {
		settings string
		env      map[string]string
		admin    string
		problems []string
	}{
		"nothing said":      {admin: secrets.AdminKey},
		"admin key":         {settings: "admin_key: " + admin, admin: admin},
		"file of admin key": {settings: "admin_key_file: " + write(admin), admin: admin},
		"variable":          {env: map[string]string{"MEDIAGATE_ADMIN_KEY_FILE": write(admin)}, admin: admin},
		"all problems at once": {
			settings: "foo: 1\ncredits_per_unit: 1.5\nown_domains: ['!!']\ncurrency: ''", env: map[string]string{"MEDIAGATE_FOO": "1"},
			admin: secrets.AdminKey,
			problems: []string{
				"MEDIAGATE_FOO: no such setting", "foo: no such setting", `credits_per_unit: must be a whole number, not "1.5"`,
				`own_domains[0]: "!!" is neither a domain nor an address range`, "currency: must not be empty",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for name, value := range test.env {
				t.Setenv(name, value)
			}
			opts := options{api: "127.0.0.1:0", ops: "127.0.0.1:0", config: write(test.settings)}
			c, err := app.Load(productSources(secrets, opts, embedded()))
			var problems []string
			if err != nil {
				problems = strings.Split(err.Error(), "\n")
			}
			if diff := cmp.Diff(test.problems, problems); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			if c.AdminKey != test.admin {
				t.Errorf("admin key %q, want %q", c.AdminKey, test.admin)
			}
		})
	}
}

// TestFlagsGoOverVariables checks that a flag overrides variable and file, as in the production
// program, and that a flag's default does not.
func TestFlagsGoOverVariables(t *testing.T) {
	_, secrets := dataDir(t)
	t.Setenv("MEDIAGATE_API_LISTEN", "127.0.0.1:1111")
	t.Setenv("MEDIAGATE_OPS_LISTEN", "127.0.0.1:2222")
	t.Setenv("MEDIAGATE_DATABASE_URL", "postgres://variable.example.com/db")
	opts, err := parseOptions([]string{"-api", "127.0.0.1:3333", "-database-url", "postgres://flag.example.com/db"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	c, err := app.Load(productSources(secrets, opts, embedded()))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"127.0.0.1:3333", "127.0.0.1:2222", "postgres://flag.example.com/db"}
	if diff := cmp.Diff(want, []string{c.APIListen, c.OpsListen, c.DatabaseURL}); diff != "" {
		t.Error(diff)
	}
}

func TestSeededAccount(t *testing.T) {
	t.Parallel()
	dir, secrets := dataDir(t)
	store := openStore(t, dir)
	for range 2 { // the second call completes a start that died before it stored the key
		if _, err := createDemoAccount(t.Context(), &app.Gateway{Store: store}, dir, secrets); err != nil {
			t.Fatal(err)
		}
	}
	accounts, _, err := store.Accounts(t.Context(), "", "", 10)
	if err != nil {
		t.Fatal(err)
	}
	if len(accounts) != 1 || accounts[0].Name != "demo" || accounts[0].Group != "default" ||
		accounts[0].Available != 1000*mediagate.MicrosPerUnit {
		t.Errorf("accounts %+v, want demo of the group default with its grant", accounts)
	}
}

// TestLinks checks that each link signs in the account or the operator that it is for.
func TestLinks(t *testing.T) {
	t.Parallel()
	dir, secrets := dataDir(t)
	store := openStore(t, dir)
	key, err := createDemoAccount(t.Context(), &app.Gateway{Store: store}, dir, secrets)
	if err != nil {
		t.Fatal(err)
	}
	row, _, err := store.KeyByHash(t.Context(), api.HashKey(key))
	if err != nil {
		t.Fatal(err)
	}
	const public, admin = "http://127.0.0.1:8080", "http://127.0.0.1:8081"
	links := func(admin string) announcement {
		t.Helper()
		where := announcement{API: public, Admin: admin, Key: key, AdminKey: "the admin key"}
		if err := makeLinks(t.Context(), store, &where); err != nil {
			t.Fatal(err)
		}
		return where
	}
	taken := func(link, at string) mediagate.Session {
		t.Helper()
		token, ok := strings.CutPrefix(link, at+"/console#link=")
		if !ok {
			t.Fatalf("the link is %s", link)
		}
		_, hash := api.NewSessionToken()
		if err := store.TakeLink(t.Context(), sha256.Sum256([]byte(token)), hash, time.Hour); err != nil {
			t.Fatal(err)
		}
		session, err := store.Session(t.Context(), hash)
		if err != nil {
			t.Fatal(err)
		}
		return session
	}
	where := links(admin)
	if got := taken(where.Console, public); got.KeyID != row.ID {
		t.Errorf("the account's: %+v", got)
	}
	if got := taken(where.Operators, admin); got.KeyID != "" || got.OperatorHash != api.HashKey("the admin key") {
		t.Errorf("the operator's: %+v", got)
	}
	taken(links("").Operators, public)
	if err := store.DeleteKey(t.Context(), row.ID); err != nil {
		t.Fatal(err)
	}
	if got := links("").Console; got != public+"/console" {
		t.Errorf("without a key: %s", got)
	}
	var banner bytes.Buffer
	if err := printBanner(&banner, where, ""); err != nil {
		t.Fatal(err)
	}
	if text := banner.String(); !strings.Contains(text, "Console      "+where.Console) || !strings.Contains(text, "Operators    "+where.Operators) {
		t.Errorf("the banner:\n%s", text)
	}
	if text, err := json.Marshal(where); err != nil || strings.Contains(string(text), "link") {
		t.Errorf("standalone.json has a link: %s, %v", text, err)
	}
}
