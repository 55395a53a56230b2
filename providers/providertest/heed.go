package providertest

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
)

// exchange is a submission of a golden file, and what its vendor was told.
type exchange struct {
	job     mediagate.Job
	params  map[string]json.RawMessage
	replies []Reply
	told    string
	err     error
}

// heeded expects that each field of each operation, but the idle ones, reaches the vendor: with
// another value of it, or without it, one of the golden exchanges tells the
// vendor something else. A field that is read and forgotten, or replaced by a
// default, does not. Where the vendor takes at most one value, the others are
// refused by the field's name.
func (s Suite) heeded(t *testing.T, files []*txtar.Archive) {
	t.Helper()
	var played []exchange
	values := map[string][]json.RawMessage{} // of all exchanges, by field
	for _, file := range files {
		x := s.exchange(t, file)
		x.told, x.err = s.tell(t, x.job, x.replies)
		for field, value := range x.params {
			values[field] = append(values[field], value)
		}
		played = append(played, x)
	}
	for name, op := range s.adapter(t).Description.Operations {
		for _, field := range op.Fields {
			heeded := field == op.Parts || slices.Contains(op.Idle, field) // Parts says how many calls there are
			for _, x := range played {
				if heeded = heeded || x.job.Operation == name && s.heeds(t, x, field, values[field]); heeded {
					break
				}
			}
			if !heeded {
				t.Errorf("%s: no golden file shows that the vendor is told %s", name, field)
			}
		}
	}
}

// heeds tries an exchange with other values of a field that it has.
func (s Suite) heeds(t *testing.T, x exchange, field string, values []json.RawMessage) bool {
	t.Helper()
	value, ok := x.params[field]
	if !ok {
		return false
	}
	refused, taken := names(x.err, field), map[string]bool{string(value): x.told != ""}
	for _, other := range append(s.others(value), values...) {
		params := maps.Clone(x.params)
		if params[field] = other; other == nil {
			delete(params, field)
		}
		job := x.job
		job.Params, _ = json.Marshal(params)
		told, err := s.tell(t, job, x.replies)
		switch {
		case told != "" && x.told != "" && told != x.told:
			return true
		case other == nil:
		case told != "":
			taken[string(other)] = true
		default:
			refused = refused || names(err, field)
		}
	}
	maps.DeleteFunc(taken, func(_ string, told bool) bool { return !told })
	return refused && len(taken) < 2
}

// names says that an error refuses a field by its name.
func names(err error, field string) bool {
	return err != nil && mediagate.KindOf(err) == mediagate.KindInvalid && strings.Contains(err.Error(), field)
}

// others are values beside this one, nil for none at all.
func (s Suite) others(value json.RawMessage) []json.RawMessage {
	var others []any
	switch v := decode(value).(type) {
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

func decode(value json.RawMessage) (v any) {
	_ = json.Unmarshal(value, &v)
	return v
}

// exchange reads a golden file, without what came of it.
func (s Suite) exchange(t *testing.T, file *txtar.Archive) (x exchange) {
	t.Helper()
	replies := map[string]Reply{}
	var err error
	for _, f := range file.Files {
		switch {
		case err != nil:
			t.Fatal(err)
		case f.Name == "job.json":
			x.job = readJob(t, f.Data)
		case f.Name == "params.json":
			err = json.Unmarshal(f.Data, &x.params)
		case strings.HasPrefix(f.Name, "answer-0"):
			replies[strings.TrimPrefix(f.Name, "answer-")] = parseAnswer(t, f.Data)
		}
	}
	x.job.Params, _ = json.Marshal(x.params)
	for i := range len(replies) {
		x.replies = append(x.replies, replies[callOf(0, i)])
	}
	if len(replies) == 0 {
		x.replies = []Reply{s.Accepted}
	}
	return x
}

// tell is what a vendor is told of a job, with what is kept for its polls;
// empty where it is told nothing.
func (s Suite) tell(t *testing.T, job mediagate.Job, replies []Reply) (string, error) {
	t.Helper()
	job.Inputs, job.Sink = Inputs(s.Files), NewSink()
	vendor := NewVendor(t, replies...)
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
