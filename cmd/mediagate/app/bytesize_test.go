package app_test

import (
	"strings"
	"testing"

	"github.com/mediagate/mediagate/cmd/mediagate/app"
)

func TestMirrorMemory(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	for text, want := range map[string]struct {
		size  app.ByteSize
		shown string // by config
	}{
		"": {256 * mib, "256MiB"}, "15MiB": {15 * mib, "15MiB"}, "16384KiB": {16 * mib, "16MiB"}, "2GiB": {2 << 30, "2GiB"},
		"20000000": {20_000_000, "20000000"}, `"1025KiB"`: {1025 << 10, ""}, "100MiB": {100 * mib, "100MiB"},
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			c, err := load(t, complete+"mirror_memory: "+text+"\n", nil, nil)
			if c.MirrorMemory != want.size {
				t.Errorf("read as %d, want %d", c.MirrorMemory, want.size)
			}
			if want.shown == "" {
				if err == nil || !strings.Contains(err.Error(), "mirror_memory: must be at least 15MiB") {
					t.Errorf("got %v, want a complaint about too little", err)
				}
				return
			}
			if err != nil {
				t.Error(err)
			}
			if shown, err := c.Print(); err != nil || !strings.Contains(shown, "mirror_memory: "+want.shown+"\n") && !strings.Contains(shown, `mirror_memory: "`+want.shown+"\"\n") {
				t.Errorf("printed as %v\n%s", err, shown)
			}
		})
	}
	for _, text := range []string{"256 MiB", "256MB", "1.5GiB", "-20MiB", "020MiB", "9223372036854775807GiB", "8589934592GiB", "true", "[1]", "lots", "1e9", "0x40000000"} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			_, err := load(t, complete+"mirror_memory: "+text+"\n", nil, nil)
			if got := lines(err); len(got) != 1 || !strings.HasPrefix(got[0], "mirror_memory: must be a size like 256MiB") {
				t.Errorf("got %q, want one complaint about the setting", got)
			}
		})
	}
}
