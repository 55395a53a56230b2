package main

import (
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api"
	"github.com/mediagate/mediagate/cmd/mediagate/app"
)

const (
	videoPath = "/v1/videos/generations"
	imagePath = "/v1/images/generations"

	videoBody = `{"model": "alpha-v3", "prompt": "a red kite over a green hill, slowly turning in the evening wind", "duration": 5}`
	// openAIBody is the same video in OpenAI's form.
	openAIBody = `{"model": "alpha-v3", "prompt": "a red kite over a green hill, slowly turning in the evening wind", "seconds": "5"}`
	imageBody  = `{"model": "theta-image-turbo", "prompt": "a red kite over a green hill"}`

	// grant is more than any measurement spends.
	grant = 100_000_000 * mediagate.MicrosPerUnit
)

// gateway is one installation of the product as one account sees it. Each has a
// database and a Temporal namespace of its own, so that no measurement finds what
// another one left.
type gateway struct {
	*app.Gateway
	m      *machine
	url    string  // of its API
	tables *sql.DB // its database
	http   *http.Client
	secret string // of the account's key
	key    mediagate.Key
}

// channels are the accounts at the machine's vendor.
func (m *machine) channels(poll time.Duration) []app.Channel {
	one := func(provider, prefix string, models ...string) app.Channel {
		return app.Channel{
			Name: provider, Provider: provider, BaseURL: m.vendor.url + prefix, Credentials: map[string]string{"api_key": m.secret}, Models: models,
			Weight: 1, RequestsPerSecond: 10_000, PollInterval: app.PollInterval{Min: poll, Max: poll},
		}
	}
	return []app.Channel{
		one(channelKling, klingPrefix),
		one("dashscope", dashscopePrefix, "theta-image-turbo"), // the vendor here makes no videos
		one("vidu", "", "beta-q3-mix"),                         // no task comes so far
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
	c.AdminKey, c.EncryptionKeys = m.secret, []string{base64.StdEncoding.EncodeToString([]byte(m.secret[:32]))}
	c.ShutdownGrace = 5 * time.Second
	c.Outbound.Allow = []string{"127.0.0.0/8"}
	c.Channels = channels
	return c
}

// install makes and opens an installation and serves its API, for a rich account.
// Its worker is off.
func (m *machine) install(ctx context.Context, name string, channels []app.Channel) (*gateway, error) {
	g := &gateway{m: m, http: newHTTP()}
	m.later(g.http.CloseIdleConnections)
	if _, err := m.admin.ExecContext(ctx, "CREATE DATABASE bench_"+name); err != nil {
		return nil, fmt.Errorf("make the database: %w", err)
	}
	c := m.settings(name, channels)
	if err := c.Validate(); err != nil {
		return nil, err
	}
	var err error
	if g.tables, err = sql.Open("pgx", c.DatabaseURL); err != nil {
		return nil, err
	}
	m.closers = append(m.closers, g.tables.Close)
	if g.Gateway, err = app.Open(ctx, c, app.Options{Version: "bench", Logger: m.log, LocalCallbacks: true}); err != nil {
		return nil, err
	}
	m.later(g.Close)
	if err := g.Migrate(ctx); err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.APIListen)
	if err != nil {
		return nil, err
	}
	g.url = "http://" + listener.Addr().String()
	m.run(ctx, func(ctx context.Context) error { return g.Run(ctx, app.Roles{API: listener}) })
	return g.tenant(ctx)
}

// newHTTP keeps the connections of all clients open.
func newHTTP() *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}}
}

// tenant is the installation as another rich account sees it.
func (g *gateway) tenant(ctx context.Context) (*gateway, error) {
	return g.as(ctx, grant, mediagate.AccountLimits{}, mediagate.Key{Unlimited: true})
}

// as is the installation as a new account with that much money sees it.
func (g *gateway) as(ctx context.Context, money mediagate.Micros, limits mediagate.AccountLimits, key mediagate.Key) (*gateway, error) {
	account, err := g.Store.CreateAccount(ctx, mediagate.Account{Name: "bench", AccountLimits: limits})
	if err != nil {
		return nil, err
	}
	if money > 0 {
		if _, _, _, err := g.Store.Grant(ctx, account.ID, money, "bench"); err != nil {
			return nil, err
		}
	}
	key.AccountID = account.ID
	return g.with(ctx, key)
}

// with is the installation as the holder of a new key sees it.
func (g *gateway) with(ctx context.Context, key mediagate.Key) (*gateway, error) {
	other := *g
	secret, stored := api.NewKey()
	key.Name, other.secret = "bench", secret
	key.Prefix, key.LastFour = stored.Prefix, stored.LastFour
	var err error
	other.key, err = g.Store.CreateKey(ctx, key, stored.Hash)
	return &other, err
}

// temporalClient is a connection of its own to the installation's namespace.
func (g *gateway) temporalClient() (client.Client, error) {
	c, err := client.Dial(client.Options{
		HostPort: g.m.temporal.Addr(), Namespace: g.Config.Temporal.Namespace, Logger: log.NewStructuredLogger(g.m.log),
		ConnectionOptions: client.ConnectionOptions{GrpcCompression: &client.GrpcCompressionNone{}}, // as settings has it
	})
	if err == nil {
		g.m.later(c.Close)
	}
	return c, err
}

// openTasks are the tasks that have not ended.
const openTasks = "tasks WHERE ended_at IS NULL"

// count counts rows of the installation's database.
func (g *gateway) count(ctx context.Context, rows string) (int, error) {
	return count(ctx, g.tables, rows)
}

// submit sends a request for a task and returns the id of the task that was taken in.
func (g *gateway) submit(ctx context.Context, path, body string) (string, error) {
	answer, err := g.post(ctx, path, body, nil)
	if err != nil {
		return "", err
	}
	var ack struct {
		Data []struct {
			TaskID string `json:"task_id"`
		} `json:"data"`
	}
	if err := json.Unmarshal(answer, &ack); err != nil || len(ack.Data) != 1 {
		return "", fmt.Errorf("no acknowledgement: %.100s", answer)
	}
	return ack.Data[0].TaskID, nil
}

// submits is submit of a video, whose id nobody wants.
func (g *gateway) submits(ctx context.Context) error {
	_, err := g.post(ctx, videoPath, videoBody, nil)
	return err
}

// post sends a body.
func (g *gateway) post(ctx context.Context, path, body string, header http.Header) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, g.url+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if header != nil {
		req.Header = header
	}
	req.Header.Set("Authorization", "Bearer "+g.secret)
	return exchange(g.http, req)
}

// get reads a path.
func (g *gateway) get(ctx context.Context, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, g.url+path, http.NoBody)
	if err != nil {
		return nil, err
	}
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
