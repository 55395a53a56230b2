package blob

import (
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
)

// Clients that send their files as slowly as they may keep no media of a request
// from the bucket, however many they are.
func TestSlowFilesKeepNoRequest(t *testing.T) {
	t.Parallel()
	server := countingStore(t, &held{})
	s := openTest(t, func(c *Config) { c.Endpoint, c.ClientMemory = server.URL, MinMemory })
	var slow sync.WaitGroup
	defer slow.Wait()
	for range 3 {
		file, client := io.Pipe()
		defer client.Close()
		slow.Go(func() {
			f, _ := mediagate.NewFile(noon, "image/gif")
			_, _ = s.PutFile(t.Context(), f, file, 20<<20)
		})
	}
	for s.clients.free.Figures().Held < MinMemory {
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	key, err := s.PutUpload(ctx, "acc_1", "1", strings.NewReader(gifFile), Limits{Media: "image", MaxBytes: 20 << 20})
	if err != nil || key != "uploads/acc_1/1" {
		t.Errorf("media of a request: %q, %v", key, err)
	}
}
