package providertest

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
)

// fieldsSent expects that each field of each operation, except the idle ones, has an effect at the
// vendor: if the field has another value or is absent, at least one golden exchange sends the
// vendor something else. A field that the adapter ignores, or replaces by a default, fails. If the
// vendor accepts at most one value, the error for other values must name the field.
func (s Suite) fieldsSent(t *testing.T, files []golden) {
	values := map[string][]json.RawMessage{} // of all files, by field
	for _, g := range files {
		for field, value := range g.params(t) {
			values[field] = append(values[field], value)
		}
	}
	for name, op := range s.adapter(t).Description.Operations {
		for _, field := range op.Fields {
			heeded := slices.Contains(op.Idle, field)
			heeded = heeded || slices.ContainsFunc(files, func(g golden) bool {
				return g.job.Operation == name && s.changesRequest(t, g, field, values[field])
			})
			if !heeded {
				t.Errorf("%s: no golden file shows that the vendor is told %s", name, field)
			}
		}
	}
}

// changesRequest plays an exchange with other values of one of its fields.
func (s Suite) changesRequest(t *testing.T, g golden, field string, values []json.RawMessage) bool {
	params := g.params(t)
	value, ok := params[field]
	if !ok {
		return false
	}
	sent, err := s.requestText(t, g)
	taken, refused := map[string]bool{}, refusesField(err, field)
	if sent != "" {
		taken[string(value)] = true
	}
	for _, other := range append(s.otherValues(value), values...) {
		if params[field] = other; other == nil {
			delete(params, field)
		}
		g.job.Params, _ = json.Marshal(params)
		instead, err := s.requestText(t, g)
		switch {
		case instead != "" && sent != "" && instead != sent:
			return true
		case other == nil:
		case instead != "":
			taken[string(other)] = true
		default:
			refused = refused || refusesField(err, field)
		}
	}
	return refused && len(taken) < 2
}

// refusesField reports whether an error refuses a field by name.
func refusesField(err error, field string) bool {
	return mediagate.Is(err, mediagate.KindInvalid) && strings.Contains(err.Error(), field)
}

// otherValues returns values to try instead of this one. nil means that the field is absent.
func (s Suite) otherValues(value json.RawMessage) []json.RawMessage {
	var decoded any
	_ = json.Unmarshal(value, &decoded)
	var others []any
	switch v := decoded.(type) {
	case bool:
		others = []any{!v}
	case float64:
		others = []any{v + 1, v - 1}
	case string:
		others = []any{"no such word"}
		if _, ok := s.Files[v]; ok {
			for _, file := range slices.Sorted(maps.Keys(s.Files)) {
				others = append(others, file)
			}
		}
	case []any:
		if len(v) > 1 {
			others = []any{v[:len(v)-1]}
		}
	default: // an object has fields of its own
	}
	all := []json.RawMessage{nil}
	for _, other := range others {
		text, _ := json.Marshal(other)
		all = append(all, text)
	}
	return all
}

// requestText returns what the vendor receives for a job, with the state kept for its polls. It
// returns "" if the vendor receives nothing.
func (s Suite) requestText(t *testing.T, g golden) (string, error) {
	replies := g.replies(t, 0)
	if len(replies) == 0 {
		replies = []Reply{s.Accepted}
	}
	vendor := NewVendor(t, replies...)
	job := g.job
	job.Inputs, job.Sink = Inputs(s.Files), NewSink()
	submission, err := s.send(t.Context(), s.Open(t, vendor.URL, providers.Options{Version: "1.2.3"}), job)
	var sent bytes.Buffer
	for _, r := range vendor.Requests() {
		sent.Write(formatRequest(t, r))
	}
	if sent.Len() > 0 {
		sent.WriteString(submission.Ref.State)
	}
	return sent.String(), err
}
