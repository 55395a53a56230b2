package app

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/mediagate/mediagate/workflows"
)

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string // its certificate in PEM
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	key := newKeyPair(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: t.Name()}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must(t, err)
	cert, err := x509.ParseCertificate(raw)
	must(t, err)
	a := authority{cert: cert, key: key, file: filepath.Join(t.TempDir(), "ca.pem")}
	writePEM(t, a.file, "CERTIFICATE", raw)
	return a
}

func newKeyPair(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	return key
}

func writePEM(t *testing.T, file, kind string, raw []byte) {
	t.Helper()
	must(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw}), 0o600))
}

// issue writes cert.pem and key.pem into the folder.
func (a authority) issue(t *testing.T, dir, name string, serial int64) (cert, key string) {
	t.Helper()
	pair := newKeyPair(t)
	raw, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.cert, pair.Public(), a.key)
	must(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(pair)
	must(t, err)
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writePEM(t, cert, "CERTIFICATE", raw)
	writePEM(t, key, "PRIVATE KEY", secret)
	return cert, key
}

// frontend stands for Temporal's: it demands a certificate, and notes what comes.
type frontend struct {
	addr string

	mu     sync.Mutex
	conns  []net.Conn
	serial int64
	bearer []string
}

// note keeps what a call came with.
func (f *frontend) note(ctx context.Context) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if md, ok := metadata.FromIncomingContext(ctx); ok {
		f.bearer = md.Get("authorization")
	}
	if p, ok := peer.FromContext(ctx); ok {
		if info, ok := p.AuthInfo.(credentials.TLSInfo); ok {
			f.serial = info.State.PeerCertificates[0].SerialNumber.Int64()
		}
	}
}

// kept is a listener whose connections the frontend can cut.
type kept struct {
	net.Listener
	f *frontend
}

func (k kept) Accept() (net.Conn, error) {
	c, err := k.Listener.Accept()
	if err == nil {
		k.f.mu.Lock()
		k.f.conns = append(k.f.conns, c)
		k.f.mu.Unlock()
	}
	return c, err
}

// drop cuts all connections.
func (f *frontend) drop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.conns {
		_ = c.Close()
	}
	f.conns = nil
}

func (f *frontend) seen() (int64, []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.serial, f.bearer
}

// system tells what it can, which each client asks first.
type system struct {
	workflowservice.UnimplementedWorkflowServiceServer
}

func (system) GetSystemInfo(context.Context, *workflowservice.GetSystemInfoRequest) (*workflowservice.GetSystemInfoResponse, error) {
	return &workflowservice.GetSystemInfoResponse{}, nil
}

func startFrontend(t *testing.T, a authority) *frontend {
	t.Helper()
	cert, key := a.issue(t, t.TempDir(), "temporal.internal", 100)
	own, err := tls.LoadX509KeyPair(cert, key)
	must(t, err)
	clients := x509.NewCertPool()
	clients.AddCert(a.cert)
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	f := &frontend{addr: l.Addr().String()}
	server := grpc.NewServer(
		grpc.Creds(credentials.NewTLS(&tls.Config{
			MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{own}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients,
		})),
		grpc.UnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
			f.note(ctx)
			return handle(ctx, req)
		}))
	status := health.NewServer()
	status.SetServingStatus("temporal.api.workflowservice.v1.WorkflowService", grpc_health_v1.HealthCheckResponse_SERVING)
	grpc_health_v1.RegisterHealthServer(server, status)
	workflowservice.RegisterWorkflowServiceServer(server, system{})
	go func() { _ = server.Serve(kept{l, f}) }()
	t.Cleanup(server.Stop)
	return f
}

// dialTemporal makes the client that a program would make, and asks the server whether it lives.
func dialTemporal(t *testing.T, settings Temporal) client.Client {
	t.Helper()
	o, err := settings.options(slog.New(slog.DiscardHandler))
	must(t, err)
	c, err := client.NewLazyClient(o)
	must(t, err)
	t.Cleanup(c.Close)
	return c
}

func TestTemporalOverTLS(t *testing.T) {
	t.Parallel()
	ours, foreign := newAuthority(t), newAuthority(t)
	f := startFrontend(t, ours)
	cert, key := ours.issue(t, t.TempDir(), "mediagate", 7)
	foreignCert, foreignKey := foreign.issue(t, t.TempDir(), "mediagate", 8)
	whole := TemporalTLS{Mode: tlsAuto, CA: ours.file, Cert: cert, Key: key, ServerName: "temporal.internal"}
	// What the server thinks of us may come as a broken connection only.
	const unreachable = "failed reaching server: "
	for name, test := range map[string]struct {
		change func(*Temporal)
		wrong  string // part of the error; empty: it works
		away   bool   // the error may be one of an absent server
	}{
		"all of it":                 {change: func(*Temporal) {}},
		"another authority":         {change: func(s *Temporal) { s.TLS.CA = foreign.file }, wrong: "certificate signed by unknown authority"},
		"the system's authorities":  {change: func(s *Temporal) { s.TLS.CA = "" }, wrong: "certificate signed by unknown authority"},
		"another name":              {change: func(s *Temporal) { s.TLS.ServerName = "temporal.example" }, wrong: "valid for temporal.internal, not temporal.example"},
		"the address as the name":   {change: func(s *Temporal) { s.TLS.ServerName = "" }, wrong: "127.0.0.1"},
		"no certificate":            {change: func(s *Temporal) { s.TLS.Cert, s.TLS.Key = "", "" }, wrong: unreachable, away: true},
		"a certificate of a forger": {change: func(s *Temporal) { s.TLS.Cert, s.TLS.Key = foreignCert, foreignKey }, wrong: unreachable, away: true},
		"an API key alone":          {change: func(s *Temporal) { s.TLS = TemporalTLS{Mode: tlsAuto} }, wrong: "tls: failed to verify certificate"},
		"in clear":                  {change: func(s *Temporal) { s.TLS = TemporalTLS{Mode: tlsOff} }, wrong: unreachable, away: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			settings := Temporal{Address: f.addr, Namespace: "media", TLS: whole, APIKey: "temporal-api-key"}
			test.change(&settings)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			_, err := dialTemporal(t, settings).CheckHealth(ctx, &client.CheckHealthRequest{})
			switch {
			case test.wrong == "" && err != nil:
				t.Fatal(err)
			case test.wrong != "" && (err == nil || !strings.Contains(err.Error(), test.wrong)):
				t.Fatalf("error %v, want one with %q", err, test.wrong)
			case test.wrong != "" && !test.away && !workflows.IsFinal(err):
				t.Errorf("it is taken for an absent server: %v", err)
				return
			case test.wrong != "":
				t.Log(err)
				return
			}
			serial, bearer := f.seen()
			if diff := cmp.Diff([]string{"Bearer temporal-api-key"}, bearer); serial != 7 || diff != "" {
				t.Errorf("the server saw certificate %d and (-want +got)\n%s", serial, diff)
			}
		})
	}
}

// TestTemporalCertificateIsReadAnew checks that a renewed certificate is used from the next
// connection on, and that an unreadable one does no harm.
func TestTemporalCertificateIsReadAnew(t *testing.T) {
	t.Parallel()
	a, dir := newAuthority(t), t.TempDir()
	f := startFrontend(t, a)
	cert, key := a.issue(t, dir, "mediagate", 1)
	c := dialTemporal(t, Temporal{Address: f.addr, TLS: TemporalTLS{Mode: tlsAuto, CA: a.file, Cert: cert, Key: key, ServerName: "temporal.internal"}})
	for _, step := range []struct {
		what   string
		before func()
		want   int64
	}{
		{"the first one", func() {}, 1},
		{"a renewed one", func() { a.issue(t, dir, "mediagate", 2) }, 2},
		{"half of the next one", func() {
			must(t, os.WriteFile(cert, []byte("-----BEGIN"), 0o600))
		}, 2},
		{"the next one", func() { a.issue(t, dir, "mediagate", 3) }, 3},
	} {
		step.before()
		f.drop()
		f.mu.Lock()
		f.serial = 0
		f.mu.Unlock()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		for serial := int64(0); serial == 0; serial, _ = f.seen() { // the first call may be on the connection that was cut
			if _, err := c.CheckHealth(ctx, &client.CheckHealthRequest{}); err != nil {
				select {
				case <-ctx.Done():
					t.Fatalf("%s: %v", step.what, err)
				case <-time.After(10 * time.Millisecond):
				}
			}
		}
		cancel()
		if serial, _ := f.seen(); serial != step.want {
			t.Errorf("%s: the server saw certificate %d, want %d", step.what, serial, step.want)
		}
	}
}

// TestTemporalSettings checks that all errors of the certificate files are reported at start with
// their settings.
func TestTemporalSettings(t *testing.T) {
	t.Parallel()
	a, dir := newAuthority(t), t.TempDir()
	cert, key := a.issue(t, dir, "mediagate", 1)
	_, otherKey := a.issue(t, t.TempDir(), "mediagate", 2)
	loose := filepath.Join(dir, "loose.pem")
	text, err := os.ReadFile(key)
	must(t, err)
	must(t, os.WriteFile(loose, text, 0o600))
	must(t, os.Chmod(loose, 0o602))
	for name, test := range map[string]struct {
		tls       TemporalTLS
		apiKey    string
		want      []string
		encrypted bool
	}{
		"nothing":                        {},
		"an API key":                     {apiKey: "k", encrypted: true},
		"an API key, and TLS off":        {apiKey: "k", tls: TemporalTLS{Mode: tlsOff}},
		"TLS on":                         {tls: TemporalTLS{Mode: tlsOn}, encrypted: true},
		"a name":                         {tls: TemporalTLS{ServerName: "temporal.internal"}, encrypted: true},
		"an address as the name":         {tls: TemporalTLS{ServerName: "2001:db8::1"}, encrypted: true},
		"a name with a port":             {tls: TemporalTLS{ServerName: "temporal.internal:7233"}, encrypted: true, want: []string{"temporal.tls.server_name: must be a name alone, without a port"}},
		"two names":                      {tls: TemporalTLS{ServerName: "a b"}, encrypted: true, want: []string{"temporal.tls.server_name: must be a name alone, without a port"}},
		"all":                            {tls: TemporalTLS{CA: a.file, Cert: cert, Key: key}, encrypted: true},
		"a wrong mode":                   {tls: TemporalTLS{Mode: "yes"}, want: []string{"temporal.tls.mode: must be auto, on or off"}},
		"off beside files":               {tls: TemporalTLS{Mode: tlsOff, CA: a.file}, want: []string{"temporal.tls.mode: off leaves no use for ca, cert, key and server_name"}},
		"an API key of two lines":        {apiKey: "a\nb", encrypted: true, want: []string{"temporal.api_key: must hold no spaces and nothing beyond ASCII"}},
		"a certificate without key":      {tls: TemporalTLS{Cert: cert}, encrypted: true, want: []string{"temporal.tls.key: goes with cert: set both or neither"}},
		"files that are not there":       {tls: TemporalTLS{CA: "/none/ca", Cert: "/none/cert", Key: key}, encrypted: true, want: []string{"temporal.tls.ca: open /none/ca: no such file or directory", "temporal.tls.cert: open /none/cert: no such file or directory"}},
		"a key that is not there":        {tls: TemporalTLS{Cert: cert, Key: "/none/key"}, encrypted: true, want: []string{"temporal.tls.key: open /none/key: no such file or directory"}},
		"a key of another certificate":   {tls: TemporalTLS{Cert: cert, Key: otherKey}, encrypted: true, want: []string{"temporal.tls.key: " + otherKey + " and " + cert + " are no pair: private key does not match public key"}},
		"a key in place of certificates": {tls: TemporalTLS{CA: key, Cert: key, Key: key}, encrypted: true, want: []string{"temporal.tls.ca: " + key + " holds no certificate in PEM", "temporal.tls.cert: " + key + " does not begin with a certificate in PEM"}},
		"a key that anybody may change":  {tls: TemporalTLS{Cert: cert, Key: loose}, encrypted: true, want: []string{"temporal.tls.key: " + loose + " may be written by anybody (mode 0602): chmod o-w"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			settings := Defaults().Temporal
			mode := settings.TLS.Mode
			settings.APIKey, settings.TLS = test.apiKey, test.tls
			if settings.TLS.Mode == "" {
				settings.TLS.Mode = mode
			}
			v := &validator{}
			v.temporal(settings)
			var got []string
			for _, p := range v.problems {
				got = append(got, p.Error())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			if settings.encrypted() != test.encrypted {
				t.Errorf("encrypted is %v", !test.encrypted)
			}
		})
	}
}
