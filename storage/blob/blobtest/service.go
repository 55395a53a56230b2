package blobtest

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Refusing stands before a store and refuses what many services that speak S3 do
// not know: bodies in chunks of aws-chunked, trailers, and checksums other than the
// signature's.
func Refusing(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch status := refused(r); status {
		case 0:
			next.ServeHTTP(w, r)
		case http.StatusNotImplemented:
			refuse(w, status, "NotImplemented")
		default:
			refuse(w, status, "InvalidArgument")
		}
	})
}

func refused(r *http.Request) int {
	switch {
	case strings.Contains(r.Header.Get("Content-Encoding"), "aws-chunked"), strings.HasPrefix(r.Header.Get("X-Amz-Content-Sha256"), "STREAMING-"),
		r.Header.Get("X-Amz-Trailer") != "", len(r.Trailer) > 0, len(r.TransferEncoding) > 0:
		return http.StatusNotImplemented
	}
	for _, names := range []map[string][]string{r.Header, r.URL.Query()} {
		for name := range names {
			name = strings.ToLower(name)
			if strings.HasPrefix(name, "x-amz-checksum-") || name == "x-amz-sdk-checksum-algorithm" {
				return http.StatusBadRequest
			}
		}
	}
	return 0
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_, _ = w.Write([]byte("<Error><Code>" + code + "</Code><Message>refused</Message></Error>"))
}

// Main runs a package's tests in a process that trusts the certificate of
// httptest's servers. It is for TestMain.
func Main(m *testing.M) int {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	server.Close()
	dir, err := os.MkdirTemp("", "blobtest")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "ca.pem")
	if err := os.WriteFile(path, certificate, 0o600); err != nil {
		panic(err)
	}
	if err := os.Setenv("SSL_CERT_FILE", path); err != nil { // crypto/x509 reads it once
		panic(err)
	}
	return m.Run()
}
