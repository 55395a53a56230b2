package mediagate_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
)

// TestTypes holds the words that clients read.
func TestTypes(t *testing.T) {
	t.Parallel()
	for kind, want := range map[mediagate.Type]mediagate.TypeFacts{
		"video":  {Type: "video", Category: "video", Operation: "video_generation", Media: "video", List: "videos", Task: true},
		"image":  {Type: "image", Category: "image", Operation: "image_generation", Media: "image", List: "images", Task: true},
		"music":  {Type: "music", Category: "audio", Media: "audio", List: "audios", Task: true},
		"art":    {Type: "art", Category: "image", Operation: "image_generation", Media: "image", List: "images", Task: true},
		"speech": {Type: "speech", Category: "audio", Media: "audio"},
		"film":   {},
		"":       {},
	} {
		got, ok := kind.Facts()
		if diff := cmp.Diff(want, got); diff != "" || ok != (want.Type != "") {
			t.Errorf("%q: known %t %s", kind, ok, diff)
		}
		if got := slices.Contains(mediagate.TaskTypes(), kind); got != want.Task {
			t.Errorf("%q is a task's type: %t", kind, got)
		}
	}
	if got := len(mediagate.Types()); got != 5 {
		t.Errorf("%d types", got)
	}
	clear(mediagate.Types())
	if _, ok := mediagate.TypeVideo.Facts(); !ok {
		t.Error("a caller can change the table")
	}
}
