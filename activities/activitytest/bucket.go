package activitytest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mediagate/mediagate"
)

// Open reads an object.
func (b *Bucket) Open(_ context.Context, key string) (io.ReadCloser, int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	data, ok := b.objects[key]
	if !ok {
		return nil, 0, gone()
	}
	var body io.Reader = bytes.NewReader(data)
	if b.OnOpen != nil {
		body = b.OnOpen(key, body)
	}
	return io.NopCloser(body), int64(len(data)), nil
}

// Exists compares the size of an object.
func (b *Bucket) Exists(_ context.Context, r mediagate.Result) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if data, ok := b.objects[r.Key]; !ok || int64(len(data)) != r.Size {
		return gone()
	}
	return nil
}

// Verify compares the content of an object.
func (b *Bucket) Verify(ctx context.Context, r mediagate.Result) error {
	if err := b.Exists(ctx, r); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if sum := sha256.Sum256(b.objects[r.Key]); hex.EncodeToString(sum[:]) != r.SHA256 {
		return gone()
	}
	return nil
}

func gone() error {
	return &mediagate.Error{
		Kind: mediagate.KindGone, Code: string(mediagate.CodeResultUnavailable), Message: "the stored file is gone",
	}
}

// StoreManifest keeps a manifest among the objects.
func (b *Bucket) StoreManifest(_ context.Context, key string, manifest []byte) error {
	if b.OnManifest != nil {
		if err := b.OnManifest(key); err != nil {
			return err
		}
	}
	b.Write(key, string(manifest))
	return nil
}

// LoadManifest reads a manifest.
func (b *Bucket) LoadManifest(_ context.Context, key string) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	manifest, ok := b.objects[key]
	if !ok {
		return nil, missing("manifest", key)
	}
	return bytes.Clone(manifest), nil
}

// Write keeps an object with that content, as if another process had stored it now.
func (b *Bucket) Write(key, content string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.objects[key], b.stored[key] = []byte(content), b.now()
}

// Delete removes one object.
func (b *Bucket) Delete(_ context.Context, key string) error {
	if b.OnSweep != nil {
		if err := b.OnSweep(key); err != nil {
			return err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.objects, key)
	return nil
}

// DeletePrefix removes objects, except for those to keep.
func (b *Bucket) DeletePrefix(_ context.Context, prefix string, keep ...string) (int, error) {
	if b.OnSweep != nil {
		if err := b.OnSweep(prefix); err != nil {
			return 0, err
		}
	}
	return b.deleteBelow(prefix, func(key string) bool { return !slices.Contains(keep, key) }), nil
}

// DeleteOlder removes objects that Write stored more than olderThan ago.
func (b *Bucket) DeleteOlder(_ context.Context, prefix string, olderThan time.Duration) (int, error) {
	return b.deleteBelow(prefix, func(key string) bool {
		at, ok := b.stored[key]
		return ok && at.Before(b.now().Add(-olderThan))
	}), nil
}

// pageOf is how many objects Older looks at. It is small, so that tests see several pages.
const pageOf = 3

// Older lists objects that Write stored more than olderThan ago.
func (b *Bucket) Older(
	_ context.Context, prefix, after string, olderThan time.Duration,
) (keys []string, last string, more bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	below := slices.DeleteFunc(
		slices.Sorted(maps.Keys(b.objects)), func(key string) bool { return !strings.HasPrefix(key, prefix) || key <= after },
	)
	more, last = len(below) > pageOf, after
	for _, key := range below[:min(pageOf, len(below))] {
		if last = key; b.stored[key].Before(b.now().Add(-olderThan)) {
			keys = append(keys, key)
		}
	}
	return keys, last, more, nil
}

// DeleteAll removes objects.
func (b *Bucket) DeleteAll(ctx context.Context, keys []string) error {
	for _, key := range keys {
		if err := b.Delete(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

func (b *Bucket) deleteBelow(prefix string, goes func(key string) bool) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := len(b.objects)
	maps.DeleteFunc(b.objects, func(key string, _ []byte) bool { return strings.HasPrefix(key, prefix) && goes(key) })
	return before - len(b.objects)
}
