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

// heeded expects that each field of each operation, but the idle ones, reaches the vendor: with
// another value of it, or without it, one of the golden exchanges tells the
// vendor something else. A field that is read and forgotten, or replaced by a
// default, does not. Where the vendor takes at most one value, the others are
// refused by the field's name.
func (s Suite) heeded(t *testing.T, files []golden) {
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
				return g.job.Operation == name && s.heeds(t, g, field, values[field])
			})
			if !heeded {
				t.Errorf("%s: no golden file shows that the vendor is told %s", name, field)
			}
		}
	}
}

// heeds tries an exchange with other values of a field that it has.
func (s Suite) heeds(t *testing.T, g golden, field string, values []json.RawMessage) bool {
	params := g.params(t)
	value, ok := params[field]
	if !ok {
		return false
	}
	told, err := s.tell(t, g)
	taken, refused := map[string]bool{}, names(err, field)
	if told != "" {
		taken[string(value)] = true
	}
	for _, other := range append(s.others(value), values...) {
		if params[field] = other; other == nil {
			delete(params, field)
		}
		g.job.Params, _ = json.Marshal(params)
		instead, err := s.tell(t, g)
		switch {
		case instead != "" && told != "" && instead != told:
			return true
		case other == nil:
		case instead != "":
			taken[string(other)] = true
		default:
			refused = refused || names(err, field)
		}
	}
	return refused && len(taken) < 2
}

// names says that an error refuses a field by its name.
func names(err error, field string) bool {
	return mediagate.Is(err, mediagate.KindInvalid) && strings.Contains(err.Error(), field)
}

// others are values beside this one, nil for none at all.
func (s Suite) others(value json.RawMessage) []json.RawMessage {
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

// tell is what a vendor is told of a job, with what is kept for its polls;
// empty where it is told nothing.
func (s Suite) tell(t *testing.T, g golden) (string, error) {
	replies := g.replies(t, 0)
	if len(replies) == 0 {
		replies = []Reply{s.Accepted}
	}
	vendor := NewVendor(t, replies...)
	job := g.job
	job.Inputs, job.Sink = Inputs(s.Files), NewSink()
	submission, err := s.send(t.Context(), s.Open(t, vendor.URL, providers.Options{Version: "1.2.3"}), job)
	var told bytes.Buffer
	for _, r := range vendor.Requests() {
		told.Write(formatRequest(t, r))
	}
	if told.Len() > 0 {
		told.WriteString(submission.Ref.State)
	}
	return told.String(), err
}
