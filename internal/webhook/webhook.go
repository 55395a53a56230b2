package webhook

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/internal/outbound"
)

// The number of bytes read of an answer's body, and the number kept for people. The body has no
// meaning; reading a little lets the receiver finish writing.
const (
	maxAnswer  = 4 << 10
	keptAnswer = 1 << 10
)

// Attempt is a callback to deliver.
type Attempt struct {
	URL     string // the base URL as the client gave it
	Exact   bool   // send to URL itself, without /callback
	ID      string // the same on every attempt: receivers recognize duplicates by it
	Body    []byte
	Secrets []string // whsec_…; more than one during a rotation
}

// Config configures a Sender. Zero fields have the defaults named below.
type Config struct {
	Rules   outbound.Rules
	Timeout time.Duration // of a whole attempt; ten seconds
	Version string        // of the program, for the User-Agent; "dev"
	Now     func() time.Time
}

// Sender delivers callbacks. It is safe for concurrent use.
type Sender struct {
	rules     outbound.Rules
	client    *http.Client
	userAgent string
	now       func() time.Time
}

// New makes a Sender.
func New(c Config) *Sender {
	s := &Sender{
		rules:     c.Rules,
		client:    c.Rules.WebhookClient(c.Timeout),
		userAgent: "mediagate-webhook/" + cmp.Or(c.Version, "dev"),
		now:       c.Now,
	}
	if s.now == nil {
		s.now = time.Now
	}
	return s
}

// Deliver makes one attempt. Anything that the receiver does is a result. An error means that the
// attempt says nothing about the receiver: ctx ended (KindUnavailable), or the body cannot be
// signed (KindInternal).
func (s *Sender) Deliver(ctx context.Context, a Attempt) (mediagate.DeliveryResult, error) {
	at := s.now()
	base, err := s.rules.CheckWebhookURL(a.URL)
	if err != nil {
		return dropped(err), nil
	}
	signature, err := signAll(a.Secrets, a.ID, at, a.Body)
	if err != nil {
		return mediagate.DeliveryResult{}, err
	}
	to := base
	if !a.Exact {
		to = outbound.CallbackURL(base)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), bytes.NewReader(a.Body))
	if err != nil {
		return dropped(mediagate.Errorf(mediagate.KindInvalid, "the URL cannot be used")), nil
	}
	headers := map[string]string{
		"Content-Type":  "application/json",
		"User-Agent":    s.userAgent,
		HeaderID:        a.ID,
		HeaderTimestamp: strconv.FormatInt(at.Unix(), 10),
		HeaderSignature: signature,
	}
	for name, value := range headers {
		req.Header.Set(name, value)
	}

	resp, err := s.client.Do(req)
	switch {
	case err != nil && ctx.Err() != nil:
		return mediagate.DeliveryResult{}, &mediagate.Error{
			Kind: mediagate.KindUnavailable, Message: "the delivery was interrupted", Err: ctx.Err(),
		}
	case mediagate.Is(err, mediagate.KindInvalid):
		return dropped(err), nil
	case err != nil:
		return mediagate.DeliveryResult{Outcome: mediagate.DeliveryRetry, Error: outbound.Describe(err), Headers: headers}, nil
	}
	defer resp.Body.Close()
	// The status is the answer; a body that breaks off does not change it.
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	result := classify(resp.StatusCode)
	result.Headers, result.Answer = headers, readable(body[:min(len(body), keptAnswer)])
	return result, nil
}

// readable converts any bytes into valid UTF-8 without NUL, which the database can store.
func readable(b []byte) string {
	return strings.ReplaceAll(strings.ToValidUTF8(string(b), "\uFFFD"), "\x00", "\uFFFD")
}

// classify returns the result of an answer with the status.
func classify(status int) mediagate.DeliveryResult {
	switch status / 100 {
	case 2:
		return mediagate.DeliveryResult{Outcome: mediagate.DeliveryDone, Status: status}
	case 4:
		return mediagate.DeliveryResult{
			Outcome: mediagate.DeliveryAbandon, Status: status, Reason: "the receiver answered " + strconv.Itoa(status),
		}
	default:
		return mediagate.DeliveryResult{Outcome: mediagate.DeliveryRetry, Status: status}
	}
}

// dropped returns the result of a URL that breaks a rule, with the rule as its reason.
func dropped(err error) mediagate.DeliveryResult {
	r := mediagate.DeliveryResult{Outcome: mediagate.DeliveryDrop, Reason: "the URL is not allowed"}
	if broken, ok := errors.AsType[*mediagate.Error](err); ok {
		r.Reason = broken.Message
	}
	return r
}
