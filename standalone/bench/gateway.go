package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"net"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api"
	"github.com/mediagate/mediagate/client"
	"github.com/mediagate/mediagate/cmd/mediagate/app"
)

var (
	video = client.Request{
		Model:    "alpha-v3",
		Endpoint: "/v1/videos/generations",
		Fields:   map[string]any{"prompt": "a red kite over a green hill", "duration": 5},
	}
	image = client.Request{
		Model:    "theta-image-turbo",
		Endpoint: "/v1/images/generations",
		Fields:   map[string]any{"prompt": "a red kite [[sandbox: duration=0s]]"}, // the vendor here takes no time anyway
	}

	// connections is the HTTP client of all API clients. It keeps connections open.
	connections = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}}
)

// gateway is one installation of the product. Each has its own database and Temporal namespace,
// so that no question is affected by an earlier one.
type gateway struct {
	*app.Gateway
	b      *bench
	url    string         // of its API
	client *client.Client // of an account without limits
}

// install creates and opens an installation and serves its API. It does not start the worker.
// The channels poll each job once in every interval poll.
func (b *bench) install(poll time.Duration) *gateway {
	name := "bench" + strings.ToLower(rand.Text()[:8])
	_, err := b.history.ExecContext(b.ctx, "CREATE DATABASE "+name)
	b.check(err)
	g := &gateway{b: b}
	c := b.settings(name)
	c.Channels = []app.Channel{
		b.channel("kling", klingPrefix, poll),
		b.channel("dashscope", dashscopePrefix, poll, image.Model), // the vendor here makes no videos
	}
	g.Gateway, err = app.Open(b.ctx, c, app.Options{Version: "bench", Logger: b.log, LocalCallbacks: true})
	b.check(err)
	b.Cleanup(g.Close)
	b.check(g.Migrate(b.ctx))
	listener, err := (&net.ListenConfig{}).Listen(b.ctx, "tcp", "127.0.0.1:0")
	b.check(err)
	g.url = "http://" + listener.Addr().String()
	b.serve(func(ctx context.Context) error { return g.Run(ctx, app.Roles{API: listener}) })
	g.client = g.customer()
	return g
}

func (b *bench) settings(name string) app.Config {
	c := app.Defaults()
	c.AccountDefaults = app.AccountDefaults{} // the defaults would refuse the load
	c.DatabaseURL = b.postgres.URL(name)
	c.Temporal.Address = b.temporal
	c.Temporal.Namespace = name
	c.Temporal.Compression = false
	c.S3.Endpoint = b.s3.Endpoint
	c.S3.Bucket = name
	c.S3.AccessKeyID = "bench"
	c.S3.SecretAccessKey = b.secret
	c.EncryptionKeys = []string{base64.StdEncoding.EncodeToString([]byte(b.secret[:32]))}
	c.ShutdownGrace = 5 * time.Second
	c.Outbound.Allow = []string{"127.0.0.0/8"}
	return c
}

// channel returns a channel with an account at the vendor.
func (b *bench) channel(provider, prefix string, poll time.Duration, models ...string) app.Channel {
	return app.Channel{
		Name:              provider,
		Provider:          provider,
		BaseURL:           b.vendor.url + prefix,
		Credentials:       map[string]string{"api_key": b.secret},
		Models:            models,
		Weight:            1,
		RequestsPerSecond: 10_000,
		PollInterval:      app.PollInterval{Min: poll, Max: poll},
	}
}

// serve runs a part of the gateway until stop is called.
func (b *bench) serve(run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(b.ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := run(ctx); ctx.Err() == nil {
			panic(err) // later measurements would mean nothing
		}
	}()
	stop = func() {
		cancel()
		<-done
	}
	b.Cleanup(stop)
	return stop
}

// customer creates an account with a large balance and no limits, and returns a client with its
// key.
func (g *gateway) customer() *client.Client {
	account, err := g.Store.CreateAccount(g.b.ctx, mediagate.Account{Name: "bench"})
	g.b.check(err)
	_, _, _, err = g.Store.Grant(g.b.ctx, account.ID, 100_000_000*mediagate.MicrosPerUnit, "bench")
	g.b.check(err)
	secret, stored := api.NewKey()
	key := mediagate.Key{
		AccountID: account.ID, Name: "bench", Unlimited: true, Prefix: stored.Prefix, LastFour: stored.LastFour,
	}
	_, err = g.Store.CreateKey(g.b.ctx, key, stored.Hash)
	g.b.check(err)
	return &client.Client{URL: g.url, Key: secret, HTTP: connections}
}

// submit returns a function that submits a request and ignores the task's id.
func submit(c *client.Client, r client.Request) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := c.Submit(ctx, r)
		return err
	}
}

// taskTimes holds the times of a task's events.
type taskTimes struct {
	job
	submitted, ended time.Time
}

// runFirstTasks submits the first task of each of this number of new accounts, half a second apart.
// When all tasks are completed, it returns their times.
func (g *gateway) runFirstTasks(accounts int) []taskTimes {
	tasks := make([]taskTimes, accounts)
	group, ctx := errgroup.WithContext(g.b.ctx)
	for i := range tasks {
		c := g.customer()
		group.Go(func() error {
			tasks[i].submitted = time.Now()
			done, err := c.Run(ctx, video, nil)
			if err != nil {
				return err
			}
			t, err := g.Store.TaskByID(ctx, done.ID) // the client's times are in whole seconds
			tasks[i].ended, tasks[i].job = t.EndedAt, g.b.vendor.job(done.ID)
			return err
		})
		g.b.pause(500 * time.Millisecond)
	}
	g.b.check(group.Wait())
	return tasks
}

// median returns the median over tasks of the duration that took returns.
func median(tasks []taskTimes, took func(taskTimes) time.Duration) time.Duration {
	all := make([]time.Duration, len(tasks))
	for i, l := range tasks {
		all[i] = took(l)
	}
	return quantile(all, 0.5)
}
