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

// The header fields by which clients learn of rates, after
// draft-ietf-httpapi-ratelimit-headers.
const (
	ratePolicyHeader = "RateLimit-Policy"
	rateLeftHeader   = "RateLimit"
)

// counted reports whether rates count the calls of the route: those that ask for
// media, or leave a file with us. A quote only reads.
func (r route) counted() bool {
	return r.bound == modelsBody && r.path != quotePath || r.body == bodyForm
}

// ownPerMinute is how often an account may change itself, its keys or its endpoints, have callbacks
// delivered again or tested, and sign in, each by itself. Each leaves a row of the audit, which no
// client may fill, or is sent to an address that a client chose.
const ownPerMinute = 120

// own is what calls of the route do that is counted so; empty for others.
func (r route) own() (what, told string) {
	switch {
	case strings.HasPrefix(r.path, keysPath) && r.method != http.MethodGet:
		return "keys", "the keys of an account may be changed"
	case r.path == accountPath && r.method == http.MethodPatch:
		return "account", "an account may be changed"
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

// countOwn counts a call of those that ownPerMinute is of.
func (s *Server) countOwn(c *call) error {
	what, told := c.route.own()
	if what == "" {
		return nil
	}
	return s.countOf(c.ctx, c.caller.key.AccountID, what, told)
}

// countOf counts something of which ownPerMinute is, for an account.
func (s *Server) countOf(ctx context.Context, accountID, what, told string) error {
	limit := mediagate.RateLimit{Of: accountID + "/" + what, PerMinute: ownPerMinute}
	left, admitted, err := s.cfg.Store.TakeRates(ctx, []mediagate.RateLimit{limit})
	if err != nil || admitted {
		return err
	}
	return &mediagate.Error{
		Kind: mediagate.KindRateLimited, RetryAfter: left[0].Next,
		Message: fmt.Sprintf("too many requests: %s %d times a minute", told, ownPerMinute),
	}
}

// rate is a limit of submits a minute.
type rate struct {
	name string // in the header
	who  string // in words
	mediagate.RateLimit
	mediagate.RateLeft
}

// rates are those of the caller's key, which is one with the key that it was
// rotated from, and of its account.
func (c *caller) rates(defaults mediagate.AccountLimits) (list []rate) {
	if c.key.Rate != nil {
		list = append(list, rate{name: "key", who: "this API key", RateLimit: mediagate.RateLimit{Of: c.key.QuotaID, PerMinute: *c.key.Rate}})
	}
	if most := c.account.Or(defaults).Rate; most != nil {
		list = append(list, rate{name: "account", who: "the account", RateLimit: mediagate.RateLimit{Of: c.account.ID, PerMinute: *most}})
	}
	return list
}

// count counts a call of those whose key or account has a rate. Every answer to
// it then tells what is left.
func (s *Server) count(c *call) error {
	rates := c.caller.rates(s.cfg.AccountDefaults)
	if len(rates) == 0 {
		return nil
	}
	header := c.Response().Header()
	header.Set(ratePolicyHeader, join(rates, rate.policy))
	limits := make([]mediagate.RateLimit, len(rates))
	for i, r := range rates {
		if r.PerMinute == 0 { // nobody needs to count
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
	header.Set(rateLeftHeader, join(rates, rate.left))
	if !admitted {
		return refusing.refusal(refusing.Next)
	}
	return nil
}

// join writes a list of a header.
func join(rates []rate, item func(rate) string) string {
	items := make([]string, len(rates))
	for i, r := range rates {
		items[i] = item(r)
	}
	return strings.Join(items, ", ")
}

// policy writes what the rate is.
func (r rate) policy() string {
	return strconv.Quote(r.name) + ";q=" + strconv.Itoa(r.PerMinute) + ";w=60"
}

// left writes what is left of the rate.
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
