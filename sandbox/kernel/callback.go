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

// What a directive can ask of a job's callbacks.
const (
	CallbackNone  = "none"  // there are none
	CallbackLate  = "late"  // each comes callbackLate after the change
	CallbackFlood = "flood" // they come without a pause from the submit to the end
)

const (
	callbackLate    = 3 * time.Second
	callbackTimeout = 3 * time.Second // of one: MiniMax's own, for the answer to its challenge
	callbackLeast   = 5 * time.Millisecond
	callbackTicks   = 10 // looks at a job while it is made, and the steps of its progress
)

// Callback is how a vendor tells that a job has changed.
type Callback struct {
	To string // empty: nobody asked for it
	// Word is told anew when it differs from what was told last; empty: not now.
	Word func(j *Job, now time.Time) string
	Body func(j *Job) any
	// Challenge: the address is tried first, and nothing is told where it does not
	// answer in kind.
	Challenge bool
}

// CallBack tells of a job until it has ended, or waits for its customer: on the loopback
// only, since the sandbox calls nobody who did not start it. It returns at once. What the
// other side answers does not matter, and what is under way when the server ends is lost, as
// with the vendors.
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
	told := ""
	for {
		j, now := s.store.find(id), s.now()
		if j == nil || j.Removed {
			return
		}
		word, state := c.Word(j, now), j.State(now)
		flood := j.Directive.Callback == CallbackFlood
		if word != "" && (word != told || flood) {
			if j.Directive.Callback == CallbackLate && !s.pause(callbackLate) {
				return
			}
			s.post(c.To, c.Body(j))
			told = word
		}
		passed := now.Sub(j.begun())
		if state != StateQueued && (state != StateRunning || passed >= j.Takes()) { // or it never ends
			return
		}
		wait := max(callbackLeast, min(j.Takes()/callbackTicks, j.Takes()-passed))
		if flood {
			wait = callbackLeast
		}
		if !s.pause(wait) {
			return
		}
	}
}

// pause reports whether the time passed with the server still there.
func (s *Server) pause(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-s.closing:
		return false
	}
}

// challenge reports whether the address answers as MiniMax wants it.
func (s *Server) challenge(to string) bool {
	want := UUID()
	var got struct {
		Challenge string `json:"challenge"`
	}
	return json.Unmarshal(s.post(to, map[string]any{"challenge": want}), &got) == nil && got.Challenge == want
}

// post returns the beginning of the answer.
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

// onLoopback reports whether an address leads to this machine, without asking DNS.
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
		Transport:     &http.Transport{MaxIdleConnsPerHost: 16, IdleConnTimeout: 30 * time.Second}, // no proxy of the environment
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
