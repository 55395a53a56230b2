package api

import (
	"encoding/json"
	"errors"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/catalog"
)

// sayings has the answers of adapters by the route's upstream.
type sayings map[string]Support

func (s sayings) Supports(_ string, route mediagate.Route, _ mediagate.Job) Support {
	return s[route.Upstream]
}

// TestSelectRoutes checks which routes are kept and which are left out, and whose reason the
// client gets if none is left.
func TestSelectRoutes(t *testing.T) {
	t.Parallel()
	no := func(field string, fields ...string) Support {
		return Support{Fields: fields, Err: mediagate.Invalid(field, "%s is not possible here", field)}
	}
	unserved := func(e Support) Support {
		e.Unserved = true
		return e
	}
	broken := Support{Err: errors.New("secret detail")}
	why := func(upstream, reason string) mediagate.SkippedRoute {
		return mediagate.SkippedRoute{Provider: "p", Upstream: upstream, Reason: reason}
	}
	for name, test := range map[string]struct {
		says    sayings
		routes  []mediagate.Route
		skipped []mediagate.SkippedRoute
		kind    mediagate.Kind
		param   string
	}{
		"all can": {
			says:   sayings{"b": {Sync: true}},
			routes: []mediagate.Route{{Provider: "p", Upstream: "a"}, {Provider: "p", Upstream: "b", Sync: true}, {Provider: "p", Upstream: "c"}},
		},
		"one cannot": {
			says:    sayings{"a": no("mode")},
			routes:  []mediagate.Route{{Provider: "p", Upstream: "b"}, {Provider: "p", Upstream: "c"}},
			skipped: []mediagate.SkippedRoute{why("a", "mode is not possible here")},
		},
		"one is broken, one cannot": {
			says:    sayings{"a": broken, "b": no("mode")},
			routes:  []mediagate.Route{{Provider: "p", Upstream: "c"}},
			skipped: []mediagate.SkippedRoute{why("a", "its adapter failed"), why("b", "mode is not possible here")},
		},
		"none can: the last of equals is nearest": {
			says: sayings{"a": no("one", "mode"), "b": no("two", "mode"), "c": no("three", "mode")},
			kind: mediagate.KindInvalid, param: "three",
		},
		"none can: the first provider's reason before the second's": {
			says: sayings{"a": no("one", "mode"), "b": no("two", "mode"), "other": no("three", "mode")},
			kind: mediagate.KindInvalid, param: "two",
		},
		"none can: the second provider takes more of the request": {
			says: sayings{"a": no("one", "mode"), "b": no("two", "mode"), "other": no("three", "mode", "prompt")},
			kind: mediagate.KindInvalid, param: "three",
		},
		"none can: who takes most of the request is nearest": {
			says: sayings{"a": no("one", "mode"), "b": no("two", "mode", "prompt"), "c": no("three", "mode")},
			kind: mediagate.KindInvalid, param: "two",
		},
		"none can: fields that the request lacks do not count": {
			says: sayings{"a": no("one", "mode", "prompt"), "b": no("two", "prompt", "seed", "style", "size"), "c": no("three")},
			kind: mediagate.KindInvalid, param: "one",
		},
		"no channel beside one that can": {
			says:   sayings{"a": unserved(Support{}), "c": unserved(Support{})},
			routes: []mediagate.Route{{Provider: "p", Upstream: "a"}, {Provider: "p", Upstream: "b"}, {Provider: "p", Upstream: "c"}},
		},
		"no channel at all": {
			says:    sayings{"a": unserved(no("mode")), "b": unserved(Support{}), "c": unserved(Support{})},
			routes:  []mediagate.Route{{Provider: "p", Upstream: "b"}, {Provider: "p", Upstream: "c"}},
			skipped: []mediagate.SkippedRoute{why("a", "mode is not possible here")},
		},
		"no channel at all, none can": {
			says: sayings{"a": unserved(no("one")), "b": unserved(no("two")), "c": unserved(no("three"))},
			kind: mediagate.KindInvalid, param: "three",
		},
		"only those without a channel can": {
			says: sayings{"a": unserved(Support{}), "b": no("two"), "other": unserved(Support{})},
			kind: mediagate.KindInvalid, param: "two",
		},
		"none can: one without a channel takes more of the request": {
			says: sayings{"a": unserved(no("one", "mode", "prompt")), "b": no("two"), "c": unserved(no("three", "mode"))},
			kind: mediagate.KindInvalid, param: "two",
		},
		"only one without a channel can, another is broken": {
			says: sayings{"a": unserved(Support{}), "b": broken, "c": no("three")},
			kind: mediagate.KindInternal,
		},
		"none can, one is broken": {
			says: sayings{"a": no("one"), "b": broken, "c": no("three")},
			kind: mediagate.KindInternal,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &Server{log: slog.New(slog.DiscardHandler)}
			offered := []mediagate.Route{{Provider: "p", Upstream: "a", Sync: true}, {Provider: "p", Upstream: "b"}, {Provider: "p", Upstream: "c"}}
			if _, two := test.says["other"]; two {
				offered[2] = mediagate.Route{Provider: "q", Upstream: "other"}
			}
			plan, _, err := s.selectRoutes(t.Context(), test.says, validated{model: "m", Request: catalog.Request{
				Params: json.RawMessage(`{"mode":"4k","prompt":"secret of the client"}`),
				Plan:   mediagate.Plan{Routes: offered, Media: "video"},
			}})
			if test.routes == nil {
				if !mediagate.Is(err, test.kind) || domainError(err).Param != test.param {
					t.Fatalf("the error is %v", err)
				}
				return
			}
			must(t, err)
			want := mediagate.Plan{Routes: test.routes, Skipped: test.skipped, Media: "video"}
			if diff := cmp.Diff(want, plan); diff != "" {
				t.Errorf("the plan (-want +got):\n%s", diff)
			}
			if !offered[0].Sync {
				t.Error("the catalog's own routes were changed")
			}
		})
	}
}

// TestSelectRoutesSeesUploadsAsLinks checks that an adapter sees a link in place of media in the
// request, and all other fields as they are.
func TestSelectRoutesSeesUploadsAsLinks(t *testing.T) {
	t.Parallel()
	params, fields, err := withUploads(catalog.Request{
		Params: json.RawMessage(`{"prompt":"a <b>","n":1.50}`), Uploads: map[string]string{"first_frame_image": "data:image/png;base64,AAAA"},
	})
	must(t, err)
	var got, want any
	must(t, json.Unmarshal(params, &got))
	_ = json.Unmarshal([]byte(`{"prompt":"a <b>","n":1.5,"first_frame_image":"`+mediagate.UploadComing+`"}`), &want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if len(fields) != 3 {
		t.Errorf("fields: %v", fields)
	}
}
