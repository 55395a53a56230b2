package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api"
	"github.com/mediagate/mediagate/cmd/mediagate/app"
)

// gateway is one installation of the product, with a database and a Temporal
// namespace of its own, so that no measurement finds what another one left.
type gateway struct {
	*app.Gateway
	url     string // of its API, once it is served
	secret  string // of an unlimited key of a rich account
	key     mediagate.Key
	tables  *sql.DB // its database
	http    *http.Client
	closers []func() error
}

// grant is more than any measurement spends.
const grant = 100_000_000 * mediagate.MicrosPerUnit

// channels are the accounts at the machine's vendor.
func (m *machine) channels(poll time.Duration, perSecond float64) []app.Channel {
	pace := app.PollInterval{Min: poll, Max: poll}
	return []app.Channel{
		{
			Name: "kling", Provider: "kling", BaseURL: m.vendor.url + klingPrefix, Credentials: map[string]string{"api_key": m.secret},
			Weight: 1, RequestsPerSecond: perSecond, PollInterval: pace,
		},
		{
			Name: "dashscope", Provider: "dashscope", BaseURL: m.vendor.url + dashscopePrefix, Credentials: map[string]string{"api_key": m.secret},
			Models: []string{"theta-image-turbo"}, // the vendor here makes no videos
			Weight: 1, RequestsPerSecond: perSecond, PollInterval: pace,
		},
	}
}

// settings are those of an installation called name.
func (m *machine) settings(name string, channels []app.Channel) app.Config {
	c := app.Defaults()
	c.AccountDefaults = app.AccountDefaults{} // they would refuse what is measured
	c.DatabaseURL = m.postgres.URL("bench_" + name)
	c.Temporal.Address, c.Temporal.Namespace, c.Temporal.Compression = m.temporal.Addr(), "bench-"+name, false
	c.S3 = app.S3{
		Endpoint: m.s3.Endpoint, Region: "us-east-1", Bucket: "bench-" + name, AccessKeyID: "bench", SecretAccessKey: m.secret, PathStyle: true,
	}
	c.APIListen, c.OpsListen = "127.0.0.1:0", "127.0.0.1:0"
	c.AdminKey, c.EncryptionKeys = m.secret, []string{randomKey()}
	c.ShutdownGrace = 5 * time.Second
	c.Outbound.Allow = []string{"127.0.0.0/8"}
	c.Channels = channels
	return c
}

// install makes and opens an installation and serves its API. Its worker is
// off.
func (m *machine) install(ctx context.Context, name string, channels []app.Channel) (g *gateway, err error) {
	g = &gateway{http: newHTTP()}
	g.closers = append(g.closers, func() error { g.http.CloseIdleConnections(); return nil })
	defer func() {
		if err != nil {
			err = errors.Join(err, g.close())
		}
	}()
	if _, err := m.admin.ExecContext(ctx, "CREATE DATABASE bench_"+name); err != nil {
		return g, fmt.Errorf("make the database: %w", err)
	}
	if g.tables, err = sql.Open("pgx", m.postgres.URL("bench_"+name)); err != nil {
		return g, err
	}
	g.closers = append(g.closers, g.tables.Close)
	c := m.settings(name, channels)
	if err := c.Validate(); err != nil {
		return g, err
	}
	if g.Gateway, err = app.Open(ctx, c, app.Options{Version: "bench", Logger: m.log, LocalCallbacks: true}); err != nil {
		return g, err
	}
	g.closers = append(g.closers, func() error { g.Close(); return nil })
	if err := g.Migrate(ctx); err != nil {
		return g, err
	}
	if err := g.seed(ctx); err != nil {
		return g, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.APIListen)
	if err != nil {
		return g, err
	}
	g.url = "http://" + listener.Addr().String()
	g.run(ctx, func(ctx context.Context) error { return g.Run(ctx, app.Roles{API: listener}) })
	return g, nil
}

// newHTTP keeps the connections of all clients open.
func newHTTP() *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}}
}

// run keeps something running until the installation is closed, or the
// returned function is called.
func (g *gateway) run(ctx context.Context, serve func(context.Context) error) (stop func() error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan error, 1)
	go func() { done <- serve(ctx) }()
	stop = func() error {
		cancel()
		err := <-done
		done <- nil // a second stop has nothing to say
		if errors.Is(err, context.Canceled) {
			return nil
		}
		return err
	}
	g.closers = append(g.closers, stop)
	return stop
}

// work starts the worker.
func (g *gateway) work(ctx context.Context) (stop func() error) { return g.run(ctx, g.RunWorker) }

// tenant is the installation as another rich account sees it.
func (g *gateway) tenant(ctx context.Context) (*gateway, error) {
	other := &gateway{Gateway: g.Gateway, url: g.url, tables: g.tables, http: g.http}
	return other, other.seed(ctx)
}

func (g *gateway) seed(ctx context.Context) error {
	account, err := g.Store.CreateAccount(ctx, mediagate.Account{Name: "bench"})
	if err != nil {
		return err
	}
	if _, _, _, err := g.Store.Grant(ctx, account.ID, grant, "bench"); err != nil {
		return err
	}
	secret, hash := api.NewKey()
	prefix, lastFour := api.KeyDisplay(secret)
	g.secret = secret
	g.key, err = g.Store.CreateKey(ctx, mediagate.Key{AccountID: account.ID, Name: "bench", Unlimited: true, Prefix: prefix, LastFour: lastFour}, hash)
	return err
}

// temporalClient is a connection of its own to the installation's namespace.
func (m *machine) temporalClient(g *gateway) (client.Client, error) {
	c, err := client.Dial(client.Options{
		HostPort: m.temporal.Addr(), Namespace: g.Config.Temporal.Namespace, Logger: log.NewStructuredLogger(m.log),
		ConnectionOptions: client.ConnectionOptions{GrpcCompression: &client.GrpcCompressionNone{}}, // as settings has it
	})
	if err != nil {
		return nil, err
	}
	g.closers = append(g.closers, func() error { c.Close(); return nil })
	return c, nil
}

// open counts the tasks that have not ended.
func (g *gateway) open(ctx context.Context) (n int, err error) {
	err = g.tables.QueryRowContext(ctx, "SELECT count(*) FROM tasks WHERE ended_at IS NULL").Scan(&n)
	return n, err
}

func (g *gateway) close() error {
	var err error
	for len(g.closers) > 0 {
		last := len(g.closers) - 1
		err = errors.Join(err, g.closers[last]())
		g.closers = g.closers[:last]
	}
	return err
}

// post sends a submit and expects to be acknowledged.
func (g *gateway) post(ctx context.Context, path string, body []byte, header http.Header) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, g.url+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if header != nil {
		req.Header = header
	}
	return g.do(req)
}

// get reads a path.
func (g *gateway) get(ctx context.Context, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, g.url+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	return g.do(req)
}

func (g *gateway) do(req *http.Request) ([]byte, error) {
	req.Header.Set("Authorization", "Bearer "+g.secret)
	return exchange(g.http, req)
}

// exchange returns the body of a 200 or 201 and takes anything else for an error.
func exchange(c *http.Client, req *http.Request) ([]byte, error) {
	resp, err := c.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusCreated {
		err = fmt.Errorf("%s %s: %s: %.200s", req.Method, req.URL.Path, resp.Status, body)
	}
	return body, err
}

// acknowledged is the id of the task that was taken in.
func acknowledged(body []byte) (string, error) {
	var ack struct {
		Data []struct {
			TaskID string `json:"task_id"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &ack); err != nil || len(ack.Data) != 1 {
		return "", fmt.Errorf("no acknowledgement: %.100s", body)
	}
	return ack.Data[0].TaskID, nil
}
