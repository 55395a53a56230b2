package e2e_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver pgx

	"github.com/mediagate/mediagate/storage/pgtest"
)

// place is the content of a process's standalone.json.
type place struct {
	PID      int      `json:"pid"`
	API      string   `json:"api"`
	Temporal string   `json:"temporal"`
	UI       string   `json:"ui"`
	S3       *s3Place `json:"s3"`
	Sandbox  string   `json:"sandbox"`
	AdminKey string   `json:"admin_key"`
}

type s3Place struct {
	Endpoint        string `json:"endpoint"`
	Region          string `json:"region"`
	Bucket          string `json:"bucket"`
	AccessKeyID     string `json:"access_key_id"`
	SecretAccessKey string `json:"secret_access_key"`
}

// announced waits for the standalone.json of this process.
func announced(ctx context.Context, s *service, data string) (place, error) {
	var p place
	err := until(ctx, readyLimit, func() error {
		if s.gone() {
			return &stopError{"it has ended: " + s.cmd.ProcessState.String()}
		}
		text, err := os.ReadFile(filepath.Join(data, "standalone.json"))
		if err != nil {
			return err
		}
		if err := json.Unmarshal(text, &p); err != nil {
			return &stopError{"standalone.json is not whole: " + err.Error()}
		}
		if p.PID != s.cmd.Process.Pid {
			return fmt.Errorf("standalone.json is still that of process %d", p.PID)
		}
		return nil
	})
	if err != nil {
		return p, fmt.Errorf("%s does not serve: %w\n%s", s.name, err, tail(s.logFile()))
	}
	return p, nil
}

// infraProgram returns bin/mediagate-standalone with only these embedded servers. addr returns
// an address for each.
func infraProgram(name, dir, list string, addr func() string) program {
	p := program{name: name, bin: "mediagate-standalone", dir: dir}
	p.args = []string{"-data", filepath.Join(dir, name), "-infra", list}
	for server := range strings.SplitSeq(list, ",") {
		p.args = append(p.args, "-"+server, addr())
	}
	return p
}

// sharedInfra holds the servers that production worlds share. Each world has its own database,
// namespace and bucket. The first world starts the servers.
type sharedInfra struct {
	once     sync.Once
	err      error
	dir      string
	servers  *service
	place    place
	postgres *pgtest.Cluster
}

func (i *sharedInfra) get(t *testing.T) *sharedInfra {
	t.Helper()
	i.once.Do(func() { i.err = i.start() })
	if i.err != nil {
		t.Fatal(i.err)
	}
	return i
}

func (i *sharedInfra) start() (err error) {
	if i.dir, err = os.MkdirTemp("", "mediagate-e2e-"); err != nil {
		return err
	}
	// PostgreSQL may run as another user, which must be able to enter its folder.
	if err := os.Chmod(i.dir, 0o755); err != nil {
		return err
	}
	if i.postgres, err = pgtest.Start(filepath.Join(i.dir, "postgres")); err != nil {
		return err
	}
	p := infraProgram("servers", i.dir, "temporal,s3,sandbox", func() string { return anyAddr }) // these servers are never restarted
	i.servers = &service{program: p}
	if err := i.servers.spawn(); err != nil {
		return err
	}
	i.place, err = announced(context.Background(), i.servers, filepath.Join(i.dir, p.name))
	return err
}

func (i *sharedInfra) stop() error {
	if i.dir == "" {
		return nil
	}
	if i.servers != nil {
		i.servers.kill()
	}
	var err error
	if i.postgres != nil {
		err = i.postgres.Stop()
	}
	return errors.Join(err, os.RemoveAll(i.dir))
}

// ownPostgres starts a cluster for a test that makes the database unavailable.
func ownPostgres(t *testing.T) *outage {
	t.Helper()
	dir, err := os.MkdirTemp("", "mediagate-e2e-pg-") //nolint:usetesting // the server's user has to get there
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
	return &outage{cluster: cluster, data: filepath.Join(dir, "data")}
}

// newDatabase creates an empty database and returns its URL.
func newDatabase(t *testing.T, cluster *pgtest.Cluster, name string) string {
	t.Helper()
	admin, err := sql.Open("pgx", cluster.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	for _, statement := range []string{
		"CREATE DATABASE " + name,
		// The test server is fast rather than safe. Its commits must still survive the end of its
		// processes, as in production.
		"ALTER DATABASE " + name + " SET synchronous_commit = on",
	} {
		if _, err := admin.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	return cluster.URL(name)
}

// outage stops and starts the server of a cluster, like a machine that goes down and comes back.
type outage struct {
	cluster *pgtest.Cluster
	data    string
	backups int
}

// pid returns the id of the server's first process.
func (o *outage) pid(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(o.data, "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatalf("postmaster.pid: %v", err)
	}
	return pid
}

// signal sends a signal to all processes of the server and returns their ids. The first process
// gets it first, so that it starts no others.
func (o *outage) signal(t *testing.T, sig syscall.Signal) []int {
	t.Helper()
	first := o.pid(t)
	if err := syscall.Kill(first, sig); err != nil {
		t.Fatal(err)
	}
	all := []int{first}
	out, err := exec.Command("ps", "-e", "-o", "pid=,ppid=").Output() // returns at once
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		var pid, parent int
		if _, err := fmt.Sscan(line, &pid, &parent); err == nil && parent == first {
			_ = syscall.Kill(pid, sig) // the process may have ended
			all = append(all, pid)
		}
	}
	return all
}

// kill kills all processes of the server with kill -9 and waits until they are gone.
func (o *outage) kill(t *testing.T) {
	t.Helper()
	for _, pid := range o.signal(t, syscall.SIGKILL) {
		eventually(t, 20*time.Second, "PostgreSQL is gone", func() error {
			if state, err := processState(pid); err == nil && state != "Z" {
				return fmt.Errorf("process %d is in state %q", pid, state)
			}
			return nil
		})
	}
}

// backup copies the server's folder at one moment, while all its processes are stopped, and
// returns the copy.
func (o *outage) backup(t *testing.T) string {
	t.Helper()
	for _, pid := range o.signal(t, syscall.SIGSTOP) {
		eventually(t, 20*time.Second, "PostgreSQL stands still", func() error {
			if state, err := processState(pid); err == nil && state != "T" && state != "Z" {
				return fmt.Errorf("process %d is in state %q", pid, state)
			}
			return nil
		})
	}
	o.backups++
	to := fmt.Sprintf("%s-%d", o.data, o.backups)
	out, err := exec.Command("cp", "-a", o.data, to).CombinedOutput() // both folders are ours
	o.signal(t, syscall.SIGCONT)
	if err != nil {
		t.Fatalf("cp: %v\n%s", err, out)
	}
	return to
}

// lapse replaces the server's data by a backup, like a failover to a standby that was behind.
// Later commits are lost.
func (o *outage) lapse(t *testing.T, backup string) {
	t.Helper()
	o.kill(t)
	err := os.RemoveAll(o.data)
	if err == nil {
		err = os.Rename(backup, o.data)
	}
	if err == nil {
		err = os.Remove(filepath.Join(o.data, "postmaster.pid")) // left by the server that was copied
	}
	if err != nil {
		t.Fatal(err)
	}
	o.start(t)
}

// start starts the server again with the command that the server has recorded.
func (o *outage) start(t *testing.T) {
	t.Helper()
	command, err := os.ReadFile(filepath.Join(o.data, "postmaster.opts"))
	if err != nil {
		t.Fatal(err)
	}
	about, err := os.Stat(o.data)
	if err != nil {
		t.Fatal(err)
	}
	server := exec.Command("/bin/sh", "-c", "exec "+string(command)) // the command that the server has recorded
	server.Dir = filepath.Dir(o.data)
	server.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if owner, ok := about.Sys().(*syscall.Stat_t); ok && os.Geteuid() == 0 {
		server.SysProcAttr.Credential = &syscall.Credential{Uid: owner.Uid, Gid: owner.Gid}
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	suite.janitor.note("add", server.Process.Pid)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Wait() // the next server would take a zombie for a live server
	}()
	t.Cleanup(func() {
		_ = server.Process.Signal(syscall.SIGQUIT)
		<-ended
		suite.janitor.note("del", server.Process.Pid)
	})
}
