package media_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/media"
)

// TestFields checks that a value set at a path is found there, and the path by the value. Numbers
// keep their text.
func TestFields(t *testing.T) {
	t.Parallel()
	request, err := media.Decode(json.RawMessage(`{"prompt":"p","seed":12345678901234567890,"image_urls":[null,"b"],"subjects":[{"name":"s"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	links := map[string]string{"image_urls[0]": "A", "image_urls[2]": "B", "mask": "C", "subjects[0].face.url": "D"}
	if request, err = media.SetFields(request, links); err != nil {
		t.Fatal(err)
	}
	text, err := media.Encode(request)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"image_urls":["A","b","B"],"mask":"C","prompt":"p","seed":12345678901234567890,"subjects":[{"face":{"url":"D"},"name":"s"}]}`
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for path, link := range links {
		if got, ok := media.PathOf(request, link); !ok || got != path || media.FieldAt(request, path) != link {
			t.Errorf("%s is at %s, and there is %v", link, got, media.FieldAt(request, path))
		}
	}
	for _, path := range []string{"image_urls[3]", "image_urls[-1]", "image_urls[x]", "prompt.url", "nothing", "subjects[0].face.url.more"} {
		if got := media.FieldAt(request, path); got != nil {
			t.Errorf("%s leads to %v", path, got)
		}
	}
}

// TestFieldsThatFitNowhere checks that a path that leads nowhere cannot be set.
func TestFieldsThatFitNowhere(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"prompt.url", "image_urls[x]", "image_urls[-1]", "image_urls[1000]", "[0]", ".", "image_urls.url"} {
		request, err := media.Decode(json.RawMessage(`{"prompt":"p","image_urls":[]}`))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := media.SetFields(request, map[string]string{path: "A"}); !mediagate.Is(err, mediagate.KindInternal) {
			t.Errorf("%s: %v", path, err)
		}
	}
}
