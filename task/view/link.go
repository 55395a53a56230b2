package view

import (
	"context"
	"time"

	"github.com/mediagate/mediagate"
)

// Links signs links to the files of tasks.
type Links struct {
	Sign func(ctx context.Context, r mediagate.Result, ttl time.Duration) (mediagate.Link, error)
	TTL  time.Duration
	Keep mediagate.Retention
	Now  func() time.Time
}

// Of returns links to the files of a completed task, in their order. No link outlives its file. If
// a file is not kept any more, its link has no URL, and ExpiresAt is the time up to which the file
// was to be kept. If the file was removed before that, ExpiresAt is now.
func (l Links) Of(ctx context.Context, t *mediagate.Task) ([]mediagate.Link, error) {
	if t.Status != mediagate.StatusCompleted {
		return nil, nil
	}
	links, now := make([]mediagate.Link, len(t.Results)), l.Now()
	until, ttl := l.Keep.FilesUntil(t), l.Life(t)
	for i, r := range t.Results {
		if r.Key == "" || ttl < time.Second {
			links[i].ExpiresAt = now
			if !until.IsZero() && until.Before(now) {
				links[i].ExpiresAt = until
			}
			continue
		}
		var err error
		if links[i], err = l.Sign(ctx, r, ttl); err != nil {
			return nil, err
		}
	}
	return links, nil
}

// Life returns how long a link works that is signed now. If that is less than a second, the file
// is gone or about to go, and no link is made.
func (l Links) Life(t *mediagate.Task) time.Duration {
	if until := l.Keep.FilesUntil(t); !until.IsZero() {
		return min(l.TTL, until.Sub(l.Now()))
	}
	return l.TTL
}
