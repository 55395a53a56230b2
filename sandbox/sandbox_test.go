package sandbox_test

import (
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/mediagate/mediagate/sandbox"
	"github.com/mediagate/mediagate/sandbox/sandboxtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Each vendor's channel names credentials of the vendor's account, and its
// path is one that the vendor answers.
func TestChannels(t *testing.T) {
	t.Parallel()
	b := sandboxtest.Open(t)
	channels, accounts := sandbox.Channels(b.URL), sandbox.DefaultAccounts()
	if len(channels) != len(accounts) {
		t.Fatalf("%d channels, %d accounts", len(channels), len(accounts))
	}
	for i, c := range channels {
		if c.Provider != accounts[i].Provider || len(c.Credentials) == 0 {
			t.Errorf("channel %+v of account %+v", c, accounts[i])
		}
		for name, value := range c.Credentials {
			if value == "" || strings.ReplaceAll(accounts[i].Credentials[name], "{sandbox}", b.URL) != value {
				t.Errorf("%s: %s is not the account's", c.Provider, name)
			}
		}
		b.Call(t, "POST", c.Path+"/no-such-path", nil, nil)
		calls := b.Call(t, "GET", "/_sandbox/calls?provider="+c.Provider, nil, nil)
		if path := calls.Text("calls", 0, "path"); path != c.Path+"/no-such-path" {
			t.Errorf("%s: nothing answers below %s: %s", c.Provider, c.Path, calls.Raw)
		}
	}
	accounts[0].Credentials["api_key"] = "changed"
	if sandbox.DefaultAccounts()[0].Credentials["api_key"] == "changed" {
		t.Error("the accounts are shared between callers")
	}
}
