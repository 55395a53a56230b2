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

// EndpointConfig says whom to ask and how.
type EndpointConfig struct {
	URL     string // the whole address, …/v1/moderations
	Key     string // sent as a bearer; empty: none
	Model   string // empty: the endpoint's own choice
	Timeout time.Duration
	Open    bool // texts pass where the endpoint fails
	Rules   outbound.Rules
	Version string // of the User-Agent
	Logger  *slog.Logger
}

// The bounds of the exchange with an endpoint.
const (
	maxAnswer    = 1 << 20
	idleSockets  = 32
	longQuestion = 64 << 10         // bytes of texts: that takes its time by the client's doing
	failuresOpen = 3                // in a row, then it is left alone
	restOpen     = 10 * time.Second // for so long; then one text tries it
	busyTries    = 5                // of a text, while it answers 429
	busyRest     = time.Second      // between these, give or take half of it
)

// endpointRule is the rule that texts break which the endpoint flags.
const endpointRule = "endpoint"

// unreadable are the answers of an endpoint that is well, and will not take what
// it was asked: too long, too many. What it was asked is the client's, who would
// otherwise decide by it that nobody is judged.
var unreadable = []int{http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusRequestURITooLong, http.StatusUnprocessableEntity}

// errBusy is an endpoint that is well, and is asked too much. One client can bring it to
// that, who would otherwise decide that nobody is judged.
var errBusy = errors.New("the endpoint answered 429")

// errSpared is in the failures that say nothing of the endpoint: it had too little time.
var errSpared = errors.New("not asked for long enough")

// finding is what the endpoint said of texts.
type finding struct {
	flagged int // the first that it flags, -1 for none
	refused int // the status by which it would not take them, else 0
}

// Endpoint judges by asking a service that takes OpenAI's moderation calls.
type Endpoint struct {
	cfg     EndpointConfig
	client  *http.Client
	breaker *gobreaker.CircuitBreaker[finding]
}

// NewEndpoint makes a judge. The host of the URL may be private: an operator
// chose it.
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
		IsExcluded:   func(err error) bool { return errors.Is(err, errSpared) },
		OnStateChange: func(_ string, from, to gobreaker.State) {
			cfg.Logger.Warn("moderation endpoint", "circuit", to.String(), "before", from.String())
		},
	})
	return e, nil
}

// Close lets go of the connections.
func (e *Endpoint) Close() { e.client.CloseIdleConnections() }

// Judge asks the endpoint about the texts. An endpoint that fails is a
// KindUnavailable, or lets the texts pass unjudged. Texts that it will not take
// are refused: they do not pass, and are no failure of its. Where it fails by very
// long ones these do not pass either, nor do texts that waited for so long for their
// turn that ctx ended before it could answer.
func (e *Endpoint) Judge(ctx context.Context, texts []string) (mediagate.Verdict, error) {
	if len(texts) == 0 {
		return mediagate.Verdict{}, nil
	}
	found, err := e.try(ctx, texts)
	for tries := 1; tries < busyTries && errors.Is(err, errBusy) && rest(ctx); tries++ {
		found, err = e.try(ctx, texts)
	}
	switch {
	case err != nil && e.cfg.Open && !errors.Is(err, errSpared):
		return mediagate.Verdict{Unjudged: err}, nil
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

// try asks the endpoint unless it is left alone.
func (e *Endpoint) try(ctx context.Context, texts []string) (finding, error) {
	return e.breaker.Execute(func() (finding, error) {
		found, err := e.ask(ctx, texts)
		if err != nil && !errors.Is(err, errBusy) && (ctx.Err() != nil || length(texts) > longQuestion) {
			err = fmt.Errorf("%w: %w", errSpared, err)
		}
		return found, err
	})
}

// rest is where a crowd is slowed down: its place among the calls is taken meanwhile. It
// reports whether ctx has not ended.
func rest(ctx context.Context) bool {
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

// ask returns what the endpoint finds in the texts. Its errors quote neither the
// texts nor the answer.
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

// readVerdicts finds the flagged text in an answer that has one verdict for
// each: of one with less nobody knows what it is about.
func readVerdicts(text []byte, want int) (flagged int, err error) {
	var said struct {
		Results []struct {
			Flagged *bool `json:"flagged"`
		} `json:"results"`
	}
	if json.Unmarshal(text, &said) != nil || len(said.Results) != want {
		return -1, errors.New("the endpoint's answer is no verdict on each text")
	}
	flagged = -1
	for i, result := range said.Results {
		switch {
		case result.Flagged == nil:
			return -1, errors.New("the endpoint's answer is no verdict on each text")
		case *result.Flagged && flagged < 0:
			flagged = i
		}
	}
	return flagged, nil
}
