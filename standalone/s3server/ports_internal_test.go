package s3server

import (
	"net"
	"strings"
	"testing"

	"github.com/mediagate/mediagate/internal/freeport"
)

// TestPortIsTakenMeanwhile listens on the port before the server does. The error must tell this
// case from others, so that Start tries another port.
func TestPortIsTakenMeanwhile(t *testing.T) {
	tries := 0
	s, err := freeport.Serve("127.0.0.1:0", func(p freeport.Port) (*Server, error) {
		if tries++; tries == 1 {
			l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", p.Addr())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = l.Close() })
		}
		s, err := startOn(t.Context(), Config{Dir: t.TempDir(), AccessKey: "test-access", SecretKey: "test-secret"}, p)
		if tries == 1 && (err == nil || !freeport.Taken(err) || !strings.Contains(err.Error(), p.Addr())) {
			t.Errorf("the port was taken: %v", err)
		}
		return s, err
	})
	if err != nil || tries != 2 {
		t.Fatalf("%d tries: %v", tries, err)
	}
	if err := s.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}
