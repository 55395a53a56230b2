package kernel

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

// The modes of an outage.
const (
	outageError = "error" // calls get a server error without the vendor's envelope
	outageHang  = "hang"  // calls get no answer
	outageOff   = "off"   // ends the outage
)

// outage makes a vendor unavailable, for all its customers or for the customer with a key. Calls
// during an outage have no effect.
type outage struct {
	Provider string `json:"provider"`
	Key      string `json:"key,omitempty"`
	Mode     string `json:"mode"`
}

// begin stores an outage in place of the earlier one with the same vendor and key. The mode off
// only removes the earlier one.
func (st *store) begin(o outage) error {
	key := []byte(o.Provider + "\x00" + o.Key)
	return st.update(func(t tx) error {
		if o.Mode == outageOff {
			return t.Bucket(bucketOutages).Delete(key)
		}
		return t.put(bucketOutages, key, o)
	})
}

// outage returns the mode of the outage that applies to the request, or "" if there is none.
func (st *store) outage(provider string, r *http.Request) (mode string) {
	_ = st.view(func(t tx) error {
		return each(t, bucketOutages, func(_ []byte, o outage) error {
			if o.Provider == provider && (o.Key == "" || carriesKey(r, o.Key)) {
				mode = o.Mode
			}
			return nil
		})
	})
	return mode
}

// carriesKey reports whether a request carries the key, either as it is in a header or in the
// parameter key, or as the issuer of a token in a header.
func carriesKey(r *http.Request, key string) bool {
	for _, values := range r.Header {
		for _, value := range values {
			for word := range strings.FieldsSeq(value) {
				if word == key || issuer(word) == key {
					return true
				}
			}
		}
	}
	return r.URL.Query().Get("key") == key
}

// issuer returns the iss claim of a token, without checking the signature. It returns "" if the
// text is not a token.
func issuer(token string) string {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return ""
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		Issuer string `json:"iss"`
	}
	if err != nil || json.Unmarshal(raw, &claims) != nil {
		return ""
	}
	return claims.Issuer
}

// outageReply returns the answer to a call during an outage. It returns false if there is no outage.
func (s *Server) outageReply(vendor string, r *http.Request) (Reply, bool) {
	switch s.store.outage(vendor, r) {
	case outageError:
		return Reply{
			Kind: CallOther, Status: http.StatusInternalServerError, Body: map[string]string{"error": "outage"},
		}, true
	case outageHang:
		return Reply{Kind: CallOther, Lost: true}, true
	default:
		return Reply{}, false
	}
}

// handleOutage starts or ends an outage.
func (s *Server) handleOutage(w http.ResponseWriter, r *http.Request) {
	var in outage
	if !s.decodeControl(w, r, &in, &in.Provider, "the body is {provider, key, mode}") {
		return
	}
	if !slices.Contains([]string{outageError, outageHang, outageOff}, in.Mode) {
		s.controlError(w, "mode: "+outageError+", "+outageHang+" or "+outageOff)
		return
	}
	s.answerStored(w, r, s.store.begin(in))
}
