package pgtest

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver pgx

	"github.com/mediagate/mediagate/internal/freeport"
)

const (
	startTimeout = 60 * time.Second
	stopTimeout  = 10 * time.Second
	pingTimeout  = 2 * time.Second
)

// Cluster is a PostgreSQL server of our own.
type Cluster struct {
	port   freeport.Port
	server *exec.Cmd
	exited chan error
	log    *os.File
	guard  *janitor
}

// Start makes a cluster in the folder, and starts its server on a free port of the loopback
// interface. The folder must be empty or not exist yet. The server is fast rather than safe: it
// forces nothing to disk. If root calls Start, the server runs as another user, which then owns the
// folder.
func Start(dir string) (*Cluster, error) { return start(dir, "") }

// start is Start. If this process dies without calling Stop, the janitor also removes the folder
// remove, if one is given.
func start(dir, remove string) (*Cluster, error) {
	bin, err := findServer(packagedServers)
	if err != nil {
		return nil, err
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("start PostgreSQL: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("start PostgreSQL: %w", err)
	}
	account, err := runAs(dir)
	if err != nil {
		return nil, err
	}
	initdb := command(account, filepath.Join(bin, "initdb"), "-D", filepath.Join(dir, "data"),
		"-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	initdb.Dir = dir
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w\n%s", err, out)
	}
	for try := 1; ; try++ {
		port, err := freeport.Take("127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		c, err := serve(dir, bin, port, account, remove)
		if err == nil || try == freeport.Tries || !errors.Is(err, errPortTaken) {
			return c, err
		}
	}
}

var errPortTaken = errors.New("another program listens on the port that was meant for it")

// serve starts the server of the cluster in the folder.
func serve(dir, bin string, port freeport.Port, account *syscall.Credential, remove string) (_ *Cluster, err error) {
	c := &Cluster{port: port, exited: make(chan error, 1)}
	if c.log, err = os.Create(filepath.Join(dir, "server.log")); err != nil {
		return nil, fmt.Errorf("start PostgreSQL: %w", err)
	}
	settings := []string{
		"listen_addresses=127.0.0.1", "port=" + strconv.Itoa(port.Number), "unix_socket_directories=", "max_connections=300",
		"fsync=off", "full_page_writes=off", "shared_buffers=128MB", "logging_collector=off",
	}
	data := filepath.Join(dir, "data")
	args := []string{"-D", data}
	for _, s := range settings {
		args = append(args, "-c", s)
	}
	c.server = command(account, filepath.Join(bin, "postgres"), args...)
	c.server.Dir = dir
	c.server.Stdout, c.server.Stderr = c.log, c.log
	if err := c.server.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start PostgreSQL: %w", err), c.log.Close())
	}
	if c.guard, err = hire(c.server.Process.Pid, remove); err != nil {
		return nil, errors.Join(err, c.server.Process.Kill(), c.server.Wait(), c.log.Close())
	}
	go func() { c.exited <- c.server.Wait() }()
	if err := c.awaitReady(data); err != nil {
		text, _ := os.ReadFile(c.log.Name())
		if bytes.Contains(text, []byte("could not bind")) {
			err = errors.Join(errPortTaken, err)
		}
		return nil, errors.Join(fmt.Errorf("%w\n%s", err, bytes.TrimSpace(text)), c.Stop())
	}
	return c, nil
}

// URL returns the URL of a database, for its superuser.
func (c *Cluster) URL(database string) string {
	u := url.URL{
		Scheme: "postgres", User: url.User("postgres"), Host: c.port.Addr(),
		Path: "/" + database, RawQuery: "sslmode=disable",
	}
	return u.String()
}

// Stop ends the server, even if it has connections, and waits until it is gone. The folder stays. A
// second call does nothing.
func (c *Cluster) Stop() error {
	if c.server == nil {
		return nil
	}
	defer func() { c.server = nil }()
	c.guard.dismiss()
	// Immediate shutdown: nothing in here is worth a checkpoint.
	_ = c.server.Process.Signal(syscall.SIGQUIT)
	select {
	case <-c.exited: //nolint:errcheck // how it exits does not matter
	case <-time.After(stopTimeout):
		_ = c.server.Process.Kill()
		<-c.exited //nolint:errcheck // how it exits does not matter
	}
	return c.log.Close()
}

func (c *Cluster) awaitReady(data string) error {
	db, err := sql.Open("pgx", c.URL("postgres"))
	if err != nil {
		return fmt.Errorf("start PostgreSQL: %w", err)
	}
	defer func() { _ = db.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		try, stop := context.WithTimeout(ctx, pingTimeout) // another program on the port may never answer
		var folder string
		err = db.QueryRowContext(try, "SHOW data_directory").Scan(&folder)
		stop()
		if err == nil && folder == data {
			return nil // our own server, and not another one that took the port first
		}
		select {
		case exit := <-c.exited:
			c.exited <- exit // for Stop
			return fmt.Errorf("PostgreSQL ended while starting: %w", exit)
		case <-ctx.Done():
			return fmt.Errorf("PostgreSQL does not answer: %w", err)
		case <-tick.C:
		}
	}
}

// packagedServers is where Debian-like systems install servers outside the PATH.
const packagedServers = "/usr/lib/postgresql/*/bin"

// findServer returns the folder of the programs initdb and postgres. It searches the PATH, then the
// folders that match the pattern.
func findServer(pattern string) (string, error) {
	var places []string
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			places = append(places, filepath.Dir(path))
		}
	}
	packaged, _ := filepath.Glob(pattern)
	places = append(places, packaged...)
	for _, dir := range places {
		_, noInit := os.Stat(filepath.Join(dir, "initdb"))
		_, noServer := os.Stat(filepath.Join(dir, "postgres"))
		if noInit == nil && noServer == nil {
			return dir, nil
		}
	}
	return "", errors.New("no PostgreSQL server: the programs initdb and postgres are neither on the PATH nor in " +
		pattern + "; install the package postgresql, or set MEDIAGATE_TEST_POSTGRES to the URL of a server's superuser")
}

// runAs chooses the user of the server, which refuses to run as root, and makes that user the owner of
// the folder. It returns nil if the server can run as the present user.
func runAs(dir string) (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			continue
		}
		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		if err != nil {
			continue
		}
		if err := os.Chown(dir, int(uid), int(gid)); err != nil {
			return nil, fmt.Errorf("give the folder to %s: %w", name, err)
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, errors.New("PostgreSQL does not run as root, and there is no user postgres or nobody to run it as")
}

func command(account *syscall.Credential, name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...) //nolint:gosec,noctx // PostgreSQL's own programs; they outlive no test
	cmd.Env = []string{"LC_ALL=C", "PATH=" + os.Getenv("PATH"), "TZ=UTC"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: account, Setpgid: true}
	return cmd
}
