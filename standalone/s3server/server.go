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

// Config configures the server.
type Config struct {
	Addr      string // host:port; port 0 takes a free one
	Dir       string // created if needed; objects survive restarts
	AccessKey string
	SecretKey string
	Region    string // empty: us-east-1
	// UsersDir is the folder of the users that the first user creates over the server's admin
	// API. If it is empty, there is only the first user.
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

// Start starts the server and returns when it answers. ctx bounds only the start; the server
// runs until Stop.
func Start(ctx context.Context, c Config) (*Server, error) {
	// The server does not report its port, so the port is chosen here.
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
			// The server would choose these itself, but print a line about it.
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
		<-s.done // no other instance can start before
		return nil, fmt.Errorf("on %s: %w", port.Addr(), err)
	}
	return s, nil
}

// openUsers opens the list of the server's users.
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

// endpoint returns the URL by which this machine reaches the server.
func endpoint(port freeport.Port) string {
	host := port.Host
	if ip, err := netip.ParseAddr(host); host == "" || (err == nil && ip.IsUnspecified()) {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, strconv.Itoa(port.Number))
}

// openFolder opens the folder of objects. Metadata is in extended attributes, or in files beside
// the folder if the file system has no extended attributes.
func openFolder(dir string) (backend.Backend, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	objects, sidecar := filepath.Join(dir, "objects"), filepath.Join(dir, "meta")
	if err := os.MkdirAll(objects, 0o700); err != nil {
		return nil, err
	}
	// A folder that already has sidecar files keeps using them. Otherwise its objects would lose
	// their types.
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
	go func() { // another program on the port may not answer the request
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
		case <-s.done: // checked first, because it also cancels ctx
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

// Done returns a channel that is closed when the server has ended, by Stop or by itself.
func (s *Server) Done() <-chan struct{} { return s.done }

// Err returns the reason why the server ended by itself, once Done is closed.
func (s *Server) Err() error { return s.err }

// Stop ends the server and waits until it has released its folder and address. Later calls
// return the same result.
func (s *Server) Stop(ctx context.Context) error {
	s.once.Do(s.stop)
	select {
	case <-s.done:
		return s.err
	case <-ctx.Done():
		return fmt.Errorf("stopping the s3 server: %w", ctx.Err())
	}
}
