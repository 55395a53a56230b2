package mediagate_test

import (
	"fmt"
	"io"
	"testing"

	"github.com/mediagate/mediagate"
)

func TestTroubleOf(t *testing.T) {
	t.Parallel()
	for kind, want := range map[mediagate.Kind]mediagate.ParkReason{
		mediagate.KindCredentials: mediagate.ParkCredentials, mediagate.KindForbidden: mediagate.ParkCredentials,
		mediagate.KindFunds: mediagate.ParkFunds, mediagate.KindTransient: "", mediagate.KindThrottled: "",
		mediagate.KindUnreached: "", mediagate.KindInternal: "",
	} {
		if got := mediagate.TroubleOf(fmt.Errorf("asked: %w", &mediagate.Error{Kind: kind})); got != want {
			t.Errorf("%s: %q, want %q", kind, got, want)
		}
	}
	for _, code := range []mediagate.ParkReason{mediagate.ParkChannelMissing, mediagate.ParkJobLost} {
		if got := mediagate.TroubleOf(&mediagate.Error{Kind: mediagate.KindUnreached, Code: string(code)}); got != code {
			t.Errorf("%s: %q", code, got)
		}
	}
	if got := mediagate.TroubleOf(io.EOF); got != "" {
		t.Errorf("a foreign error: %q", got)
	}
}
