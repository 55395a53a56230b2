package api

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/mediagate/mediagate"
)

// The headers that report rates to clients, after draft-ietf-httpapi-ratelimit-headers.
const (
	ratePolicyHeader = "RateLimit-Policy"
	rateLeftHeader   = "RateLimit"
)

// isRated reports whether the rates of key and account count calls of the route: submits and
// uploads. A quote only reads.
func (r route) isRated() bool {
	return r.bound == modelsBody && r.path != quotePath || r.body == bodyForm
}

// selfServicePerMinute bounds how often an account may change itself, its keys or its endpoints,
// test or repeat callbacks, and sign in. Each of these has its own count. Each call adds a row to
// the audit, which no client may fill, or sends a request to an address that the client chose.
const selfServicePerMinute = 120

// selfService returns which count the calls of the route belong to, and words for the refusal. It
// returns "" for routes that are not counted.
func (r route) selfService() (what, refusal string) {
	switch {
	case strings.HasPrefix(r.path, keysPath) && r.method != http.MethodGet:
		return "keys", "the keys of an account may be changed"
	case r.path == accountPath && r.method == http.MethodPatch:
		return "account", "an account may be changed"
	case r.path == webhookSecretPath && r.method == http.MethodPost:
		return "secrets", "the secret of an account may be rotated"
	case strings.HasPrefix(r.path, endpointsPath) && r.method != http.MethodGet:
		return "endpoints", "the endpoints of an account may be changed, tested or sent to again"
	case r.path == webhookTestPath:
		return "tests", "an account may have its webhook tested"
	case r.path == redeliverPath:
		return "redeliveries", "an account may have callbacks delivered again"
	default:
		return "", ""
	}
}

// countSelfService counts the call if its route is one of self-service.
func (s *Server) countSelfService(c *call) error {
	what, refusal := c.route.selfService()
	if what == "" {
		return nil
	}
	return s.countAction(c.ctx, c.caller.key.AccountID, what, refusal)
}

// countAction counts an action of self-service for an account.
func (s *Server) countAction(ctx context.Context, accountID, what, refusal string) error {
	limit := mediagate.RateLimit{Of: accountID + "/" + what, PerMinute: selfServicePerMinute}
	left, admitted, err := s.cfg.Store.TakeRates(ctx, []mediagate.RateLimit{limit})
	if err != nil || admitted {
		return err
	}
	return &mediagate.Error{
		Kind: mediagate.KindRateLimited, RetryAfter: left[0].Next,
		Message: fmt.Sprintf("too many requests: %s %d times a minute", refusal, selfServicePerMinute),
	}
}

// rate is a limit of submits a minute.
type rate struct {
	name string // in the headers
	who  string // in messages
	mediagate.RateLimit
	mediagate.RateLeft
}

// rates returns the limits of the caller's key and account. A key shares its rate with the key
// that it was rotated from.
func (c *caller) rates(defaults mediagate.AccountLimits) (list []rate) {
	if c.key.Rate != nil {
		list = append(
			list,
			rate{name: "key", who: "this API key", RateLimit: mediagate.RateLimit{Of: c.key.QuotaID, PerMinute: *c.key.Rate}},
		)
	}
	if most := c.account.Or(defaults).Rate; most != nil {
		list = append(
			list, rate{name: "account", who: "the account", RateLimit: mediagate.RateLimit{Of: c.account.ID, PerMinute: *most}},
		)
	}
	return list
}

// takeRates counts a call whose key or account has a rate. The answer then reports what is left.
func (s *Server) takeRates(c *call) error {
	rates := c.caller.rates(s.cfg.AccountDefaults)
	if len(rates) == 0 {
		return nil
	}
	header := c.Response().Header()
	header.Set(ratePolicyHeader, joinRates(rates, rate.policy))
	limits := make([]mediagate.RateLimit, len(rates))
	for i, r := range rates {
		if r.PerMinute == 0 { // no need to count
			header.Set(rateLeftHeader, r.left())
			return r.refusal(0) // waiting does not help
		}
		limits[i] = r.RateLimit
	}
	left, admitted, err := s.cfg.Store.TakeRates(c.ctx, limits)
	if err != nil {
		return err
	}
	var refusing rate
	for i := range rates {
		rates[i].RateLeft = left[i]
		if left[i].Submits == 0 && left[i].Next > refusing.Next {
			refusing = rates[i]
		}
	}
	header.Set(rateLeftHeader, joinRates(rates, rate.left))
	if !admitted {
		return refusing.refusal(refusing.Next)
	}
	return nil
}

// joinRates formats a list for a header.
func joinRates(rates []rate, item func(rate) string) string {
	items := make([]string, len(rates))
	for i, r := range rates {
		items[i] = item(r)
	}
	return strings.Join(items, ", ")
}

// policy formats the rate.
func (r rate) policy() string {
	return strconv.Quote(r.name) + ";q=" + strconv.Itoa(r.PerMinute) + ";w=60"
}

// left formats what is left of the rate.
func (r rate) left() string {
	item := strconv.Quote(r.name) + ";r=" + strconv.Itoa(r.Submits)
	if r.Next > 0 {
		item += ";t=" + strconv.FormatInt(seconds(r.Next), 10)
	}
	return item
}

// refusal is the error of a call for which nothing is left.
func (r rate) refusal(wait time.Duration) error {
	message := fmt.Sprintf("too many requests: %s may submit %d times a minute", r.who, r.PerMinute)
	switch r.PerMinute {
	case 0:
		message = r.who + " may not submit: its rate is 0"
	case 1:
		message = fmt.Sprintf("too many requests: %s may submit once a minute", r.who)
	}
	return &mediagate.Error{Kind: mediagate.KindRateLimited, RetryAfter: wait, Message: message}
}
