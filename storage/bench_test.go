package storage_test

import (
	"crypto/sha256"
	"fmt"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/storage"
	"github.com/mediagate/mediagate/storage/pgtest"
)

// spender is a store on PostgreSQL with one account and one key.
type spender struct {
	*storage.Store
	account, key string
	hash         [32]byte
	tasks        atomic.Int64
}

func newSpender(b *testing.B, url string) *spender {
	b.Helper()
	s, err := storage.OpenPostgres(b.Context(), url, storage.Config{MaxOpenConns: 16})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	account, err := s.CreateAccount(b.Context(), mediagate.Account{Name: "one"})
	if err != nil {
		b.Fatal(err)
	}
	if _, _, _, err := s.Grant(b.Context(), account.ID, mediagate.Micros(1e15), "opening"); err != nil {
		b.Fatal(err)
	}
	hash := sha256.Sum256([]byte("one"))
	key, err := s.CreateKey(b.Context(), mediagate.Key{AccountID: account.ID, Unlimited: true, Models: []string{"alpha-v3"}}, hash)
	if err != nil {
		b.Fatal(err)
	}
	return &spender{Store: s, account: account.ID, key: key.ID, hash: hash}
}

// draft is a task that nobody submitted yet.
func (p *spender) draft() mediagate.NewTask {
	id, now := fmt.Sprintf("task_%08d", p.tasks.Add(1)), time.Now()
	return mediagate.NewTask{
		Task: mediagate.Task{
			ID: id, AccountID: p.account, KeyID: p.key, Model: "alpha-v3", Type: mediagate.TypeVideo,
			Params: []byte(`{"prompt": "a  cat", "duration": 5.0}`), RequestID: "req_1",
			Plan: mediagate.Plan{
				Routes:   []mediagate.Route{{Provider: "kling", Upstream: "kling-v3", Operation: "text2video"}},
				Expected: 90 * time.Second, Timeout: 2 * time.Hour, OnUnknown: mediagate.OnUnknownPark, Media: "video", MaxBytes: 1 << 30,
			},
			Charges: []mediagate.Charge{{Item: "alpha-v3 std", Unit: mediagate.UnitSecond, Quantity: 1, UnitPrice: 1}}, Hold: 1,
			CreatedAt: now, DeadlineAt: now.Add(2 * time.Hour),
		},
		IdempotencyKey: id, Path: "/v1/videos/generations", BodySHA256: p.hash,
	}
}

// The read that clients make most.
func BenchmarkTask(b *testing.B) {
	p := newSpender(b, pgtest.New(b))
	n := p.draft()
	if _, _, err := p.Submit(b.Context(), n); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Task(b.Context(), n.Task.AccountID, n.Task.ID); err != nil {
			b.Fatal(err)
		}
	}
}

// What each request begins with.
func BenchmarkKeyByHash(b *testing.B) {
	p := newSpender(b, pgtest.New(b))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := p.KeyByHash(b.Context(), p.hash); err != nil {
			b.Fatal(err)
		}
	}
}

// What a submit of a key and an account with rates costs beside.
func BenchmarkTakeRates(b *testing.B) {
	for name, limits := range map[string][]mediagate.RateLimit{
		"one": {{Of: "key_a", PerMinute: 100_000_000}}, "two": {{Of: "key_a", PerMinute: 100_000_000}, {Of: "acc_a", PerMinute: 100_000_000}},
	} {
		for _, width := range []int{1, 16} {
			b.Run(fmt.Sprintf("%s/%d at once", name, width), func(b *testing.B) {
				url, trips := distant(b, pgtest.New(b), 0)
				p := newSpender(b, url)
				before := trips.Load()
				var left atomic.Int64
				left.Store(int64(b.N))
				b.ResetTimer()
				var group sync.WaitGroup
				for range width {
					group.Go(func() {
						for left.Add(-1) >= 0 {
							if _, admitted, err := p.TakeRates(b.Context(), limits); err != nil || !admitted {
								b.Errorf("%t, %v", admitted, err)
								return
							}
						}
					})
				}
				group.Wait()
				b.ReportMetric(float64(trips.Load()-before)/float64(b.N), "trips/op")
			})
		}
	}
}

// Submits of one account and key, one after the other and many at once; beside the
// server, and a millisecond away from it, as a database on another machine may be.
func BenchmarkSubmit(b *testing.B) {
	for _, away := range []time.Duration{0, time.Millisecond} {
		for _, width := range []int{1, 16} {
			b.Run(fmt.Sprintf("%v away/%d at once", away, width), func(b *testing.B) {
				url, trips := distant(b, pgtest.New(b), away)
				p := newSpender(b, url)
				before := trips.Load()
				var left atomic.Int64
				left.Store(int64(b.N))
				b.ResetTimer()
				var group sync.WaitGroup
				for range width {
					group.Go(func() {
						for left.Add(-1) >= 0 {
							if _, _, err := p.Submit(b.Context(), p.draft()); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				group.Wait()
				b.ReportMetric(float64(trips.Load()-before)/float64(b.N), "trips/op")
			})
		}
	}
}

// distant is the way to a server that answers that much later, and the number
// of messages that it was sent: each waits for an answer.
func distant(b *testing.B, server string, away time.Duration) (address string, trips *atomic.Int64) {
	b.Helper()
	u, err := url.Parse(server)
	if err != nil {
		b.Fatal(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(b.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = listener.Close() })
	to := u.Host
	u.Host = listener.Addr().String()
	trips = &atomic.Int64{}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := (&net.Dialer{}).Dial("tcp", to)
			if err != nil {
				_ = client.Close()
				return
			}
			go forward(server, client, away, trips)
			go forward(client, server, 0, &atomic.Int64{})
		}
	}()
	return u.String(), trips
}

func forward(to, from net.Conn, later time.Duration, messages *atomic.Int64) {
	defer to.Close()
	buffer := make([]byte, 1<<16)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		messages.Add(1)
		time.Sleep(later)
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}
