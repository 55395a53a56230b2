package kernel

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"time"
)

// The values of the directive callback.
const (
	CallbackNone  = "none"  // no callbacks
	CallbackLate  = "late"  // each comes callbackLate after the change
	CallbackFlood = "flood" // callbacks without a pause from the submission to the end
)

const (
	callbackLate     = 3 * time.Second
	callbackTimeout  = 3 * time.Second // for one callback; MiniMax allows as much for its challenge
	minCallbackPause = 5 * time.Millisecond
	callbackChecks   = 10 // checks of a job while it runs, and the steps of its progress
)

// Callback describes how a vendor reports a job's changes to its customer.
type Callback struct {
	To string // the customer's address; empty: no callbacks
	// State summarises the job's state in a word. A change of the word causes a callback; an
	// empty word causes none.
	State func(j *Job, now time.Time) string
	Body  func(j *Job) any
	// Challenge makes the vendor send a challenge first. If the address does not echo it, no
	// callback follows.
	Challenge bool
}

// CallBack starts to report the job's changes to c.To, until the job has ended or waits for its
// customer. It returns at once. It calls loopback addresses only, so that the sandbox reaches no
// host but its own. As with the real vendors, the response to a callback does not matter, and
// callbacks under way when the server closes are lost.
func (v *Service) CallBack(j *Job, c Callback) {
	if j.Directive.Callback == CallbackNone || !onLoopback(c.To) {
		return
	}
	v.server.calling.Go(func() { v.server.callBack(j.ID, c) })
}

func (s *Server) callBack(id string, c Callback) {
	if c.Challenge && !s.challenge(c.To) {
		return
	}
	reported := ""
	for {
		j, now := s.store.find(id), s.now()
		if j == nil || j.Removed {
			return
		}
		word, state := c.State(j, now), j.State(now)
		flood := j.Directive.Callback == CallbackFlood
		if word != "" && (word != reported || flood) {
			if j.Directive.Callback == CallbackLate && !s.pause(callbackLate) {
				return
			}
			s.post(c.To, c.Body(j))
			reported = word
		}
		passed := now.Sub(j.begun())
		if state != StateQueued && (state != StateRunning || passed >= j.Duration()) { // the job has ended, or runs forever
			return
		}
		wait := max(minCallbackPause, min(j.Duration()/callbackChecks, j.Duration()-passed))
		if flood {
			wait = minCallbackPause
		}
		if !s.pause(wait) {
			return
		}
	}
}

// pause waits for d. It returns false if the server closes before.
func (s *Server) pause(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-s.closing:
		return false
	}
}

// challenge reports whether the address echoes a challenge, as MiniMax demands.
func (s *Server) challenge(to string) bool {
	want := UUID()
	var got struct {
		Challenge string `json:"challenge"`
	}
	return json.Unmarshal(s.post(to, map[string]any{"challenge": want}), &got) == nil && got.Challenge == want
}

// post sends body as JSON and returns the beginning of the response, or nil if the call fails.
func (s *Server) post(to string, body any) []byte {
	raw, err := json.Marshal(body)
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(s.life, callbackTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(raw))
	if err != nil {
		return nil
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := s.callbacks.Do(req)
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	return answer
}

// onLoopback reports whether an address is localhost or a loopback IP address. It makes no DNS
// query.
func onLoopback(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

func newCallbackClient() *http.Client {
	return &http.Client{
		// The transport ignores the proxies of the environment.
		Transport:     &http.Transport{MaxIdleConnsPerHost: 16, IdleConnTimeout: 30 * time.Second},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
