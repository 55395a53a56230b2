package app

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"unicode"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
)

// What TemporalTLS.Mode may be.
const (
	tlsAuto = "auto" // if another setting asks for it
	tlsOn   = "on"
	tlsOff  = "off"
)

// options returns the options of the program's one Temporal client. It reads the files that the
// settings name. Certificates are read again at each handshake.
func (t Temporal) options(logger *slog.Logger) (client.Options, error) {
	o := client.Options{
		HostPort: t.Address, Namespace: t.Namespace, Logger: log.NewStructuredLogger(slog.New(demotedLog{logger.Handler()})),
	}
	o.ConnectionOptions.GrpcCompression = &client.GrpcCompressionNone{} // answers use the same compression as requests
	if t.Compression {
		o.ConnectionOptions.GrpcCompression = &client.GrpcCompressionGzip{}
	}
	if t.APIKey != "" {
		o.Credentials = client.NewAPIKeyStaticCredentials(t.APIKey)
	}
	if !t.encrypted() {
		o.ConnectionOptions.TLSDisabled = true // the library would take an API key as a request for TLS
		return o, nil
	}
	config, problems := t.TLS.config(logger)
	var wrong []error
	for _, p := range problems {
		wrong = append(wrong, p)
	}
	o.ConnectionOptions.TLS = config
	return o, errors.Join(wrong...)
}

// Client returns a client that connects on first use. The functions set the program's own
// options.
func (t Temporal) Client(logger *slog.Logger, with ...func(*client.Options)) (client.Client, error) {
	o, err := t.options(logger)
	if err != nil {
		return nil, err
	}
	for _, change := range with {
		change(&o)
	}
	c, err := client.NewLazyClient(o)
	if err != nil {
		return nil, fmt.Errorf("temporal: %w", err)
	}
	return c, nil
}

// encrypted reports whether the connection to Temporal uses TLS.
func (t Temporal) encrypted() bool {
	switch t.TLS.Mode {
	case tlsOn:
		return true
	case tlsOff:
		return false
	default:
		return t.APIKey != "" || t.TLS.asked()
	}
}

// asked reports whether a setting is given that only TLS uses.
func (t TemporalTLS) asked() bool {
	return t.CA != "" || t.Cert != "" || t.Key != "" || t.ServerName != ""
}

// config returns the TLS configuration, or all problems of the settings.
func (t TemporalTLS) config(logger *slog.Logger) (*tls.Config, []problem) {
	v := &validator{}
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if t.CA != "" {
		text, err := readTextFile(t.CA, maxCertificates)
		c.RootCAs = x509.NewCertPool()
		switch {
		case err != nil:
			v.add("temporal.tls.ca", err.Error())
		case !c.RootCAs.AppendCertsFromPEM([]byte(text)):
			v.add("temporal.tls.ca", t.CA+" holds no certificate in PEM")
		}
	}
	switch {
	case (t.Cert == "") != (t.Key == ""):
		v.add("temporal.tls.key", "goes with cert: set both or neither")
	case t.Cert != "":
		own := &ownCertificate{cert: t.Cert, key: t.Key, log: logger}
		var wrong *problem
		if own.last, wrong = own.read(); wrong != nil {
			v.problems = append(v.problems, *wrong)
		}
		c.GetClientCertificate = own.get
	}
	return c, v.problems
}

// maxCertificates bounds a file of certificates, in bytes. It exceeds a file of all public
// authorities.
const maxCertificates = 4 << 20

// ownCertificate is our certificate for the server. It is read at each handshake, so that the
// next connection uses a renewed one.
type ownCertificate struct {
	cert, key string // files
	log       *slog.Logger

	mu   sync.Mutex
	last *tls.Certificate // the last one that could be read
}

// get reads the files, or returns the last certificate that could be read: a renewal replaces the
// files one after the other.
func (o *ownCertificate) get(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	fresh, wrong := o.read()
	if wrong == nil {
		o.last = fresh
		return fresh, nil
	}
	o.log.Warn("the certificate for Temporal cannot be read: the last readable one is used", "error", *wrong)
	return o.last, nil
}

func (o *ownCertificate) read() (*tls.Certificate, *problem) {
	at := func(path, text string) *problem { return &problem{path, text} }
	cert, err := readTextFile(o.cert, maxCertificates)
	if err != nil {
		return nil, at("temporal.tls.cert", err.Error())
	}
	block, _ := pem.Decode([]byte(cert))
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, at("temporal.tls.cert", o.cert+" does not begin with a certificate in PEM")
	}
	key, err := readKeyFile(o.key)
	if err != nil {
		return nil, at("temporal.tls.key", err.Error())
	}
	pair, err := tls.X509KeyPair([]byte(cert), []byte(key))
	if err != nil {
		return nil, at(
			"temporal.tls.key",
			fmt.Sprintf("%s and %s are no pair: %s", o.key, o.cert, strings.TrimPrefix(err.Error(), "tls: ")),
		)
	}
	return &pair, nil
}

// temporal validates the connection to Temporal.
func (v *validator) temporal(t Temporal) {
	v.hostPort("temporal.address", t.Address, false)
	v.check(t.Namespace != "", "temporal.namespace", "must not be empty")
	unsendable := func(r rune) bool { return unicode.IsSpace(r) || r < ' ' || r > '~' }
	v.check(
		!strings.ContainsFunc(t.APIKey, unsendable), "temporal.api_key", "must hold no spaces and nothing beyond ASCII",
	)
	v.check(!strings.ContainsFunc(
		t.TLS.ServerName, unsendable,
	) && (!strings.Contains(t.TLS.ServerName, ":") || net.ParseIP(t.TLS.ServerName) != nil),
		"temporal.tls.server_name", "must be a name alone, without a port")
	switch t.TLS.Mode {
	case tlsAuto, tlsOn:
		_, problems := t.TLS.config(slog.New(slog.DiscardHandler))
		v.problems = append(v.problems, problems...)
	case tlsOff:
		v.check(!t.TLS.asked(), "temporal.tls.mode", "%s leaves no use for ca, cert, key and server_name", tlsOff)
	default:
		v.add("temporal.tls.mode", "must be auto, on or off")
	}
}
