package activitytest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/channel"
	"github.com/mediagate/mediagate/media/mediainfo"
)

// Channels are the channels of a worker.
type Channels struct {
	mu   sync.Mutex
	list []channel.Channel
}

// Set replaces the channels.
func (c *Channels) Set(list ...channel.Channel) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = list
}

// Candidates returns the channels as the configured ones would be.
func (c *Channels) Candidates(
	model string, routes []mediagate.Route, job mediagate.Job, retired channel.Retired,
) []channel.Candidate {
	return channel.NewConfigured(c.All()).Candidates(model, routes, job, retired)
}

// Made reports whether the channel's account made the source.
func (c *Channels) Made(source *mediagate.Source, name string) bool {
	return channel.NewConfigured(c.All()).Made(source, name)
}

// Channel returns the channel of that name.
func (c *Channels) Channel(name string) (channel.Channel, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, channel := range c.list {
		if channel.Name == name {
			return channel, true
		}
	}
	return channel.Channel{}, false
}

// All returns the channels.
func (c *Channels) All() []channel.Channel {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.list)
}

// Fetcher opens files.
type Fetcher struct {
	// OnFetch opens a result of the channel, or media of a client, whose channel is empty.
	OnFetch func(ctx context.Context, url, channel string) (io.ReadCloser, int64, error)

	urls noted[string]
}

// URLs returns the addresses that were opened.
func (f *Fetcher) URLs() []string { return f.urls.all() }

// FetchMedia opens a client's file.
func (f *Fetcher) FetchMedia(ctx context.Context, url string) (io.ReadCloser, int64, error) {
	return f.FetchResult(ctx, url, "")
}

// FetchResult opens the file. By default each file holds its own address.
func (f *Fetcher) FetchResult(ctx context.Context, url, channel string) (io.ReadCloser, int64, error) {
	f.urls.add(url)
	if f.OnFetch != nil {
		return f.OnFetch(ctx, url, channel)
	}
	return io.NopCloser(strings.NewReader(url)), int64(len(url)), nil
}

// Bucket keeps objects.
type Bucket struct {
	// OnMirror may fail a copy before it begins.
	OnMirror func(key string) error
	// OnOpen may break the reading of an object.
	OnOpen func(key string, body io.Reader) io.Reader
	// OnManifest may fail to store a manifest.
	OnManifest func(key string) error
	// OnProbe may refuse the probe.
	OnProbe func() error
	// OnSweep may fail a removal below the prefix.
	OnSweep func(prefix string) error
	// Duration is what the files' own headers say, in seconds.
	Duration float64

	now     func() time.Time
	mu      sync.Mutex
	objects map[string][]byte
	stored  map[string]time.Time // when Write stored each object
	writes  noted[string]
	signed  noted[time.Duration]
}

func newBucket(now func() time.Time) *Bucket {
	return &Bucket{now: now, objects: map[string][]byte{}, stored: map[string]time.Time{}}
}

// Mirror reads the whole file and keeps it. If the content is media, it determines the type.
func (b *Bucket) Mirror(
	ctx context.Context, key string, open activities.Opener, limits activities.Limits,
) (mediagate.Result, error) {
	if b.OnMirror != nil {
		if err := b.OnMirror(key); err != nil {
			return mediagate.Result{}, err
		}
	}
	body, _, err := open(ctx)
	if err != nil {
		return mediagate.Result{}, err
	}
	defer body.Close()
	data, err := io.ReadAll(body)
	if err != nil {
		return mediagate.Result{}, mediagate.Errorf(mediagate.KindUnavailable, "the upload broke off: %w", err)
	}
	if limits.MaxBytes > 0 && int64(len(data)) > limits.MaxBytes {
		return mediagate.Result{}, mediagate.Errorf(mediagate.KindTooLarge, "the file is too large")
	}
	if limits.Progress != nil {
		limits.Progress(int64(len(data)))
	}
	b.keep(key, data)
	b.writes.add(key)
	sum := sha256.Sum256(data)
	mime := limits.Media + "/test"
	if f, _, ok := mediainfo.Detect(data); ok {
		mime = f.MIME
	}
	return mediagate.Result{
		Key: key, MimeType: mime, Size: int64(len(data)), SHA256: hex.EncodeToString(sum[:]), Duration: b.Duration,
	}, nil
}

// Sign makes a link to an object.
func (b *Bucket) Sign(_ context.Context, r mediagate.Result, ttl time.Duration) (mediagate.Link, error) {
	b.signed.add(ttl)
	return mediagate.Link{
		URL: "https://bucket.example.com/" + r.Key + "?signature=" + Secret, ExpiresAt: b.now().Add(ttl),
	}, nil
}

// Objects returns the keys in the bucket, in order.
func (b *Bucket) Objects() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return names(b.objects)
}

// Writes returns the keys that were written, with repetitions.
func (b *Bucket) Writes() []string { return b.writes.all() }

// Probe reports that the bucket works, unless OnProbe says otherwise.
func (b *Bucket) Probe(context.Context) error {
	if b.OnProbe != nil {
		return b.OnProbe()
	}
	return nil
}

// Put keeps an object, as a copy that comes late would.
func (b *Bucket) Put(key string) { b.keep(key, []byte(key)) }

func (b *Bucket) keep(key string, data []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.objects[key] = data
}

// AbortStale finds no unfinished uploads.
func (b *Bucket) AbortStale(context.Context, string, time.Duration) (int, error) { return 0, nil }

// Signed returns the lifetimes of the links that were made.
func (b *Bucket) Signed() []time.Duration { return b.signed.all() }

// Deliverer is the receiver of callbacks.
type Deliverer struct {
	// OnDeliver answers the nth attempt, from 1. By itself all succeed.
	OnDeliver func(n int) (mediagate.DeliveryResult, error)

	now    func() time.Time
	bodies noted[[]byte]
	times  noted[time.Time]
}

// Deliver receives a callback.
func (d *Deliverer) Deliver(
	_ context.Context, _ string, target mediagate.WebhookTarget,
) (mediagate.DeliveryResult, error) {
	d.times.add(d.now())
	n := d.bodies.add(bytes.Clone(target.Body))
	if d.OnDeliver != nil {
		return d.OnDeliver(n)
	}
	return mediagate.DeliveryResult{Outcome: mediagate.DeliveryDone, Status: 200}, nil
}

// Bodies returns what was received.
func (d *Deliverer) Bodies() [][]byte { return d.bodies.all() }

// Times returns when it was received.
func (d *Deliverer) Times() []time.Time { return d.times.all() }
