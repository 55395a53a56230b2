package compose_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/types"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver pgx

	"github.com/mediagate/mediagate/standalone/s3server"
	"github.com/mediagate/mediagate/standalone/temporalserver"
	"github.com/mediagate/mediagate/storage/pgtest"
)

// What the file starts is started as processes: PostgreSQL, Temporal over it,
// S3, then the one-shot migrate, the API and the worker, each with the
// environment that the file gives it. Only the hosts are replaced, by where
// the servers are here.
func TestGatewayStartsFromItsEnvironment(t *testing.T) {
	project := load(t)
	binary := filepath.Join(t.TempDir(), "mediagate")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "./cmd/mediagate")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}

	database := startPostgres(t, project.Services["postgres"])
	hosts := strings.NewReplacer(
		"@postgres:5432", "@"+database.addr,
		"temporal:7233", startTemporal(t, database.url),
		"http://s3:9000", startS3(t, project.Services["s3"]),
	)

	migrate := run(t, binary, project.Services["migrate"], hosts, nil)
	if err := migrate.wait(t); err != nil {
		t.Fatalf("migrate: %v\n%s", err, migrate.output())
	}
	for name, settings := range map[string]struct{ variable, listener string }{
		"api":    {"MEDIAGATE_API_LISTEN", "api"},
		"worker": {"MEDIAGATE_OPS_LISTEN", "ops"},
	} {
		p := run(t, binary, project.Services[name], hosts, []string{settings.variable + "=127.0.0.1:0"})
		body := p.awaitReady(t, settings.listener)
		if strings.Contains(body, "degraded") {
			t.Errorf("%s is degraded: %s", name, body)
		}
		if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := p.wait(t); err != nil {
			t.Errorf("%s after SIGTERM: %v\n%s", name, err, p.output())
		}
	}
}

type postgres struct{ addr, url string }

// startPostgres starts a cluster with the role and the database of the file.
func startPostgres(t *testing.T, service types.ServiceConfig) postgres {
	t.Helper()
	// The server may run as another user, to whom the folder above t.TempDir
	// is closed.
	dir, err := os.MkdirTemp("", "mediagate-compose-") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	cluster, err := pgtest.Start(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Errorf("stop PostgreSQL: %v", err)
		}
	})
	user, password, name := variable(service, "POSTGRES_USER"), variable(service, "POSTGRES_PASSWORD"), variable(service, "POSTGRES_DB")
	db, err := sql.Open("pgx", cluster.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	var port string
	if err := db.QueryRowContext(t.Context(), "SHOW port").Scan(&port); err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		"CREATE ROLE " + user + " SUPERUSER LOGIN PASSWORD '" + password + "'",
		"CREATE DATABASE " + name + " OWNER " + user,
	} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	addr := net.JoinHostPort("127.0.0.1", port)
	return postgres{addr: addr, url: "postgres://" + user + ":" + password + "@" + addr + "/postgres?sslmode=disable"}
}

// startTemporal starts Temporal over PostgreSQL, twice: the second start finds
// its databases as they are.
func startTemporal(t *testing.T, url string) string {
	t.Helper()
	start := func() *temporalserver.Server {
		server, err := temporalserver.Start(t.Context(), temporalserver.Config{Addr: "127.0.0.1:0", PostgresURL: url})
		if err != nil {
			t.Fatal(err)
		}
		return server
	}
	stop := func(server *temporalserver.Server) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 20*time.Second)
		defer cancel()
		if err := server.Stop(ctx); err != nil {
			t.Errorf("stop Temporal: %v", err)
		}
	}
	stop(start())
	server := start()
	t.Cleanup(func() { stop(server) })
	return server.Addr()
}

func startS3(t *testing.T, service types.ServiceConfig) string {
	t.Helper()
	t.Chdir(".") // back at the end: the server changes to its own folder, which goes with the test
	server, err := s3server.Start(t.Context(), s3server.Config{
		Addr: "127.0.0.1:0", Dir: t.TempDir(), Region: variable(service, "VGW_REGION"),
		AccessKey: variable(service, "ROOT_ACCESS_KEY"), SecretKey: variable(service, "ROOT_SECRET_KEY"),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 20*time.Second)
		defer cancel()
		if err := server.Stop(ctx); err != nil {
			t.Errorf("stop S3: %v", err)
		}
	})
	return server.Endpoint
}

func variable(service types.ServiceConfig, name string) string {
	if value := service.Environment[name]; value != nil {
		return *value
	}
	return ""
}

// process is a service of the file, running without a container.
type process struct {
	cmd   *exec.Cmd
	log   string // the file that it writes to
	ended chan error
}

func run(t *testing.T, binary string, service types.ServiceConfig, hosts *strings.Replacer, more []string) *process {
	t.Helper()
	p := &process{ended: make(chan error, 1)}
	p.cmd = exec.CommandContext(t.Context(), binary, service.Command...)
	p.cmd.Dir = t.TempDir()
	p.cmd.Env = more // nothing of the shell's, as in a container
	for name, value := range service.Environment {
		if value != nil {
			p.cmd.Env = append(p.cmd.Env, name+"="+hosts.Replace(*value))
		}
	}
	log, err := os.Create(filepath.Join(p.cmd.Dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	p.log, p.cmd.Stdout, p.cmd.Stderr = log.Name(), log, log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.ended <- p.cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
	})
	return p
}

// wait returns how the process ended.
func (p *process) wait(t *testing.T) error {
	t.Helper()
	select {
	case err := <-p.ended:
		return err
	case <-time.After(60 * time.Second):
		t.Fatalf("%s is still running", p.cmd.Args)
		return nil
	}
}

// output is what the process has written.
func (p *process) output() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// awaitReady asks the listener's /readyz until the answer is 200, and returns
// its body. The log tells where it is.
func (p *process) awaitReady(t *testing.T, listener string) string {
	t.Helper()
	limit := time.After(60 * time.Second)
	for {
		body, err := "", errors.New("it does not say where it listens")
		if addr := p.address(listener); addr != "" {
			body, err = fetch(t.Context(), "http://"+addr+"/readyz")
		}
		if err == nil {
			return body
		}
		select {
		case end := <-p.ended:
			t.Fatalf("ended: %v\n%s", end, p.output())
		case <-limit:
			t.Fatalf("/readyz of %s does not answer 200: %v", listener, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// address is where the listener is, by the log; empty while that is silent.
func (p *process) address(listener string) string {
	for text := range strings.Lines(p.output()) {
		var line struct{ Msg, Listener, Address string }
		if json.Unmarshal([]byte(text), &line) == nil && line.Msg == "listening" && line.Listener == listener {
			return line.Address
		}
	}
	return ""
}

func fetch(ctx context.Context, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	var body bytes.Buffer
	if _, err := body.ReadFrom(resp.Body); err != nil {
		return "", err
	}
	if resp.StatusCode != http.StatusOK {
		return "", &statusError{resp.Status}
	}
	return body.String(), nil
}

type statusError struct{ status string }

func (e *statusError) Error() string { return "status " + e.status }
