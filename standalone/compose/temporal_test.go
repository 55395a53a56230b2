package compose_test

import (
	"testing"

	"go.temporal.io/server/common/config"
)

// TestTemporalSpeaksNoHTTP checks that Temporal's HTTP API is off. It would execute a form that
// any web page sends, and a browser on the machine can reach containers by their addresses.
func TestTemporalSpeaksNoHTTP(t *testing.T) { // not parallel: Temporal's settings come from the environment
	for name, value := range load(t).Services["temporal"].Environment {
		t.Setenv(name, *value)
	}
	settings, err := config.Load(config.WithEmbedded())
	if err != nil {
		t.Fatal(err)
	}
	if rpc := settings.Services["frontend"].RPC; rpc.HTTPPort != 0 || rpc.GRPCPort != 7233 {
		t.Errorf("the frontend listens for HTTP on port %d, for gRPC on %d", rpc.HTTPPort, rpc.GRPCPort)
	}
}
