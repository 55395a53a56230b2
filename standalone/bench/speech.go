package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/mediagate/mediagate/cmd/mediagate/app"
)

const (
	openaiPrefix = "/openai/v1"

	speechAdded  = 3 * time.Millisecond // to the first byte
	fewSpeeches  = 20
	manySpeeches = 200
	speechSettle = 3 * time.Second
	speechEach   = 256 << 10 // of memory, for a stream
	speechGrowth = 16 << 20  // of memory, for streams that go on: what the collector lets lie

	soundEvery = 50 * time.Millisecond
	soundPiece = 8 << 10
	longSpeech = "on and on"
)

func speechBody(input string) string {
	return fmt.Sprintf(`{"model": "eta-4o-mini-tts", "input": %q, "voice": "coral"}`, input)
}

// handleSpeech speaks at once: one piece, or one after the other until nobody
// listens any more.
func handleSpeech(w http.ResponseWriter, r *http.Request) {
	var asked struct{ Input string }
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	_, _ = io.Copy(io.Discard, r.Body) // so that it is seen when nobody listens any more
	w.Header().Set("Content-Type", "audio/mpeg")
	piece := make([]byte, soundPiece)
	control := http.NewResponseController(w)
	for {
		if _, err := w.Write(piece); err != nil || control.Flush() != nil || asked.Input != longSpeech {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-time.After(soundEvery):
		}
	}
}

// measureSpeech compares the time to the first byte of sound with that of the
// vendor asked directly, in turns, and the memory of an API process with few
// and with many streams.
func measureSpeech(ctx context.Context, m *machine, o options) (_ []row, err error) {
	g, err := m.install(ctx, "speech", []app.Channel{{
		Name: "openai", Provider: "openai", BaseURL: m.vendor.url + openaiPrefix, Credentials: map[string]string{"api_key": m.secret}, Weight: 1, RequestsPerSecond: 1000,
		PollInterval: app.PollInterval{Min: time.Second, Max: time.Second},
	}})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	rounds := 1000
	if o.quick {
		rounds = 200
	}
	var direct, through []time.Duration
	for n := range rounds + 20 {
		floor, err := firstByte(ctx, g.http, m.vendor.url+openaiPrefix+"/audio/speech", m.secret)
		if err != nil {
			return nil, err
		}
		subject, err := firstByte(ctx, g.http, g.url+"/v1/audio/speech", g.secret)
		if err != nil {
			return nil, err
		}
		if n >= 20 { // warm
			direct, through = append(direct, floor), append(through, subject)
		}
	}
	added := quantile(through, 0.5) - quantile(direct, 0.5)
	rows := []row{{
		what: "time to the first byte of speech, added", floor: fmt.Sprintf("the vendor itself, p50 %s", quantile(direct, 0.5).Round(10*time.Microsecond)),
		value: fmt.Sprintf("p50 %s, p99 %s", added.Round(10*time.Microsecond), (quantile(through, 0.99) - quantile(direct, 0.99)).Round(10*time.Microsecond)),
		aim:   "p50 ≤ " + speechAdded.String(), met: added <= speechAdded,
	}}
	more, err := speechMemory(ctx, g, o)
	return append(rows, more...), err
}

// firstByte is the time from the request to the first byte of its answer's
// body.
func firstByte(ctx context.Context, client *http.Client, url, key string) (time.Duration, error) {
	began := time.Now()
	body, err := listenTo(ctx, client, url, key, "Ahoy!")
	if err != nil {
		return 0, err
	}
	defer body.Close()
	if _, err := body.Read(make([]byte, 1)); err != nil {
		return 0, err
	}
	took := time.Since(began)
	_, err = io.Copy(io.Discard, body)
	return took, err
}

func listenTo(ctx context.Context, client *http.Client, url, key, input string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(speechBody(input)))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close()
		return nil, fmt.Errorf("%s answers %d", url, resp.StatusCode)
	}
	return resp.Body, nil
}

// speechMemory looks at an API process with few streams, with many, and with
// the same ones some time later.
func speechMemory(ctx context.Context, g *gateway, o options) (_ []row, err error) {
	p, err := startProcess(ctx, o, "api", g.Config)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	var url string
	if err := p.out.Decode(&url); err != nil {
		return nil, err
	}
	ctx, hangUp := context.WithCancel(ctx)
	defer hangUp() // first: then the process ends at once
	client := newHTTP()
	defer client.CloseIdleConnections()
	streams := 0
	resident := func(until int, settle time.Duration) (int64, error) {
		for ; streams < until; streams++ {
			body, err := listenTo(ctx, client, url+"/v1/audio/speech", g.secret, longSpeech)
			if err != nil {
				return 0, err
			}
			go func() {
				defer body.Close()
				_, _ = io.Copy(io.Discard, body)
			}()
		}
		if err := pause(ctx, settle); err != nil {
			return 0, err
		}
		return residentOf(p.cmd.Process.Pid)
	}
	few, err := resident(fewSpeeches, speechSettle)
	if err != nil {
		return nil, err
	}
	many, err := resident(manySpeeches, speechSettle)
	if err != nil {
		return nil, err
	}
	later, err := resident(manySpeeches, 3*speechSettle)
	if err != nil {
		return nil, err
	}
	each := (many - few) / (manySpeeches - fewSpeeches)
	const mib = 1 << 20
	return []row{{
		what: fmt.Sprintf("memory of %d speeches at once", manySpeeches), floor: fmt.Sprintf("%d at once, %.1f MiB", fewSpeeches, float64(few)/mib),
		value: fmt.Sprintf("%.1f MiB, %d KiB each; %.1f MiB some seconds later", float64(many)/mib, each>>10, float64(later)/mib),
		aim:   fmt.Sprintf("≤ %d KiB each, + %d MiB", speechEach>>10, speechGrowth>>20),
		met:   each <= speechEach && later-many <= speechGrowth,
	}}, nil
}

// residentOf is what a process has in memory.
func residentOf(pid int) (int64, error) {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, err
	}
	_, after, _ := strings.Cut(string(status), "VmRSS:")
	fields := strings.Fields(after)
	if len(fields) == 0 {
		return 0, errors.New("the system does not tell what a process has in memory")
	}
	n, err := strconv.ParseInt(fields[0], 10, 64)
	return n << 10, err
}
