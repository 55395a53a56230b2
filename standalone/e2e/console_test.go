package e2e_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mediagate/mediagate/internal/npmtest"
	"github.com/mediagate/mediagate/internal/signin/issuertest"
)

// browsing is a Node program that drives a browser; see testdata/console.
type browsing struct {
	w       *world
	folder  string
	browser string
	does    map[string]func(with json.RawMessage) (any, error) // functions that the program may call in the test
}

// run runs one scenario to its end. The program calls functions of the test by lines of JSON.
func (b browsing) run(t *testing.T, scenario string, with map[string]any) {
	t.Helper()
	args, err := json.Marshal(with)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", "scenarios.mjs", b.browser, b.w.apiURLs[0], scenario, string(args))
	cmd.Dir = b.folder
	cmd.Env = append(os.Environ(), "MEDIAGATE_PICTURES="+pictureFolder(t))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	answered := b.answer(stdout, stdin)
	if err := cmd.Wait(); err != nil {
		t.Errorf("%s: %v", scenario, err)
	}
	if answered != nil {
		t.Errorf("%s: %v", scenario, answered)
	}
}

// answer executes the program's calls until there are no more.
func (b browsing) answer(asked io.Reader, answers io.WriteCloser) error {
	defer answers.Close()
	lines := bufio.NewScanner(asked)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var order struct {
			Ask  string          `json:"ask"`
			With json.RawMessage `json:"with"`
		}
		if err := json.Unmarshal(lines.Bytes(), &order); err != nil {
			return fmt.Errorf("%q: %w", lines.Text(), err)
		}
		do := b.does[order.Ask]
		if do == nil {
			return fmt.Errorf("the test has no function %q", order.Ask)
		}
		answer, err := do(order.With)
		if err != nil {
			return fmt.Errorf("%s: %w", order.Ask, err)
		}
		if err := json.NewEncoder(answers).Encode(answer); err != nil {
			return err
		}
	}
	return lines.Err()
}

// pictureFolder returns the folder for screenshots of each page, or "" if none are wanted.
func pictureFolder(t *testing.T) string {
	t.Helper()
	folder := os.Getenv("MEDIAGATE_PICTURES")
	if folder == "" {
		return ""
	}
	if !filepath.IsAbs(folder) {
		t.Fatalf("MEDIAGATE_PICTURES is %q, which is not an absolute path", folder)
	}
	return folder
}

// newKey creates a key of an account, as the operator.
func (w *world) newKey(account string, settings map[string]any) (id, key string) {
	w.t.Helper()
	var made struct {
		ID  string `json:"id"`
		Key string `json:"key"`
	}
	w.admin(http.MethodPost, "/accounts/"+account+"/keys", settings, &made)
	return made.ID, made.Key
}

// oidcSettings returns the settings of a sign-in with OpenID Connect, with a group for each
// role.
func oidcSettings(t *testing.T, issuer *issuertest.Issuer) map[string]any {
	t.Helper()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(issuertest.Secret), 0o600); err != nil {
		t.Fatal(err)
	}
	return map[string]any{
		"issuer": issuer.URL, "client_id": issuertest.ClientID, "client_secret_file": secret,
		"roles": map[string]string{"groups=media-read": "read", "groups=media-operate": "operate", "groups=media-admin": "admin"},
	}
}

// TestConsole runs the scenarios of testdata/console: the tasks of users in the console, each
// from the beginning in a browser, on the running product.
//
// A browser with axe-core's checks needs a processor for minutes. So two browsers have the
// machine to themselves, before the parallel tests.
func TestConsole(t *testing.T) {
	browser, err := exec.LookPath("chromium")
	if err != nil && os.Getenv("CI") == "" {
		t.Skip("chromium is missing: the console is not tested")
	}
	folder := npmtest.Install(t, "console", filepath.Join("testdata", "console"))
	issuer := issuertest.New(t)
	w := newWorld(t, options{shape: standalone, settings: map[string]any{"oidc": oidcSettings(t, issuer)}})
	var other struct {
		ID string `json:"id"`
	}
	w.admin(http.MethodPost, "/accounts", map[string]any{"name": "<b>other</b>"}, &other)
	w.admin(http.MethodPost, "/accounts/"+other.ID+"/grants", map[string]any{"amount": "10", "reference": "start"}, &struct{}{})
	_, otherKey := w.newKey(other.ID, map[string]any{"name": "other", "unlimited": true})
	_, reader := w.newKey(w.account, map[string]any{"name": "reader", "unlimited": true, "scopes": []string{"read"}})

	// A task that waits for an operator. It takes a minute to park, during other scenarios.
	parked := w.user(t).submitUnanswered()

	b := browsing{w: w, folder: folder, browser: browser, does: map[string]func(json.RawMessage) (any, error){
		// A key of the account, for the scenario that revokes it.
		"key": func(with json.RawMessage) (any, error) {
			var settings map[string]any
			if err := json.Unmarshal(with, &settings); err != nil {
				return nil, err
			}
			id, key := w.newKey(w.account, settings)
			return map[string]string{"id": id, "key": key}, nil
		},
		"revoke": func(with json.RawMessage) (any, error) {
			var id string
			if err := json.Unmarshal(with, &id); err != nil {
				return nil, err
			}
			a, err := request{method: http.MethodDelete, url: w.apiURLs[0] + "/admin/v1/keys/" + id, key: w.adminKey}.do(t.Context())
			if err == nil && a.status != http.StatusNoContent {
				err = fmt.Errorf("status %d: %s", a.status, a.body)
			}
			return true, err
		},
		"narrow": func(with json.RawMessage) (any, error) {
			var id string
			if err := json.Unmarshal(with, &id); err != nil {
				return nil, err
			}
			w.admin(http.MethodPatch, "/keys/"+id, map[string]any{"scopes": []string{"generate"}}, &struct{}{})
			return true, nil
		},
		// Sets the person whom the identity provider signs in from now on.
		"person": func(with json.RawMessage) (any, error) {
			var claims map[string]any
			if err := json.Unmarshal(with, &claims); err != nil {
				return nil, err
			}
			issuer.SignIn(claims)
			return true, nil
		},
		"parked": func(json.RawMessage) (any, error) {
			c := w.dial()
			defer c.Close()
			w.awaitUndecided(c, parked)
			return parked.id, nil
		},
		"kill": func(json.RawMessage) (any, error) {
			w.apis[0].kill()
			return true, nil
		},
		"start": func(json.RawMessage) (any, error) {
			w.apis[0].start(t)
			return true, nil
		},
		// The sign-in links of the standalone program's banner.
		"links": func(json.RawMessage) (any, error) {
			log, err := os.ReadFile(w.apis[0].logFile())
			if err != nil {
				return nil, err
			}
			var links []string
			for word := range strings.FieldsSeq(string(log)) {
				if strings.Contains(word, "/console#link=") {
					links = append(links, word)
				}
			}
			return links, nil
		},
	}}
	with := map[string]any{"key": w.key, "other": otherKey, "reader": reader, "admin": w.adminKey, "account": w.account}
	t.Run("visits", func(t *testing.T) {
		for name, scenarios := range map[string][]string{
			"one": {"first", "links", "customer", "again", "art", "revoked", "operator", "operating", "oidc", "phone", "attacks"},
			"two": {"plain", "webhook", "endpoints", "speech", "song", "chain", "tenants", "landing", "spending", "update", "keyboard", "pages", "idle"},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				for _, scenario := range scenarios {
					t.Run(scenario, func(t *testing.T) { b.run(t, scenario, with) })
				}
			})
		}
	})
	t.Run("restart", func(t *testing.T) { b.run(t, "restart", with) })
}
