package api

import (
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

// changesPerMinute is how often an account's keys may be changed by themselves. Each
// change leaves a row of the audit, which stays for good, and each new key one more.
const changesPerMinute = 120

// countChange counts a call that may change keys of the caller's account.
func (s *Server) countChange(c *call) error {
	limit := mediagate.RateLimit{Of: c.caller.key.AccountID + "/keys", PerMinute: changesPerMinute}
	left, admitted, err := s.cfg.Store.TakeRates(c.ctx, []mediagate.RateLimit{limit})
	if err != nil || admitted {
		return err
	}
	return &mediagate.Error{
		Kind: mediagate.KindRateLimited, RetryAfter: left[0].Next,
		Message: fmt.Sprintf("too many requests: the keys of an account may be changed %d times a minute", changesPerMinute),
	}
}

// changesKeys reports whether calls of the route change keys at the word of one.
func (r route) changesKeys() bool {
	return strings.HasPrefix(r.path, keysPath) && r.method != http.MethodGet
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
func (c *caller) rates() (list []rate) {
	if c.key.Rate != nil {
		list = append(list, rate{name: "key", who: "this API key", RateLimit: mediagate.RateLimit{Of: c.key.PurseID, PerMinute: *c.key.Rate}})
	}
	if c.account.Rate != nil {
		list = append(list, rate{name: "account", who: "the account", RateLimit: mediagate.RateLimit{Of: c.account.ID, PerMinute: *c.account.Rate}})
	}
	return list
}

// count counts a call of those whose key or account has a rate. Every answer to
// it then tells what is left.
func (s *Server) count(c *call) error {
	rates := c.caller.rates()
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
