package sandbox

import (
	"log/slog"
	"strings"
	"time"

	"github.com/mediagate/mediagate/sandbox/acedata"
	"github.com/mediagate/mediagate/sandbox/dashscope"
	"github.com/mediagate/mediagate/sandbox/fal"
	"github.com/mediagate/mediagate/sandbox/gemini"
	"github.com/mediagate/mediagate/sandbox/kernel"
	"github.com/mediagate/mediagate/sandbox/kling"
	"github.com/mediagate/mediagate/sandbox/midjourney"
	"github.com/mediagate/mediagate/sandbox/minimax"
	"github.com/mediagate/mediagate/sandbox/musicapi"
	"github.com/mediagate/mediagate/sandbox/openai"
	"github.com/mediagate/mediagate/sandbox/sunoapi"
	"github.com/mediagate/mediagate/sandbox/veo"
	"github.com/mediagate/mediagate/sandbox/vertex"
	"github.com/mediagate/mediagate/sandbox/vidu"
)

// vendors returns the vendors that the sandbox plays. A new vendor needs a folder and a line
// here.
func vendors() []kernel.Vendor {
	return []kernel.Vendor{
		kling.Vendor(),
		dashscope.Vendor(),
		minimax.Vendor(),
		gemini.Vendor(),
		vidu.Vendor(),
		vertex.Vendor(),
		veo.Vendor(),
		acedata.Vendor(),
		sunoapi.Vendor(),
		musicapi.Vendor(),
		midjourney.Vendor(),
		openai.Vendor(),
		fal.Vendor(),
	}
}

type (
	// Server plays the vendors.
	Server = kernel.Server
	// Account is one customer of a vendor.
	Account = kernel.Account
	// Channel is the configuration by which a gateway reaches a vendor here.
	Channel = kernel.Channel
)

// Config configures a Server.
type Config struct {
	Dir      string    // of the journal; one Server for each folder
	Accounts []Account // empty: DefaultAccounts
	Logger   *slog.Logger
	Now      func() time.Time // nil: time.Now
}

// New returns a Server that keeps its journal in cfg.Dir. It continues with the jobs that the
// folder already holds.
func New(cfg Config) (*Server, error) {
	return kernel.New(kernel.Config{
		Dir: cfg.Dir, Accounts: cfg.Accounts, Logger: cfg.Logger, Now: cfg.Now, Vendors: vendors(),
	})
}

// DefaultAccounts returns one account for each vendor, with fixed credentials, in the order of
// the table.
func DefaultAccounts() []Account {
	var accounts []Account
	for _, v := range vendors() {
		accounts = append(accounts, v.Account)
	}
	return accounts
}

// Channels returns, for each vendor in the order of the table, the channel that reaches it
// through the sandbox at the address.
func Channels(address string) []Channel {
	var channels []Channel
	for _, v := range vendors() {
		for name, value := range v.Channel.Credentials {
			v.Channel.Credentials[name] = strings.ReplaceAll(value, kernel.Address, address)
		}
		channels = append(channels, v.Channel)
	}
	return channels
}
