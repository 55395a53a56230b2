package s3server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/versity/versitygw/auth"
	"github.com/versity/versitygw/backend"
	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
	"golang.org/x/sys/unix"

	"github.com/mediagate/mediagate/internal/freeport"
)

// Config says where the server listens and keeps its objects.
type Config struct {
	Addr      string // host:port; port 0 takes a free one
	Dir       string // made when absent; objects survive restarts
	AccessKey string
	SecretKey string
	Region    string // empty: us-east-1
	// UsersDir is where users beside the first one are kept, whom that one makes
	// over the server's admin API; empty: there are none.
	UsersDir string
}

const (
	healthPath   = "/healthz"
	startTimeout = 10 * time.Second
	probeEvery   = 5 * time.Millisecond
	connections  = 1024
	partsMax     = 10_000
)

// Server is a running S3 server.
type Server struct {
	Endpoint string // http://host:port

	stop context.CancelFunc
	done chan struct{}
	err  error // why it ended; read after done
	once sync.Once
}

// Start brings the server up and returns when it answers. It runs until Stop,
// whatever becomes of ctx, which bounds the start only.
func Start(ctx context.Context, c Config) (*Server, error) {
	// The server does not tell which port it took, so that has to be chosen
	// for it.
	s, err := freeport.Serve(c.Addr, func(p freeport.Port) (*Server, error) { return startOn(ctx, c, p) })
	if err != nil {
		return nil, fmt.Errorf("s3 server: %w", err)
	}
	return s, nil
}

func startOn(ctx context.Context, c Config, port freeport.Port) (*Server, error) {
	store, err := openFolder(c.Dir)
	if err != nil {
		return nil, fmt.Errorf("its folder: %w", err)
	}
	users, err := openUsers(c)
	if err != nil {
		return nil, fmt.Errorf("its users: %w", err)
	}
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	s := &Server{Endpoint: endpoint(port), stop: stop, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		s.err = embedgw.RunVersityGW(run, store, &embedgw.Config{
			RootUserAccess: c.AccessKey, RootUserSecret: c.SecretKey, Region: c.Region,
			// What it would take by itself, after saying so on standard output.
			IAMService:     users,
			Ports:          []string{port.Addr()},
			MaxConnections: connections, MaxRequests: connections,
			MultipartMaxParts: partsMax,
			HealthPath:        healthPath,
			KeepAlive:         true,
			Quiet:             true,
		})
	}()
	if err := s.awaitReady(ctx); err != nil {
		s.stop()
		<-s.done // until then no other can be started
		return nil, fmt.Errorf("on %s: %w", port.Addr(), err)
	}
	return s, nil
}

// openUsers opens the book of who may use the server.
func openUsers(c Config) (auth.IAMService, error) {
	root := auth.Account{Access: c.AccessKey, Secret: c.SecretKey, Role: auth.RoleAdmin}
	if c.UsersDir == "" {
		return auth.NewIAMServiceSingle(root), nil
	}
	if err := os.MkdirAll(c.UsersDir, 0o700); err != nil {
		return nil, err
	}
	return auth.NewInternal(root, c.UsersDir)
}

// endpoint is how this machine reaches the server.
func endpoint(port freeport.Port) string {
	host := port.Host
	if ip, err := netip.ParseAddr(host); host == "" || (err == nil && ip.IsUnspecified()) {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, strconv.Itoa(port.Number))
}

// openFolder opens the folder of objects. Their metadata is in extended
// attributes, or beside the folder where the file system has none.
func openFolder(dir string) (backend.Backend, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	objects, sidecar := filepath.Join(dir, "objects"), filepath.Join(dir, "meta")
	if err := os.MkdirAll(objects, 0o700); err != nil {
		return nil, err
	}
	// A folder that was begun with sidecar files keeps them: its objects would
	// lose their types otherwise.
	_, statErr := os.Stat(sidecar)
	if statErr != nil && hasXattr(objects) {
		return posix.New(objects, meta.XattrMeta{}, posix.PosixOpts{})
	}
	if err := os.MkdirAll(sidecar, 0o700); err != nil {
		return nil, err
	}
	store, err := meta.NewSideCar(sidecar)
	if err != nil {
		return nil, err
	}
	return posix.New(objects, store, posix.PosixOpts{SideCarDir: sidecar})
}

func hasXattr(dir string) bool {
	const name = "user.mediagate.probe"
	if err := unix.Setxattr(dir, name, []byte("1"), 0); err != nil {
		return false
	}
	return unix.Removexattr(dir, name) == nil
}

// awaitReady polls the health path until it answers.
func (s *Server) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	go func() { // another program on the port may leave the question unanswered
		select {
		case <-s.done:
			cancel()
		case <-ctx.Done():
		}
	}()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for {
		if s.healthy(ctx, client) {
			return nil
		}
		select {
		case <-s.done: // before all that follows from it
			return errors.Join(errors.New("ended while starting"), s.err)
		default:
		}
		select {
		case <-s.done:
			return errors.Join(errors.New("ended while starting"), s.err)
		case <-ctx.Done():
			return fmt.Errorf("does not answer: %w", ctx.Err())
		case <-tick.C:
		}
	}
}

func (s *Server) healthy(ctx context.Context, client *http.Client) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.Endpoint+healthPath, http.NoBody)
	if err != nil {
		return false
	}
	resp, err := client.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<10))
	return resp.StatusCode == http.StatusOK
}

// Done is closed when the server has ended, by Stop or by itself.
func (s *Server) Done() <-chan struct{} { return s.done }

// Err is why it ended by itself, once Done is closed.
func (s *Server) Err() error { return s.err }

// Stop ends the server and waits until it has let go of its folder and
// address. Later calls return what the first did.
func (s *Server) Stop(ctx context.Context) error {
	s.once.Do(s.stop)
	select {
	case <-s.done:
		return s.err
	case <-ctx.Done():
		return fmt.Errorf("stopping the s3 server: %w", ctx.Err())
	}
}
