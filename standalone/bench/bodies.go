package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api"
	"github.com/mediagate/mediagate/cmd/mediagate/app"
)

const (
	bodyClients = 64
	mostMemory  = 400 << 20 // of the API process, at its peak
	mostDelay   = 3.0       // times what another key's requests take undisturbed
)

// crowd is how the clients with the worst bodies come: with one key between
// them, or with one each.
type crowd struct {
	what string
	keys int
}

// measureBodies lets 64 clients without money send the worst bodies that are
// allowed to an API process, as fast as they can, and measures what that does
// to its memory and to the small requests of another account.
func measureBodies(ctx context.Context, m *machine, o options) (_ []row, err error) {
	g, err := m.install(ctx, "bodies", m.channels(time.Second, 1000))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	rounds, length := 5, 4*time.Second
	if o.quick {
		rounds, length = 2, 2*time.Second
	}
	var rows []row
	for _, c := range []crowd{{"one key", 1}, {"a key each", bodyClients}} {
		found, err := g.measureCrowd(ctx, c, rounds, length, o)
		if err != nil {
			return nil, err
		}
		rows = append(rows, found...)
	}
	return rows, nil
}

func (g *gateway) measureCrowd(ctx context.Context, c crowd, rounds int, length time.Duration, o options) (_ []row, err error) {
	keys, err := g.poorKeys(ctx, c)
	if err != nil {
		return nil, err
	}
	p, err := startProcess(ctx, o, "api", g.Config)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	var address string
	if err := p.out.Decode(&address); err != nil {
		return nil, fmt.Errorf("the API process does not serve: %w", err)
	}
	// The other key and the crowd share no connections.
	other := &gateway{Gateway: g.Gateway, url: address, secret: g.secret, http: newHTTP()}
	defer other.http.CloseIdleConnections()
	if _, err := other.latencies(ctx, time.Second); err != nil {
		return nil, err
	}
	var ratios []float64
	for n := range rounds {
		alone, err := other.latencies(ctx, length)
		if err != nil {
			return nil, err
		}
		among, answers, err := other.among(ctx, target{address, keys}, o, length)
		if err != nil {
			return nil, err
		}
		if err := pause(ctx, breath); err != nil {
			return nil, err
		}
		ratios = append(ratios, float64(quantile(among, 0.99))/float64(quantile(alone, 0.99)))
		_, _ = fmt.Fprintf(o.verbose, "bench:   bodies of %s: round %d: p99 %s alone of %d, %s among of %d; p50 %s and %s; the crowd's answers %v\n", c.what, n+1,
			quantile(alone, 0.99), len(alone), quantile(among, 0.99), len(among), quantile(alone, 0.5), quantile(among, 0.5), answers)
	}
	peak, err := peakMemory(p.cmd.Process.Pid)
	if err != nil {
		return nil, err
	}
	delay := quantile(ratios, 0.5)
	what := fmt.Sprintf("%d clients with the worst bodies, %s", bodyClients, c.what)
	return []row{
		{
			what: "p99 of another key among " + what, floor: "the same without them",
			value: summary(ratios), aim: fmt.Sprintf("≤ %.2f", mostDelay), met: delay <= mostDelay,
		},
		{
			what: "memory of the API among " + what, floor: "resident, at its peak",
			value: fmt.Sprintf("%d MiB", peak>>20), aim: fmt.Sprintf("≤ %d MiB", mostMemory>>20), met: peak <= mostMemory,
		},
	}, nil
}

// poorKeys makes the crowd's keys, of an account without money.
func (g *gateway) poorKeys(ctx context.Context, c crowd) ([]string, error) {
	account, err := g.Store.CreateAccount(ctx, mediagate.Account{Name: "poor, " + c.what})
	if err != nil {
		return nil, err
	}
	keys := make([]string, c.keys)
	for i := range keys {
		secret, hash := api.NewKey()
		prefix, lastFour := api.KeyDisplay(secret)
		keys[i] = secret
		if _, err := g.Store.CreateKey(ctx, mediagate.Key{
			AccountID: account.ID, Name: strconv.Itoa(i), Unlimited: true, Prefix: prefix, LastFour: lastFour,
		}, hash); err != nil {
			return nil, err
		}
	}
	return keys, nil
}

// latencies is how long quotes of one client take, one after the other, for a
// time.
func (g *gateway) latencies(ctx context.Context, length time.Duration) (taken []time.Duration, err error) {
	body := []byte(`{"endpoint":"` + videoPath + `",` + videoBody[1:])
	for end := time.Now().Add(length); time.Now().Before(end); {
		began := time.Now()
		if _, err := g.post(ctx, "/v1/quote", body, nil); err != nil {
			return nil, err
		}
		taken = append(taken, time.Since(began))
		if err := pause(ctx, 2*time.Millisecond); err != nil {
			return nil, err
		}
	}
	return taken, nil
}

// worstBodies are as large, and hold as many values, as is allowed: where
// nobody looks into them, and where the model does.
func worstBodies() [][]byte {
	const size, values = 1 << 20, 20_000
	fill := func(start, end string) []byte {
		n := values - 10 // the rest of the request
		item := `{"` + strings.Repeat("x", (size-len(start)-len(end)-100)/(n/2)-7) + `":0},`
		list := strings.Repeat(item, n/2)
		body := start + list[:len(list)-1] + end
		return []byte(body + strings.Repeat(" ", size-len(body)))
	}
	start := `{"endpoint":"` + videoPath + `","model":"alpha-v3","prompt":"a kite","duration":5,`
	return [][]byte{
		fill(start+`"other":[`, `]}`), fill(start+`"metadata":{"other":[`, `]}}`),
		fill(start+`"multi_shot":true,"shot_type":"customize","multi_prompt":[`, `]}`),
	}
}

// target is whom a crowd bothers.
type target struct {
	Address string   `json:"address"`
	Keys    []string `json:"keys"`
}

// among is latencies while the crowd, a process of its own, is at work.
func (g *gateway) among(ctx context.Context, t target, o options, length time.Duration) (taken []time.Duration, answers map[int]int, err error) {
	p, err := startProcess(ctx, o, "flood", t)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	var ready bool
	if err := p.out.Decode(&ready); err != nil {
		return nil, nil, fmt.Errorf("the crowd does not come: %w", err)
	}
	if taken, err = g.latencies(ctx, length); err != nil {
		return nil, nil, err
	}
	if _, err := io.WriteString(p.in, "stop\n"); err != nil {
		return nil, nil, err
	}
	return taken, answers, p.out.Decode(&answers)
}

// serveFlood is the crowd's process. It sends the worst bodies from all
// clients until it is told to stop, and then counts the answers by their
// status; 0 is none.
func serveFlood(ctx context.Context, in io.Reader, out io.Writer) error {
	lines := bufio.NewReader(in)
	t, err := readSettings[target](lines)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	client, bodies, answers := newHTTP(), worstBodies(), map[int]int{}
	var mu sync.Mutex
	var clients sync.WaitGroup
	for i := range bodyClients {
		clients.Go(func() {
			for n := i; ctx.Err() == nil; n++ {
				path := []string{"/v1/quote", videoPath}[n%2]
				status := sendWorst(ctx, client, t.Address+path, t.Keys[i%len(t.Keys)], bodies[n/2%len(bodies)])
				mu.Lock()
				answers[status]++
				mu.Unlock()
			}
		})
	}
	err = json.NewEncoder(out).Encode(true)
	_, _ = lines.ReadString('\n')
	cancel()
	clients.Wait()
	return errors.Join(err, json.NewEncoder(out).Encode(answers))
}

func sendWorst(ctx context.Context, client *http.Client, url, key string, body []byte) (status int) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0
	}
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := client.Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// peakMemory is the most that a process has had resident.
func peakMemory(pid int) (int64, error) { return processMemory(pid, "VmHWM:") }

// processMemory is a line of what the system says of a process, in bytes.
func processMemory(pid int, name string) (int64, error) {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			n, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return n << 10, err
		}
	}
	return 0, fmt.Errorf("/proc says nothing of %s", name)
}

// serveAPI is the API process: settings first, then it writes its address and
// serves until the input ends.
func serveAPI(ctx context.Context, in io.Reader, out io.Writer, o options) error {
	lines := bufio.NewReader(in)
	g, end, err := openPart(ctx, lines, o, func(c app.Config) *slog.Logger {
		log := app.NewLogger(c, io.Discard)
		app.LimitMemory(ctx, log)
		return log
	})
	if err != nil {
		return err
	}
	defer end()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- g.Run(ctx, app.Roles{API: listener}) }()
	if err := json.NewEncoder(out).Encode("http://" + listener.Addr().String()); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, lines)
	cancel()
	return <-done
}
