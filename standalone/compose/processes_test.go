package compose_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/jackc/pgx/v5/pgconn"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver pgx

	"github.com/mediagate/mediagate/sandbox"
	"github.com/mediagate/mediagate/standalone/s3server"
	"github.com/mediagate/mediagate/standalone/temporalserver"
	"github.com/mediagate/mediagate/storage/pgtest"
)

// TestGatewayStartsFromItsEnvironment starts the services of the file as processes: PostgreSQL
// with its roles, Temporal over it, S3 with its user, then migrate, the API and the worker. The
// gateway's processes have the environment that the file gives them, run as another user, and
// have the memory and threads of their containers. Only the hosts are replaced by the servers'
// addresses here. Then it runs a task through all of them.
func TestGatewayStartsFromItsEnvironment(t *testing.T) {
	vendor := startVendor(t)
	project := load(t,
		"MEDIAGATE_CHANNELS=[{name: d, provider: dashscope, base_url: '"+vendor+"/dashscope/api/v1', poll_interval: {min: 100ms, max: 1s}}]",
		"MEDIAGATE_CHANNEL_CREDENTIALS={d: {api_key: sk-sandbox-dashscope}}",
	)
	binary := filepath.Join(openFolder(t), "mediagate")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "./cmd/mediagate")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}

	database := startPostgres(t, project)
	s3 := startS3(t, project)
	hosts := strings.NewReplacer(
		"@postgres:5432", "@"+database,
		"temporal:7233", startTemporal(t, project.Services["temporal"], database),
		"http://s3:9000", s3, "http://localhost:9000", s3,
	)

	migrate := run(t, binary, project.Services["migrate"], hosts, nil)
	if err := migrate.wait(t); err != nil {
		t.Fatalf("migrate: %v\n%s", err, migrate.output())
	}
	worker := run(t, binary, project.Services["worker"], hosts, []string{"MEDIAGATE_OPS_LISTEN=127.0.0.1:0"})
	api := run(t, binary, project.Services["api"], hosts, []string{"MEDIAGATE_API_LISTEN=127.0.0.1:0", "MEDIAGATE_ADMIN_LISTEN=127.0.0.1:0"})
	for listener, p := range map[string]*process{"api": api, "admin": api, "ops": worker} {
		if body := p.awaitReady(t, listener); strings.Contains(body, "degraded") {
			t.Errorf("%s is degraded: %s", listener, body)
		}
	}
	order(t, "http://"+api.address("api"), "http://"+api.address("admin"), environment(project.Services["api"], "MEDIAGATE_ADMIN_KEY"))
	for _, p := range []*process{api, worker} {
		if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := p.wait(t); err != nil {
			t.Errorf("%s after SIGTERM: %v\n%s", p.cmd.Args, err, p.output())
		}
	}
}

// startVendor starts the sandbox.
func startVendor(t *testing.T) string {
	t.Helper()
	vendors, err := sandbox.New(sandbox.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(vendors.Handler())
	t.Cleanup(func() {
		if err := vendors.Close(); err != nil {
			t.Error(err)
		}
		server.Close()
	})
	return server.URL
}

// order creates a customer with the admin API and makes an image with the client API.
func order(t *testing.T, api, admin, adminKey string) {
	t.Helper()
	if status := send(t, http.MethodGet, api+"/admin/v1/accounts", adminKey, nil, &struct{}{}); status != http.StatusNotFound {
		t.Errorf("the admin API answers clients: %d", status)
	}
	create := func(path string, body map[string]any) map[string]any {
		t.Helper()
		var answer map[string]any
		if status := send(t, http.MethodPost, admin+"/admin/v1/accounts"+path, adminKey, body, &answer); status != http.StatusCreated {
			t.Fatalf("%s: %d %v", path, status, answer)
		}
		return answer
	}
	account, _ := create("", map[string]any{"name": "acme"})["id"].(string)
	create("/"+account+"/grants", map[string]any{"amount": "10", "reference": "first"})
	key, _ := create("/"+account+"/keys", map[string]any{"name": "k", "unlimited": true})["key"].(string)

	var ack struct {
		Data []struct {
			TaskID string `json:"task_id"`
		}
	}
	if status := send(t, http.MethodPost, api+"/v1/images/generations", key, map[string]any{"model": "theta-image-turbo", "prompt": "a lighthouse"}, &ack); status != http.StatusOK || len(ack.Data) != 1 {
		t.Fatalf("submit: %d %+v", status, ack)
	}
	var task struct {
		Data struct {
			Status string
			Result struct{ Images []struct{ URL []string } }
		}
	}
	status := send(t, http.MethodGet, api+"/v1/tasks/"+ack.Data[0].TaskID+"?wait=50", key, nil, &task)
	if status != http.StatusOK || task.Data.Status != "completed" || len(task.Data.Result.Images) != 1 {
		t.Fatalf("the task: %d %+v", status, task)
	}
	if _, err := fetch(t.Context(), task.Data.Result.Images[0].URL[0]); err != nil {
		t.Errorf("the result cannot be read by its link: %v", err)
	}
}

func send(t *testing.T, method, url, key string, body, answer any) (status int) {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if err := json.NewDecoder(resp.Body).Decode(answer); err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	return resp.StatusCode
}

// openFolder returns a folder that other users may enter, unlike that of t.TempDir.
func openFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "mediagate-compose-") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// startPostgres starts a cluster that asks for passwords and runs the file's own script for its
// roles, twice. The second run finds the roles as they are.
func startPostgres(t *testing.T, project *types.Project) (addr string) {
	t.Helper()
	dir := filepath.Join(openFolder(t), "cluster")
	cluster, err := pgtest.Start(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Errorf("stop PostgreSQL: %v", err)
		}
	})
	db, err := sql.Open("pgx", cluster.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	var port string
	if err := db.QueryRowContext(t.Context(), "SHOW port").Scan(&port); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "data", "pg_hba.conf"), []byte("host all all 127.0.0.1/32 scram-sha-256\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		"ALTER ROLE postgres PASSWORD '" + environment(project.Services["postgres"], "POSTGRES_PASSWORD") + "'", "SELECT pg_reload_conf()",
	} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	service := project.Services["postgres-roles"]
	script := filepath.Join(t.TempDir(), "roles.sql")
	if err := os.WriteFile(script, []byte(project.Configs[service.Configs[0].Source].Content), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		command := slices.Clone([]string(service.Command))
		for i := range command {
			command[i] = strings.Replace(command[i], service.Configs[0].Target, script, 1)
		}
		psql := exec.CommandContext(t.Context(), findPsql(t), command...)
		psql.Env = []string{"PGPORT=" + port}
		for name := range service.Environment {
			value := environment(service, name)
			if name == "PGHOST" {
				value = "127.0.0.1"
			}
			psql.Env = append(psql.Env, name+"="+value)
		}
		if out, err := psql.CombinedOutput(); err != nil || len(out) > 0 {
			t.Fatalf("the roles: %v\n%s", err, out)
		}
	}
	addr = net.JoinHostPort("127.0.0.1", port)
	checkRoles(t, project, addr)
	return addr
}

// findPsql returns the program itself rather than a distribution's wrapper, which needs more
// environment variables.
func findPsql(t *testing.T) string {
	t.Helper()
	packaged, _ := filepath.Glob("/usr/lib/postgresql/*/bin/psql")
	if len(packaged) > 0 {
		return packaged[len(packaged)-1]
	}
	path, err := exec.LookPath("psql")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// checkRoles tries actions that a role must not be able to do.
func checkRoles(t *testing.T, project *types.Project, addr string) {
	t.Helper()
	const permission, password = "42501", "28P01"
	gateway := environment(project.Services["postgres-roles"], "GATEWAY_PASSWORD")
	temporal := environment(project.Services["postgres-roles"], "TEMPORAL_PASSWORD")
	for _, test := range []struct{ what, role, password, database, statement, code string }{
		{"its own database", "mediagate", gateway, "mediagate", "CREATE TABLE t (); DROP TABLE t", ""},
		{"a wrong password", "mediagate", temporal, "mediagate", "SELECT 1", password},
		{"Temporal's database", "mediagate", gateway, "temporal", "SELECT 1", permission},
		{"Temporal's other database", "mediagate", gateway, "temporal_visibility", "SELECT 1", permission},
		{"the server's database", "mediagate", gateway, "postgres", "SELECT 1", permission},
		{"a database", "mediagate", gateway, "mediagate", "CREATE DATABASE more", permission},
		{"a role", "mediagate", gateway, "mediagate", "CREATE ROLE more", permission},
		{"a program", "mediagate", gateway, "mediagate", "COPY (SELECT 1) TO PROGRAM 'true'", permission},
		{"the gateway's database", "temporal", temporal, "mediagate", "SELECT 1", permission},
		{"a database of Temporal's making", "temporal", temporal, "temporal", "CREATE DATABASE more", permission},
	} {
		db, err := sql.Open("pgx", "postgres://"+test.role+":"+test.password+"@"+addr+"/"+test.database+"?sslmode=disable")
		if err != nil {
			t.Fatal(err)
		}
		_, err = db.ExecContext(t.Context(), test.statement)
		_ = db.Close()
		refused, ok := errors.AsType[*pgconn.PgError](err)
		if test.code == "" && err != nil || test.code != "" && (!ok || refused.Code != test.code) {
			t.Errorf("%s as %s: %v, want code %q", test.what, test.role, err, test.code)
		}
	}
}

// startTemporal starts Temporal over PostgreSQL with its own role, twice. The second start finds
// its databases as they are.
func startTemporal(t *testing.T, service types.ServiceConfig, database string) string {
	t.Helper()
	url := "postgres://" + environment(service, "POSTGRES_USER") + ":" + environment(service, "POSTGRES_PWD") + "@" + database + "/postgres?sslmode=disable"
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

// startS3 starts the S3 server and creates the gateway's user there, as the command of the file
// does.
func startS3(t *testing.T, project *types.Project) string {
	t.Helper()
	service, user := project.Services["s3"], project.Services["s3-user"]
	t.Chdir(".") // restores the folder at the end: the server changes to its own, which is deleted with the test
	server, err := s3server.Start(t.Context(), s3server.Config{
		Addr: "127.0.0.1:0", Dir: t.TempDir(), Region: environment(service, "VGW_REGION"), UsersDir: t.TempDir(),
		AccessKey: environment(service, "ROOT_ACCESS_KEY"), SecretKey: environment(service, "ROOT_SECRET_KEY"),
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
	made := regexp.MustCompile(`create-user --access (\S+) --secret "\$USER_SECRET" --role (\S+)`).FindStringSubmatch(strings.Join(user.Command, " "))
	if made == nil {
		t.Fatalf("the command of s3-user makes no user: %q", user.Command)
	}
	body := []byte("<Account><Access>" + made[1] + "</Access><Secret>" + environment(user, "USER_SECRET") + "</Secret><Role>" + made[2] + "</Role></Account>")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, server.Endpoint+"/create-user", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(body)
	hash := hex.EncodeToString(sum[:])
	req.Header.Set("X-Amz-Content-Sha256", hash)
	root := aws.Credentials{AccessKeyID: environment(user, "ADMIN_ACCESS_KEY_ID"), SecretAccessKey: environment(user, "ADMIN_SECRET_ACCESS_KEY")}
	if err := v4.NewSigner().SignHTTP(t.Context(), root, req, hash, "s3", environment(user, "ADMIN_REGION"), time.Now()); err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	answer, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if resp.StatusCode >= http.StatusBadRequest {
		t.Fatalf("make the user: %s %s", resp.Status, answer)
	}
	return server.Endpoint
}

// environment returns the value of a service's variable.
func environment(service types.ServiceConfig, name string) string {
	if value := service.Environment[name]; value != nil {
		return *value
	}
	return ""
}

// process is a service of the file that runs without a container.
type process struct {
	cmd   *exec.Cmd
	log   string // the file to which it writes
	ended chan error
}

func run(t *testing.T, binary string, service types.ServiceConfig, hosts *strings.Replacer, more []string) *process {
	t.Helper()
	p := &process{ended: make(chan error, 1)}
	// A container limits its memory and threads. A process can limit only its data, and the
	// threads of its user.
	p.cmd = exec.CommandContext(t.Context(), "/bin/bash", append([]string{
		"-c", `ulimit -d "$1" && ulimit -u "$2" && shift 2 && exec "$@"`, "bash",
		strconv.FormatInt(int64(service.MemLimit)>>10, 10), strconv.FormatInt(service.PidsLimit, 10), binary,
	}, service.Command...)...)
	p.cmd.Dir = "/" // the container's user cannot write there
	// As in a container, the process gets no variable of the shell. It gets GOMEMLIMIT, which it
	// would compute from the container's limit.
	p.cmd.Env = append(more, "GOMEMLIMIT="+strconv.FormatInt(int64(service.MemLimit)*9/10, 10))
	if os.Geteuid() == 0 {
		uid, _, _ := strings.Cut(service.User, ":")
		id, err := strconv.ParseUint(uid, 10, 32)
		if err != nil {
			t.Fatal(err)
		}
		p.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(id), Gid: uint32(id)}}
	}
	for name, value := range service.Environment {
		if value != nil {
			p.cmd.Env = append(p.cmd.Env, name+"="+hosts.Replace(*value))
		}
	}
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
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

// wait waits for the end of the process and returns its error.
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

// output returns the text that the process has written.
func (p *process) output() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// awaitReady polls the listener's /readyz until it answers 200, and returns the body. The log
// shows the address.
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

// address returns the listener's address in the log, or "" if the log does not have it yet.
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
