package outbound

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"

	"github.com/mediagate/mediagate"
)

// Describe explains in a fixed phrase why an exchange failed. The text of err holds addresses and
// URLs, some of them signed. The owner of the task must not see them, and logs should not keep
// them.
func Describe(err error) string {
	var (
		timeout interface{ Timeout() bool }
		dns     *net.DNSError
		verify  *tls.CertificateVerificationError
		host    x509.HostnameError
		record  tls.RecordHeaderError
		op      *net.OpError
		reach   *mediagate.Error
	)
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return "host not found"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "timeout"
	case errors.Is(err, context.Canceled):
		return "given up"
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "the answer broke off"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "connection reset"
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return "host unreachable"
	case errors.As(err, &verify), errors.As(err, &host):
		return "the certificate is not valid"
	case errors.As(err, &record), errors.Is(err, http.ErrSchemeMismatch),
		errors.As(err, &op) && op.Op == "remote error", // how crypto/tls reports an alert
		strings.Contains(err.Error(), "tls: "):
		return "TLS handshake failed"
	case errors.As(err, &reach) && reach.Kind == mediagate.KindUnreached:
		return reach.Message
	case strings.Contains(err.Error(), "Location header"):
		return "the redirect leads nowhere"
	case strings.Contains(err.Error(), "malformed"):
		return "the answer is not HTTP"
	default:
		return "connection failed"
	}
}
