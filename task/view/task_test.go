package view_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task/view"
)

// A wish to cancel shows as long as it may still be granted.
func TestCancelRequested(t *testing.T) {
	t.Parallel()
	for status, want := range map[mediagate.Status]bool{
		mediagate.StatusPending: true, mediagate.StatusProcessing: true,
		mediagate.StatusCompleted: false, mediagate.StatusFailed: false, mediagate.StatusCancelled: false,
	} {
		t.Run(string(status), func(t *testing.T) {
			t.Parallel()
			task := mediagate.Task{Status: status}
			if view.Of(&task, 1000, nil).CancelRequested {
				t.Error("shown without a wish")
			}
			task.CancelRequestedAt = time.Unix(1, 0)
			if got := view.Of(&task, 1000, nil).CancelRequested; got != want {
				t.Errorf("shown: %t, want %t", got, want)
			}
		})
	}
}

// What is delivered are the files of the first role. A cover is the thumbnail
// of the file with its index.
func TestFilesOfOtherRolesAreNoItems(t *testing.T) {
	t.Parallel()
	at := time.Unix(1000, 0)
	task := mediagate.Task{
		Status: mediagate.StatusCompleted, Type: mediagate.TypeVideo, CreatedAt: at, EndedAt: at,
		Results: []mediagate.Result{
			{Role: mediagate.RoleCover, Index: 1, MimeType: "image/jpeg"},
			{MimeType: "video/mp4", Size: 1},
			{Index: 1, MimeType: "video/webm", Size: 2},
			{Role: "crop", MimeType: "image/png"},
		},
	}
	links := []mediagate.Link{
		{URL: "https://a/cover", ExpiresAt: at},
		{URL: "https://a/0", ExpiresAt: at},
		{URL: "https://a/1", ExpiresAt: at},
		{URL: "https://a/crop", ExpiresAt: at},
	}
	want := &view.Result{Videos: []view.Item{
		{URL: []string{"https://a/0"}, ExpiresAt: 1000, SizeBytes: 1, MimeType: "video/mp4"},
		{
			URL: []string{"https://a/1"}, ExpiresAt: 1000, SizeBytes: 2, MimeType: "video/webm", ThumbnailURL: "https://a/cover",
		},
	}}
	if diff := cmp.Diff(want, view.Of(&task, 1000, links).Result); diff != "" {
		t.Errorf("the unified view (-want +got):\n%s", diff)
	}
	legacy := view.LegacyOf(&task, links)
	if legacy.URL != "https://a/0" || legacy.Format != "mp4" || legacy.Metadata == nil || legacy.Metadata.SizeBytes != 1 {
		t.Errorf("the older poll shows %+v", legacy)
	}
}

// The stored task is not changed by showing it in another language.
func TestLanguageOfAView(t *testing.T) {
	t.Parallel()
	task := mediagate.Task{
		Status: mediagate.StatusFailed, Failure: &mediagate.Failure{Code: mediagate.CodeInternal, Message: "stored"},
	}
	v := view.Of(&task, 1000, nil)
	if got := v.In("ja").Error.Message; got != "内部エラーが発生しました" {
		t.Errorf("in Japanese: %s", got)
	}
	if v.In("").Error.Message != "stored" || v.Error.Message != "stored" || task.Failure.Message != "stored" {
		t.Errorf("the stored message became %q", task.Failure.Message)
	}
}
