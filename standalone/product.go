package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api"
	"github.com/mediagate/mediagate/cmd/mediagate/app"
	"github.com/mediagate/mediagate/console"
	"github.com/mediagate/mediagate/providers/all"
	"github.com/mediagate/mediagate/sandbox"
	"github.com/mediagate/mediagate/standalone/datadir"
	"github.com/mediagate/mediagate/standalone/temporalserver"
	"github.com/mediagate/mediagate/storage"
	"github.com/mediagate/mediagate/storage/sqlite"
)

// The account that the first start creates.
const (
	demoAccount   = "demo"
	demoGroup     = "default"
	demoGrant     = 1000 * mediagate.MicrosPerUnit
	demoReference = "first start"
)

// productGrace is how long calls in progress may take to end when the program stops. It fits
// into stopTimeout with the reserve of each server below in the stack.
const productGrace = 10 * time.Second

// startProduct starts the product on the embedded servers: the database, the API and the worker.
// The first start creates the account demo. startProduct adds to announced the URLs of the API,
// the admin API and the health server, the key, the admin key and the links of the console.
func startProduct(
	ctx context.Context, running *stack, dir *datadir.Dir, secrets datadir.Secrets, opts options,
	announced *announcement,
) error {
	src := productSources(secrets, opts, announced)
	c, err := app.Load(src)
	if err != nil {
		return err
	}
	logger := app.NewLogger(c, os.Stderr)
	app.SetLogger(logger)
	o := app.Options{Version: version, Logger: logger, LocalCallbacks: true, Sources: &src}
	if c.DatabaseURL == "" {
		o.OpenStore = func(ctx context.Context, sc storage.Config) (*storage.Store, error) {
			return sqlite.OpenStore(ctx, dir.Path("mediagate.db"), sc)
		}
	}
	g, err := app.Open(ctx, c, o)
	if err != nil {
		return err
	}
	if err := g.Migrate(ctx); err != nil {
		g.Close()
		return err
	}
	if err := markRestored(ctx, g, opts.restoredTo); err != nil { // before the worker runs
		g.Close()
		return err
	}
	if err := g.Reseal(ctx); err != nil {
		logger.ErrorContext(ctx, "webhook secrets cannot be sealed anew", "error", err)
	}
	if announced.Key, err = createDemoAccount(ctx, g, dir, secrets); err != nil {
		g.Close()
		return fmt.Errorf("make the account %s: %w", demoAccount, err)
	}
	roles, err := c.Listen(ctx, true, true)
	if err != nil {
		g.Close()
		return err
	}
	announced.API = "http://" + reachable(roles.API.Addr().String())
	if roles.Admin != nil {
		announced.Admin = "http://" + reachable(roles.Admin.Addr().String())
	}
	announced.Ops = "http://" + reachable(roles.Ops.Addr().String())
	announced.AdminKey = c.AdminKey
	if console.Files() != nil {
		if err := makeLinks(ctx, g.Store, announced); err != nil {
			g.Close()
			return fmt.Errorf("make the links of the console: %w", err)
		}
	}

	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() {
		err := g.Run(serving, roles)
		if serving.Err() == nil {
			running.fail("product", firstErr(err, errors.New("it stopped by itself")))
		}
		ended <- err
	}()
	running.push("product", func(ctx context.Context) error {
		stop()
		defer g.Close()
		select {
		case err := <-ended:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	return nil
}

// makeLinks creates the links with which the account and the operator sign in at the console. If
// the account's key no longer exists, its link is the plain address of the console.
func makeLinks(ctx context.Context, store *storage.Store, announced *announcement) error {
	link := func(at string, of mediagate.Session) (string, error) {
		token, hash := api.NewSessionToken()
		of.Hash = hash
		return at + "/console#link=" + token, store.AddLink(ctx, of, api.SignInLinkLife)
	}
	announced.Console = announced.API + "/console"
	key, _, err := store.KeyByHash(ctx, api.HashKey(announced.Key))
	if err == nil {
		announced.Console, err = link(announced.API, mediagate.Session{KeyID: key.ID})
	}
	if err != nil && !mediagate.Is(err, mediagate.KindNotFound) {
		return err
	}
	announced.Operators, err = link(cmp.Or(announced.Admin, announced.API),
		mediagate.Session{OperatorHash: api.HashKey(announced.AdminKey)})
	return err
}

// markRestored marks the tasks of a restored database, whose latest attempts the backup may lack
// (D17).
func markRestored(ctx context.Context, g *app.Gateway, to time.Time) error {
	if to.IsZero() {
		return nil
	}
	notedAt, err := g.Store.NoteRestore(ctx, to)
	for marked := restoreBatch; err == nil && marked == restoreBatch; {
		marked, err = g.Store.MarkRestored(ctx, notedAt, restoreBatch)
	}
	return err
}

// restoreBatch is how many tasks are marked at once.
const restoreBatch = 200

func firstErr(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}

// productSources returns the sources of the settings. The addresses and keys of the embedded
// servers are the defaults. The settings file, the environment and the given flags override
// them.
func productSources(secrets datadir.Secrets, opts options, announced *announcement) app.Sources {
	base := app.Defaults()
	base.AccountDefaults = app.AccountDefaults{} // the program has one account, of its own user
	base.Temporal.Address, base.Temporal.Namespace = announced.Temporal, temporalserver.DefaultNamespace
	base.Temporal.Compression = false // all traffic stays on this machine
	base.Temporal.UIURL = announced.UI
	base.S3 = app.S3{
		Endpoint: announced.S3.Endpoint, Region: announced.S3.Region, Bucket: announced.S3.Bucket,
		AccessKeyID: announced.S3.AccessKeyID, SecretAccessKey: announced.S3.SecretAccessKey, PathStyle: true,
	}
	base.APIListen, base.OpsListen = opts.api, opts.ops
	base.AdminKey = secrets.AdminKey
	base.EncryptionKeys = []string{secrets.EncryptionKey}
	base.ShutdownGrace = productGrace
	base.ParkRetry = 20 * time.Second // a person may be watching
	base.Outbound.Allow = []string{"127.0.0.0/8", "::1/128"}
	base.Channels = sandboxChannels(announced.Sandbox)
	return app.Sources{
		Base: base, File: opts.config, Env: os.Environ(), Args: opts.settings, Dir: opts.startedIn, Embedded: true,
	}
}

// sandboxChannels returns a channel for each vendor that the sandbox plays. It leaves out
// vendors without an adapter, and fal, because no built-in model has a route to it.
func sandboxChannels(url string) []app.Channel {
	var channels []app.Channel
	for _, c := range sandbox.Channels(url) {
		if c.Provider == "fal" || !slices.Contains(all.Builtin().Names(), c.Provider) {
			continue
		}
		channels = append(channels, app.Channel{
			Name: "sandbox-" + c.Provider, Provider: c.Provider, BaseURL: url + c.Path,
			Credentials: c.Credentials, Weight: 1, RequestsPerSecond: 50,
			PollInterval: app.PollInterval{Min: 500 * time.Millisecond, Max: 2 * time.Second},
		})
	}
	return channels
}

// createDemoAccount creates the account, its grant and its key, once, and returns the key. If an earlier
// start died in between, createDemoAccount completes its work.
func createDemoAccount(ctx context.Context, g *app.Gateway, dir *datadir.Dir, secrets datadir.Secrets) (string, error) {
	if secrets.Key != "" {
		return secrets.Key, nil
	}
	account, err := findOrCreateDemo(ctx, g.Store)
	if err != nil {
		return "", err
	}
	if _, _, _, err := g.Store.Grant(ctx, account.ID, demoGrant, demoReference); err != nil {
		return "", err
	}
	secret, stored := api.NewKey()
	if _, err := g.Store.CreateKey(ctx, mediagate.Key{
		AccountID: account.ID, Name: demoAccount, Unlimited: true,
		Prefix: stored.Prefix, LastFour: stored.LastFour,
	}, stored.Hash); err != nil {
		return "", err
	}
	return secret, dir.SetKey(secret)
}

// findOrCreateDemo returns the account demo. It creates the account if no earlier start has.
func findOrCreateDemo(ctx context.Context, store *storage.Store) (mediagate.Account, error) {
	for after := ""; ; {
		accounts, more, err := store.Accounts(ctx, "", after, 100)
		if err != nil {
			return mediagate.Account{}, err
		}
		for _, a := range accounts {
			if a.Name == demoAccount {
				return a, nil
			}
			after = a.ID
		}
		if !more {
			return store.CreateAccount(ctx, mediagate.Account{Name: demoAccount, Group: demoGroup})
		}
	}
}
