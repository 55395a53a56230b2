package blob

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/mediagate/mediagate/media/mediainfo"
)

// source reads the body of one file, and bounds, counts, hashes and probes it. It keeps its first
// error, because the error of an upload does not say whether the file or the store was at fault.
type source struct {
	ctx    context.Context
	r      io.Reader
	limits Limits
	read   int64
	hash   hash.Hash
	probe  *mediainfo.Probe
	head   []byte
	ended  bool // by EOF
	err    error
}

func newSource(ctx context.Context, r io.Reader, limits Limits) *source {
	return &source{ctx: ctx, r: r, limits: limits, hash: sha256.New()}
}

// sniff reads the beginning of the file, from which its type is detected.
func (s *source) sniff() ([]byte, error) {
	head := make([]byte, mediainfo.SniffLen)
	n := 0
	for n < len(head) {
		m, err := s.Read(head[n:])
		n += m
		if errors.Is(err, io.EOF) && s.ended {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	if n == 0 {
		return nil, unusable("the file is empty")
	}
	s.head = head[:n]
	return s.head, nil
}

// start passes the beginning of the file to the probe. The file may end there.
func (s *source) start(p *mediainfo.Probe) error {
	s.probe = p
	_, _ = p.Write(s.head) // never fails
	s.head = nil
	if s.ended {
		return s.checkProbe()
	}
	return nil
}

// checkProbe returns the probe's fault with a file that has ended, so that its upload fails.
func (s *source) checkProbe() error {
	if fault := s.probe.Fault(); fault != nil {
		s.err = unusable("the file " + fault.Error())
	}
	return s.err
}

// Read implements io.Reader.
func (s *source) Read(p []byte) (int, error) {
	switch {
	case s.err != nil:
		return 0, s.err
	case s.ended:
		return 0, io.EOF
	case s.ctx.Err() != nil:
		return 0, s.fail(s.ctx.Err())
	}
	n, err := s.r.Read(p)
	s.read += int64(n)
	if s.limits.MaxBytes > 0 && s.read > s.limits.MaxBytes {
		s.err = unusable(fmt.Sprintf("the file is larger than %d bytes", s.limits.MaxBytes))
		return 0, s.err
	}
	_, _ = s.hash.Write(p[:n]) // never fails
	if s.probe != nil {
		_, _ = s.probe.Write(p[:n])
	}
	if n > 0 && s.limits.Progress != nil {
		s.limits.Progress(s.read)
	}
	switch {
	case err == io.EOF:
		s.ended = true
		if s.probe != nil {
			if fault := s.checkProbe(); fault != nil {
				return 0, fault
			}
		}
	case err != nil:
		return n, s.fail(err)
	}
	return n, err
}

func (s *source) fail(err error) error {
	s.err = fmt.Errorf("reading the file: %w", err)
	return s.err
}

func (s *source) sum() string { return hex.EncodeToString(s.hash.Sum(nil)) }
