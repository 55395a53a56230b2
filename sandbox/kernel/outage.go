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
	outageError = "error" // each call is answered with a server error that is not the vendor's
	outageHang  = "hang"  // no call is answered
	outageOff   = "off"
)

// outage is a vendor that is away, for all its customers or for the one that
// comes with a key. No call then has any effect.
type outage struct {
	Provider string `json:"provider"`
	Key      string `json:"key,omitempty"`
	Mode     string `json:"mode"`
}

// begin replaces the outage of the same customers.
func (st *store) begin(o outage) error {
	key := []byte(o.Provider + "\x00" + o.Key)
	return st.update(func(t tx) error {
		if o.Mode == outageOff {
			return t.Bucket(bucketOutages).Delete(key)
		}
		return t.put(bucketOutages, key, o)
	})
}

// outage is the mode of the vendor's outage for who sends the request; empty
// without one.
func (st *store) outage(provider string, r *http.Request) (mode string) {
	_ = st.view(func(t tx) error {
		return each(t, bucketOutages, func(_ []byte, o outage) error {
			if o.Provider == provider && (o.Key == "" || comesWith(r, o.Key)) {
				mode = o.Mode
			}
			return nil
		})
	})
	return mode
}

// comesWith reports that a request names the key: in a header or a parameter as
// it is, or as the issuer of a token.
func comesWith(r *http.Request, key string) bool {
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

// issuer is who has signed a token, as the token says.
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

// away answers a call during an outage.
func (s *Server) away(vendor string, r *http.Request) (Reply, bool) {
	switch s.store.outage(vendor, r) {
	case outageError:
		return Reply{Kind: CallOther, Status: http.StatusInternalServerError, Body: map[string]string{"error": "outage"}}, true
	case outageHang:
		return Reply{Kind: CallOther, Lost: true}, true
	default:
		return Reply{}, false
	}
}

// handleOutage begins or ends an outage.
func (s *Server) handleOutage(w http.ResponseWriter, r *http.Request) {
	var in outage
	if !s.readOrder(w, r, &in, &in.Provider, "the body is {provider, key, mode}") {
		return
	}
	if !slices.Contains([]string{outageError, outageHang, outageOff}, in.Mode) {
		s.controlError(w, "mode: "+outageError+", "+outageHang+" or "+outageOff)
		return
	}
	s.stored(w, r, s.store.begin(in))
}
