package outbound

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"syscall"
	"testing"
)

func TestDescribe(t *testing.T) {
	t.Parallel()
	const link = "https://files.example.com/a?Signature=s"
	for want, err := range map[string]error{
		"host not found":             &net.DNSError{Name: link, IsNotFound: true},
		"timeout":                    context.DeadlineExceeded,
		"given up":                   context.Canceled,
		"the answer broke off":       io.ErrUnexpectedEOF,
		"connection refused":         &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED},
		"connection reset":           syscall.ECONNRESET,
		"host unreachable":           syscall.EHOSTUNREACH,
		"host lookup failed":         unreached("host lookup failed", errors.New(link)),
		"TLS handshake failed":       errors.New("remote error: tls: handshake failure"),
		"the redirect leads nowhere": fmt.Errorf("failed to parse Location header %q", link),
		"the answer is not HTTP":     fmt.Errorf("malformed HTTP response %q", link),
		"connection failed":          errors.New(link),
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			if got := Describe(&url.Error{Op: "Get", URL: link, Err: err}); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}
