package moderation

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/internal/outbound"
)

// EndpointConfig configures an Endpoint.
type EndpointConfig struct {
	URL     string // the whole address, …/v1/moderations
	Key     string // bearer token; empty: none
	Model   string // empty: the endpoint's own choice
	Timeout time.Duration
	Open    bool // texts pass unchecked while the endpoint fails
	Rules   outbound.Rules
	Version string // for the User-Agent
	Logger  *slog.Logger
}

// The bounds of calls to the endpoint.
const (
	maxAnswer    = 1 << 20
	idleSockets  = 32
	longQuestion = 64 << 10         // above so many bytes of texts, a failure is put down to their length
	failuresOpen = 3                // consecutive failures that open the circuit
	restOpen     = 10 * time.Second // how long it stays open before one text tries again
	busyTries    = 5                // for a text, while the endpoint answers 429
	busyRest     = time.Second      // between two tries, give or take a half
)

// endpointRule is the rule in the verdict on texts that the endpoint flags.
const endpointRule = "endpoint"

// unreadable are the statuses by which a healthy endpoint refuses a request: too long, too many.
// They do not count as failures of the endpoint: otherwise a client could open the circuit with
// such texts, and then all texts would pass unchecked.
var unreadable = []int{
	http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusRequestURITooLong, http.StatusUnprocessableEntity,
}

// errBusy is the error of a healthy endpoint that gets too many calls. A single client can cause
// that, so it does not open the circuit either.
var errBusy = errors.New("the endpoint answered 429")

// errTooShort marks failures that say nothing about the endpoint, because it had too little time.
var errTooShort = errors.New("not asked for long enough")

// finding is the endpoint's answer.
type finding struct {
	flagged int // index of the first flagged text; -1 for none
	refused int // the status by which it refused the texts; 0 if it did not
}

// Endpoint checks texts by a service that speaks OpenAI's moderation protocol.
type Endpoint struct {
	cfg     EndpointConfig
	client  *http.Client
	breaker *gobreaker.CircuitBreaker[finding]
}

// NewEndpoint makes an Endpoint. The host of the URL may be private, since an operator chose it.
func NewEndpoint(cfg EndpointConfig) (*Endpoint, error) {
	host, err := outbound.Host(cfg.URL)
	if err != nil {
		return nil, err
	}
	e := &Endpoint{
		cfg: cfg,
		client: cfg.Rules.Client(outbound.Options{
			Timeout: cfg.Timeout, IgnorePorts: true, AllowHosts: []string{host}, KeepIdle: idleSockets,
		}),
	}
	e.breaker = gobreaker.NewCircuitBreaker[finding](gobreaker.Settings{
		Timeout:      restOpen,
		ReadyToTrip:  func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= failuresOpen },
		IsSuccessful: func(err error) bool { return err == nil || errors.Is(err, errBusy) },
		IsExcluded:   func(err error) bool { return errors.Is(err, errTooShort) },
		OnStateChange: func(_ string, from, to gobreaker.State) {
			cfg.Logger.Warn("moderation endpoint", "circuit", to.String(), "before", from.String())
		},
	})
	return e, nil
}

// Close closes idle connections.
func (e *Endpoint) Close() { e.client.CloseIdleConnections() }

// Check sends the texts to the endpoint. If the endpoint fails, Check returns KindUnavailable, or
// with Open lets the texts pass unchecked. Texts that the endpoint refuses to read are refused:
// they do not pass, and do not count as a failure. Very long texts on which the endpoint fails do
// not pass either, nor do texts that waited so long for a permit that ctx ended before the
// endpoint could answer.
func (e *Endpoint) Check(ctx context.Context, texts []string) (mediagate.Verdict, error) {
	if len(texts) == 0 {
		return mediagate.Verdict{}, nil
	}
	found, err := e.try(ctx, texts)
	for tries := 1; tries < busyTries && errors.Is(err, errBusy) && waitBusy(ctx); tries++ {
		found, err = e.try(ctx, texts)
	}
	switch {
	case err != nil && e.cfg.Open && !errors.Is(err, errTooShort):
		return mediagate.Verdict{Unchecked: err}, nil
	case err != nil:
		return mediagate.Verdict{}, errAway(err)
	case found.refused != 0:
		rule := fmt.Sprintf("%s: not judged, it answered %d", endpointRule, found.refused)
		return mediagate.Verdict{Refused: true, Rule: rule, Digest: read(strings.Join(texts, "\n")).digest()}, nil
	case found.flagged < 0:
		return mediagate.Verdict{}, nil
	}
	return mediagate.Verdict{Refused: true, Rule: endpointRule, Digest: read(texts[found.flagged]).digest()}, nil
}

// try calls the endpoint unless the circuit is open.
func (e *Endpoint) try(ctx context.Context, texts []string) (finding, error) {
	return e.breaker.Execute(func() (finding, error) {
		found, err := e.ask(ctx, texts)
		if err != nil && !errors.Is(err, errBusy) && (ctx.Err() != nil || length(texts) > longQuestion) {
			err = fmt.Errorf("%w: %w", errTooShort, err)
		}
		return found, err
	})
}

// waitBusy waits before another try. The caller keeps its permit meanwhile, which slows a burst
// down. It reports whether ctx is still live.
func waitBusy(ctx context.Context) bool {
	select {
	case <-time.After(busyRest/2 + rand.N(busyRest)): //nolint:gosec // no secret
		return true
	case <-ctx.Done():
		return false
	}
}

func length(texts []string) (n int) {
	for _, text := range texts {
		n += len(text)
	}
	return n
}

func errAway(err error) error {
	return &mediagate.Error{Kind: mediagate.KindUnavailable, Message: "moderation is not available", Err: err}
}

// ask makes one call. Its errors quote neither the texts nor the answer.
func (e *Endpoint) ask(ctx context.Context, texts []string) (found finding, err error) {
	body, err := json.Marshal(question{e.cfg.Model, texts})
	if err != nil {
		return found, err
	}
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.cfg.URL, bytes.NewReader(body))
	if err != nil {
		return found, errors.New("the URL of the endpoint cannot be used")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "mediagate/"+e.cfg.Version)
	if e.cfg.Key != "" {
		req.Header.Set("Authorization", "Bearer "+e.cfg.Key)
	}
	resp, err := e.client.Do(req)
	if err != nil {
		return found, errors.New(outbound.Describe(err))
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return found, errors.New(outbound.Describe(err))
	case slices.Contains(unreadable, resp.StatusCode):
		return finding{refused: resp.StatusCode}, nil
	case resp.StatusCode == http.StatusTooManyRequests:
		return found, errBusy
	case resp.StatusCode != http.StatusOK:
		return found, fmt.Errorf("the endpoint answered %d", resp.StatusCode)
	case len(text) > maxAnswer:
		return found, fmt.Errorf("the endpoint's answer is larger than %d bytes", maxAnswer)
	}
	found.flagged, err = readVerdicts(text, len(texts))
	return found, err
}

type question struct {
	Model string   `json:"model,omitempty"`
	Input []string `json:"input"`
}

// readVerdicts finds the flagged text in an answer with one verdict for each text. With fewer
// verdicts it would not be known which text each one is about.
func readVerdicts(text []byte, want int) (flagged int, err error) {
	var answer struct {
		Results []struct {
			Flagged *bool `json:"flagged"`
		} `json:"results"`
	}
	if json.Unmarshal(text, &answer) != nil || len(answer.Results) != want {
		return -1, errors.New("the endpoint's answer does not have a verdict on each text")
	}
	flagged = -1
	for i, result := range answer.Results {
		switch {
		case result.Flagged == nil:
			return -1, errors.New("the endpoint's answer does not have a verdict on each text")
		case *result.Flagged && flagged < 0:
			flagged = i
		}
	}
	return flagged, nil
}
