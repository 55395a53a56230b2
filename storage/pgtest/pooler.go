package pgtest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mediagate/mediagate/internal/freeport"
)

// PoolSize is how many server connections a Pooler has for a database.
const PoolSize = 5

// Pooler is a PgBouncer in transaction mode.
type Pooler struct{ addr string }

// NewPooler starts a PgBouncer in transaction mode before the server of a URL that New returned. Its
// pools have PoolSize connections. It stops when the test ends.
func NewPooler(tb testing.TB, server string) *Pooler {
	tb.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		if program, err = exec.LookPath("/usr/sbin/pgbouncer"); err != nil {
			tb.Fatal("pgtest: PgBouncer is missing: install the package pgbouncer")
		}
	}
	port, err := freeport.Take("127.0.0.1:0")
	if err != nil {
		tb.Fatalf("pgtest: start PgBouncer: %v", err)
	}
	p := &Pooler{addr: port.Addr()}
	dir, err := os.MkdirTemp("", "mediagate-pooler-") //nolint:usetesting // PgBouncer's user needs access
	if err != nil {
		tb.Fatalf("pgtest: start PgBouncer: %v", err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	account, err := runAs(dir)
	if err != nil {
		tb.Fatalf("pgtest: start PgBouncer: %v", err)
	}
	u, err := url.Parse(server)
	if err != nil {
		tb.Fatalf("pgtest: start PgBouncer: %v", err)
	}
	password, _ := u.User.Password()
	quoted := func(text string) string { return `"` + strings.ReplaceAll(text, `"`, `""`) + `"` }
	for name, text := range map[string]string{
		"users": quoted(u.User.Username()) + " " + quoted(password) + "\n",
		"pgbouncer.ini": fmt.Sprintf("[databases]\n* = host=%s port=%s\n"+
			"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = %d\nunix_socket_dir =\n"+
			"auth_type = trust\nauth_file = %s\n"+
			"pool_mode = transaction\ndefault_pool_size = %d\nmax_client_conn = 1000\n",
			u.Hostname(), u.Port(), port.Number, filepath.Join(dir, "users"), PoolSize),
	} {
		path := filepath.Join(dir, name)
		err := os.WriteFile(path, []byte(text), 0o600)
		if err == nil && account != nil {
			err = os.Chown(path, int(account.Uid), int(account.Gid))
		}
		if err != nil {
			tb.Fatalf("pgtest: start PgBouncer: %v", err)
		}
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		tb.Fatalf("pgtest: start PgBouncer: %v", err)
	}
	tb.Cleanup(func() { _ = log.Close() })
	cmd := command(account, program, filepath.Join(dir, "pgbouncer.ini"))
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	if err := cmd.Start(); err != nil {
		tb.Fatalf("pgtest: start PgBouncer: %v", err)
	}
	guard, err := hire(cmd.Process.Pid, dir)
	tb.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if guard != nil {
			guard.dismiss()
		}
	})
	if err != nil {
		tb.Fatalf("pgtest: start PgBouncer: %v", err)
	}
	if err := p.await(tb.Context(), server); err != nil {
		text, _ := os.ReadFile(log.Name())
		tb.Fatalf("pgtest: PgBouncer does not answer: %v\n%s", err, text)
	}
	return p
}

// URL returns the URL of a server's database through the pooler.
func (p *Pooler) URL(server string) string {
	u, err := url.Parse(server)
	if err != nil {
		return server
	}
	u.Host = p.addr
	return u.String()
}

// await waits until the pooler connects to the database.
func (p *Pooler) await(ctx context.Context, server string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := pgx.Connect(ctx, p.URL(server))
		if err == nil {
			err = conn.Ping(ctx)
			_ = conn.Close(ctx)
		}
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}
