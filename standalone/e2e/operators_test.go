package e2e_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestOperatorsFollowTheFile checks that a running process uses the operators of its settings
// file. It reads the file when the file changes, and on SIGHUP. An invalid file changes no
// operator, and shows in the log and in /readyz.
func TestOperatorsFollowTheFile(t *testing.T) {
	t.Parallel()
	ada, rosa := randomText(40), randomText(40)
	named := func(name, key string) any {
		hash := sha256.Sum256([]byte(key))
		return map[string]any{"name": name, "key_hash": hex.EncodeToString(hash[:]), "role": "read"}
	}
	w := newWorld(t, options{shape: production, workersOff: true, settings: map[string]any{"operators": []any{named("ada", ada)}}})
	api := w.apis[0]
	write := func(operators ...any) {
		w.settings["operators"] = operators
		w.writeSettings(w.settings)
	}
	want := func(key string, status int) {
		t.Helper()
		a, err := request{method: http.MethodGet, url: w.apiURLs[0] + "/admin/v1/audit", key: key}.do(t.Context())
		if err != nil || a.status != status {
			t.Errorf("%d %s, %v, want %d", a.status, a.body, err, status)
		}
	}
	// logged waits until the log has n lines with this message.
	logged := func(message string, n int) {
		t.Helper()
		eventually(t, 30*time.Second, message, func() error {
			log, err := os.ReadFile(api.logFile())
			found := 0
			for line := range strings.Lines(string(log)) {
				if strings.Contains(line, message) && strings.Contains(line, `"setting":"operators"`) {
					found++
				}
			}
			if err == nil && found < n {
				err = fmt.Errorf("%d lines, want %d", found, n)
			}
			return err
		})
	}
	const taken, refused = `"level":"INFO","msg":"files were read anew"`, `"level":"ERROR","msg":"files cannot be used`
	want(ada, http.StatusOK)

	write(named("rosa", rosa))
	logged(taken, 1)
	want(ada, http.StatusUnauthorized)
	want(rosa, http.StatusOK)

	api.signal(syscall.SIGHUP) // reads even a file that has not changed
	logged(taken, 2)

	write(named("ada", ada), map[string]any{"name": "bob", "key_hash": "abcd", "role": "read"})
	api.signal(syscall.SIGHUP)
	logged(refused, 1)
	want(ada, http.StatusUnauthorized)
	want(rosa, http.StatusOK)
	a, err := request{method: http.MethodGet, url: w.apiURLs[0] + "/readyz"}.do(t.Context())
	if err != nil || a.status != http.StatusOK || !strings.Contains(string(a.body), `"operators"`) {
		t.Errorf("/readyz: %d %s, %v", a.status, a.body, err)
	}

	write(named("ada", ada))
	api.signal(syscall.SIGHUP)
	logged(taken, 3)
	want(ada, http.StatusOK)
	want(rosa, http.StatusUnauthorized)
}
