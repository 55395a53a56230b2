package vendorhttp

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
)

// The meaning of an answer follows from the call's effect, its status and its content.
func TestErrorOf(t *testing.T) {
	t.Parallel()
	own := func(kind mediagate.Kind) Reading { return Reading{FromVendor: true, Meaning: Meaning{Kind: kind}} }
	sure := func(kind mediagate.Kind) Reading {
		return Reading{FromVendor: true, ForAllCalls: true, Meaning: Meaning{Kind: kind}}
	}
	const none = mediagate.KindInternal // no error
	for name, tc := range map[string]struct {
		reading      Reading
		status       int
		submit, read mediagate.Kind
	}{
		"done":                         {Reading{FromVendor: true, Done: true}, 200, none, none},
		"done, beside an error":        {Reading{FromVendor: true, Done: true, Meaning: Meaning{Kind: mediagate.KindInvalid}}, 200, none, none},
		"done with HTTP 500":           {Reading{FromVendor: true, Done: true}, 500, mediagate.KindAmbiguous, mediagate.KindTransient},
		"done in foreign words":        {Reading{Done: true}, 200, mediagate.KindAmbiguous, mediagate.KindTransient},
		"foreign with HTTP 200":        {Reading{}, 200, mediagate.KindAmbiguous, mediagate.KindTransient},
		"foreign with HTTP 400":        {Reading{}, 400, mediagate.KindInvalid, mediagate.KindTransient},
		"foreign with HTTP 401":        {Reading{}, 401, mediagate.KindCredentials, mediagate.KindTransient},
		"foreign with HTTP 404":        {Reading{}, 404, mediagate.KindNotFound, mediagate.KindTransient},
		"foreign with HTTP 502":        {Reading{}, 502, mediagate.KindAmbiguous, mediagate.KindTransient},
		"foreign, but sure":            {Reading{ForAllCalls: true, Meaning: Meaning{Kind: mediagate.KindNotFound}}, 200, mediagate.KindAmbiguous, mediagate.KindTransient},
		"nothing with HTTP 200":        {Reading{FromVendor: true}, 200, mediagate.KindAmbiguous, mediagate.KindTransient},
		"nothing known, HTTP 302":      {Reading{FromVendor: true}, 302, mediagate.KindAmbiguous, mediagate.KindTransient},
		"nothing known, HTTP 409":      {Reading{FromVendor: true}, 409, mediagate.KindAmbiguous, mediagate.KindTransient},
		"nothing known, HTTP 422":      {Reading{FromVendor: true}, 422, mediagate.KindInvalid, mediagate.KindTransient},
		"nothing known, but sure":      {Reading{FromVendor: true, ForAllCalls: true}, 404, mediagate.KindNotFound, mediagate.KindTransient},
		"invalid with HTTP 200":        {own(mediagate.KindInvalid), 200, mediagate.KindInvalid, mediagate.KindTransient},
		"invalid with HTTP 500":        {own(mediagate.KindInvalid), 500, mediagate.KindAmbiguous, mediagate.KindTransient},
		"ambiguous with HTTP 400":      {own(mediagate.KindAmbiguous), 400, mediagate.KindAmbiguous, mediagate.KindTransient},
		"moderated":                    {own(mediagate.KindModerated), 400, mediagate.KindModerated, mediagate.KindTransient},
		"credentials":                  {own(mediagate.KindCredentials), 401, mediagate.KindCredentials, mediagate.KindCredentials},
		"credentials with HTTP 503":    {own(mediagate.KindCredentials), 503, mediagate.KindAmbiguous, mediagate.KindTransient},
		"forbidden":                    {own(mediagate.KindForbidden), 403, mediagate.KindForbidden, mediagate.KindTransient},
		"funds":                        {own(mediagate.KindFunds), 402, mediagate.KindFunds, mediagate.KindFunds},
		"throttled":                    {own(mediagate.KindThrottled), 429, mediagate.KindThrottled, mediagate.KindThrottled},
		"capacity":                     {own(mediagate.KindCapacity), 429, mediagate.KindCapacity, mediagate.KindThrottled},
		"not found":                    {own(mediagate.KindNotFound), 404, mediagate.KindNotFound, mediagate.KindTransient},
		"not found, sure":              {sure(mediagate.KindNotFound), 404, mediagate.KindNotFound, mediagate.KindNotFound},
		"not found, sure, HTTP 500":    {sure(mediagate.KindNotFound), 500, mediagate.KindAmbiguous, mediagate.KindTransient},
		"an upload's file is at fault": {sure(mediagate.KindInvalid), 400, mediagate.KindInvalid, mediagate.KindInvalid},
	} {
		for effect, want := range map[Effect]mediagate.Kind{Submits: tc.submit, Reads: tc.read, Stops: tc.read} {
			t.Run(name+", "+effect.String(), func(t *testing.T) {
				t.Parallel()
				err := open(t, "https://vendor.example.com", Options{}).ErrorOf(effect, Answer{Status: tc.status}, tc.reading)
				if (err == nil) != (want == none) || err != nil && !mediagate.Is(err, want) {
					t.Errorf("%v, want kind %v", err, want)
				}
			})
		}
	}
}

// An error carries the vendor's words, the pause that its header asks for, and the field only if the
// field is at fault.
func TestErrorOfCarries(t *testing.T) {
	t.Parallel()
	c := open(t, "https://vendor.example.com", Options{})
	reading := Reading{FromVendor: true, Meaning: Meaning{Kind: mediagate.KindInvalid}, Code: "E1", RequestID: "r1", Text: "too long", Param: "prompt"}
	var e *mediagate.Error
	var refusal *Refusal
	err := c.ErrorOf(Submits, Answer{Status: 400}, reading)
	if !errors.As(err, &e) || e.Param != "prompt" || e.Message != "too long" {
		t.Errorf("%+v", e)
	}
	if !errors.As(err, &refusal) || *refusal != (Refusal{Status: 400, Code: "E1", RequestID: "r1"}) {
		t.Errorf("%+v", refusal)
	}
	reading.Meaning = Meaning{Kind: mediagate.KindCapacity, Retry: 3 * time.Second}
	if err := c.ErrorOf(Reads, Answer{Status: 429}, reading); !errors.As(err, &e) || e.Param != "" || e.RetryAfter != 3*time.Second {
		t.Errorf("%+v", e)
	}
	asked := Answer{Status: 429, Header: http.Header{"Retry-After": {"7"}}}
	if err := c.ErrorOf(Submits, asked, reading); !errors.As(err, &e) || e.RetryAfter != 7*time.Second {
		t.Errorf("the vendor's own pause: %+v", e)
	}
}

// The client's header goes to the channel's own host only, and the call's header overrides it.
func TestHeader(t *testing.T) {
	t.Parallel()
	got := make(chan http.Header, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got <- r.Header }))
	t.Cleanup(server.Close)
	c := New(Config{BaseURL: server.URL, Header: http.Header{"Authorization": {"Bearer key"}}}, Options{})
	t.Cleanup(c.Close)
	for name, tc := range map[string]struct {
		call Call
		want string
	}{
		"to the channel":           {Call{Effect: Reads}, "Bearer key"},
		"a submission":             {Call{Effect: Submits, Body: JSON(struct{}{})}, "Bearer key"},
		"to another host":          {Call{Effect: Reads, Base: server.URL + "/other"}, ""},
		"with a header of its own": {Call{Effect: Reads, Header: http.Header{"Authorization": {"Bearer token"}}}, "Bearer token"},
	} {
		if _, err := c.Do(t.Context(), tc.call); err != nil {
			t.Fatal(err)
		}
		if key := (<-got).Get("Authorization"); key != tc.want {
			t.Errorf("%s: %q, want %q", name, key, tc.want)
		}
	}
}

// A body that cannot be written prevents the call.
func TestUnwritable(t *testing.T) {
	t.Parallel()
	c := open(t, "https://vendor.example.com", Options{})
	for effect, want := range map[Effect]mediagate.Kind{
		Submits: mediagate.KindInvalid, Reads: mediagate.KindInternal, Stops: mediagate.KindInternal,
	} {
		if _, err := c.Do(t.Context(), Call{Effect: effect, Body: JSON(func() {})}); !mediagate.Is(err, want) {
			t.Errorf("%s: %v, want kind %v", effect, err, want)
		}
	}
}
