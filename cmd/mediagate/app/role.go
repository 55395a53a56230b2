package app

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/all"
)

// Role says what a process does. It decides which secrets the process needs: a process that never
// uses a secret starts without it.
type Role uint8

// The roles.
const (
	RoleAll     Role = iota // API and worker
	RoleAPI                 // asks adapters about requests, for which a channel's options suffice, and makes speeches
	RoleWorker              // is not called by operators
	RoleMigrate             // calls no vendor
	RoleReplay              // reads a history from Temporal, and needs nothing else
)

// needsOperators reports whether operators call the process.
func (r Role) needsOperators() bool { return r == RoleAll || r == RoleAPI }

// needsCredentials reports whether the process needs the credentials of every channel.
func (r Role) needsCredentials() bool { return r == RoleAll || r == RoleWorker }

// openable returns the channels that the process can call. If it does not need credentials,
// channels without any are left out.
func (r Role) openable(channels []mediagate.Channel) []mediagate.Channel {
	if r.needsCredentials() {
		return channels
	}
	var list []mediagate.Channel
	for _, c := range channels {
		if len(c.Credentials) > 0 {
			list = append(list, c)
		}
	}
	return list
}

// warnOfMissingCredentials logs the channels whose speeches the API cannot make.
func (r Role) warnOfMissingCredentials(
	ctx context.Context, vendors all.Vendors, channels []mediagate.Channel, log *slog.Logger,
) {
	if r != RoleAPI {
		return
	}
	for _, c := range channels {
		if len(c.Credentials) > 0 {
			continue
		}
		adapter, _ := vendors.Adapter(c.Provider)
		for _, o := range adapter.Description.Operations {
			if o.Streams {
				log.WarnContext(
					ctx, "the API has no credentials of a channel that speaks, its speeches are refused", "channel", c.Name,
				)
				break
			}
		}
	}
}

// distribute moves the credentials in channel_credentials to their channels.
func (r *reader) distribute(c *Config) {
	if !r.known("channels") || !r.known("channel_credentials") {
		for i := range c.Channels { // the missing credentials may be there
			r.broken[fmt.Sprintf("channels[%d].credentials", i)] = true
		}
		return
	}
	byName := map[string]int{}
	for i := range c.Channels {
		byName[c.Channels[i].Name] = i
	}
	for _, name := range slices.Sorted(maps.Keys(c.ChannelCredentials)) {
		path := below("channel_credentials", name)
		i, ok := byName[name]
		switch {
		case !ok:
			r.report(path, "no channel has that name")
		case len(c.Channels[i].Credentials) > 0:
			r.report(path, "the channel has credentials of its own: set one of them")
		default:
			c.Channels[i].Credentials = c.ChannelCredentials[name]
		}
	}
}
