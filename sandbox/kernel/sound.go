package kernel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

const (
	fetchTimeout = 20 * time.Second
	fetchMax     = 50 << 20
	soundHead    = 16
)

// FetchSound downloads the sound at a customer's link to its end. It returns an error if the
// link does not lead to a valid sound of an accepted size.
func FetchSound(ctx context.Context, link string) error {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, link, nil)
	if err != nil {
		return errors.New("cannot be fetched")
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return errors.New("cannot be fetched")
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("cannot be fetched: HTTP %d", resp.StatusCode)
	}
	head := make([]byte, soundHead)
	n, _ := io.ReadFull(resp.Body, head)
	if !isSound(head[:n]) {
		return errors.New("is not a valid audio")
	}
	size, err := io.Copy(io.Discard, io.LimitReader(resp.Body, fetchMax))
	switch {
	case err != nil:
		return errors.New("cannot be fetched")
	case size == fetchMax:
		return errors.New("is too large")
	}
	return nil
}

// isSound reports whether a file with this beginning is an MP3, WAV, FLAC, Ogg or M4A file, by
// its magic number.
func isSound(head []byte) bool {
	at := func(off int, text string) bool {
		return len(head) >= off+len(text) && string(head[off:off+len(text)]) == text
	}
	mp3 := len(head) > 1 && head[0] == 0xff && head[1]&0xe6 == 0xe2
	return mp3 || at(0, "ID3") || at(0, "RIFF") && at(8, "WAVE") || at(0, "fLaC") || at(0, "OggS") || at(4, "ftypM4A")
}
