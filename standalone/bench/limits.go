package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api"
)

// ample is a limit that no measurement reaches.
const ample = 100_000_000

// measureLimits compares the submits and the reads of balances of an account and a
// key that have every limit there is with those of others that have none, in one
// installation, with the same number of clients.
func measureLimits(ctx context.Context, m *machine, o options) (_ []row, err error) {
	free, err := m.install(ctx, "limits", m.channels(time.Second, 1000))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, free.close()) }()
	limited, err := free.limited(ctx)
	if err != nil {
		return nil, err
	}
	rounds, length := 8, time.Second
	if o.quick {
		rounds = 4
	}
	submit := func(g *gateway) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := g.post(ctx, videoPath, []byte(videoBody), nil)
			return err
		}
	}
	balance := func(path string) func(*gateway) func(context.Context) error {
		return func(g *gateway) func(context.Context) error {
			return func(ctx context.Context) error {
				_, err := g.get(ctx, path)
				return err
			}
		}
	}
	var rows []row
	for _, part := range []struct {
		what    string
		clients int
		submits bool
		by      func(*gateway) func(context.Context) error
	}{
		{"submits with all limits on, 8 clients", 8, true, submit},
		{"submits with all limits on, 32 clients", 32, true, submit},
		{"reads of a key's balance, the same", readClients, false, balance("/v1/balance")},
		{"reads of an account's balance, the same", readClients, false, balance("/v1/user/balance")},
	} {
		slice := func(g *gateway) slice {
			return func(ctx context.Context) (n float64, err error) { // starts that wait would weigh on the next slice
				err = m.untilStarted(ctx, g, func() (int, error) {
					n, err = repeat(ctx, part.clients, length, part.by(g))
					if !part.submits {
						return 0, err
					}
					return int(n), err
				})
				return n, err
			}
		}
		for _, g := range []*gateway{free, limited} { // warm up
			if _, err := slice(g)(ctx); err != nil {
				return nil, err
			}
		}
		c, err := compare(ctx, rounds, o, part.what, slice(free), slice(limited))
		if err != nil {
			return nil, err
		}
		rows = append(rows, ratioRow(part.what, "without limits", c, 0.9))
	}
	return rows, nil
}

// limited is the same installation by the key of another account, both with all
// limits.
func (g *gateway) limited(ctx context.Context) (*gateway, error) {
	account, err := g.Store.CreateAccount(ctx, mediagate.Account{Name: "limited", AccountLimits: mediagate.AccountLimits{Rate: new(ample), InFlight: new(ample)}})
	if err != nil {
		return nil, err
	}
	if _, _, _, err := g.Store.Grant(ctx, account.ID, grant, "bench"); err != nil {
		return nil, err
	}
	secret, hash := api.NewKey()
	prefix, lastFour := api.KeyDisplay(secret)
	key, err := g.Store.CreateKey(ctx, mediagate.Key{
		AccountID: account.ID, Name: "limited", Prefix: prefix, LastFour: lastFour, Quota: grant, Rate: new(ample), InFlight: new(ample),
		Caps: mediagate.Caps{Day: new(grant), Week: new(grant), Month: new(grant)},
	}, hash)
	if err != nil {
		return nil, fmt.Errorf("make a limited key: %w", err)
	}
	return &gateway{Gateway: g.Gateway, url: g.url, http: g.http, secret: secret, key: key}, nil
}
