package activities_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
)

// song returns an outcome with all the extra files of a song.
func song() mediagate.Outcome {
	return mediagate.Outcome{Succeeded: true, Media: []mediagate.Media{
		{URL: "https://m.example.com/cover", Role: mediagate.RoleCover},
		{URL: "https://m.example.com/song", Duration: 120},
		{URL: "https://m.example.com/wav", Role: mediagate.RoleWAV},
		{URL: "https://m.example.com/film", Role: mediagate.RoleFilm},
		{URL: "https://m.example.com/second", Index: 1},
		{URL: "https://m.example.com/second-cover", Role: mediagate.RoleCover, Index: 1},
	}}
}

// songFiles are the results of a song that is copied whole, see shown.
var songFiles = []string{
	"0 cover 0 image/test", "1 main 0 audio/test", "2 wav 0 audio/test", "3 film 0 video/test", "4 main 1 audio/test",
	"5 cover 1 image/test",
}

// without has the fetcher fail for some addresses, by their last element.
func (b *bundle) without(err error, names ...string) {
	b.Fetcher.OnFetch = func(_ context.Context, url, _ string) (io.ReadCloser, int64, error) {
		for _, name := range names {
			if strings.HasSuffix(url, "/"+name) {
				return nil, 0, err
			}
		}
		return io.NopCloser(strings.NewReader(url)), int64(len(url)), nil
	}
}

// fetched returns how often an address was opened, by its last element.
func (b *bundle) fetched(name string) (times int) {
	for _, url := range b.Fetcher.URLs() {
		if strings.HasSuffix(url, "/"+name) {
			times++
		}
	}
	return times
}

// shown returns the results of attempt 1, in order.
func (b *bundle) shown() []string {
	b.t.Helper()
	var shown []string
	for _, r := range b.attempt(1).Results {
		role := string(r.Role)
		if r.Role == mediagate.RoleMain {
			role = "main"
		}
		shown = append(
			shown, strings.TrimPrefix(r.Key, "results/"+taskID+"/1/")+" "+role+" "+string(rune('0'+r.Index))+" "+r.MimeType,
		)
	}
	return shown
}

func musical(t *testing.T, o mediagate.Outcome) *bundle {
	t.Helper()
	b := succeeded(t, o)
	b.Store.EditTask(taskID, func(task *mediagate.Task) { task.Plan.Media = "audio" })
	return b
}

// TestRoles checks that main files are copied first, and that each file has the class of its
// role.
func TestRoles(t *testing.T) {
	t.Parallel()
	b := musical(t, song())
	_, err := b.mirror()
	b.ok(err)
	same(t, "results", b.shown(), songFiles)
	if got := b.Bucket.Writes()[:2]; !strings.HasSuffix(got[0], "/1/1") || !strings.HasSuffix(got[1], "/1/4") {
		t.Errorf("written first: %v", got)
	}
	if got := b.attempt(1).Results[1].Duration; got != 120 {
		t.Errorf("the song lasts %v", got)
	}
}

// TestExtraFilesAreLeftOut checks that a song that is there does not fail because of its cover.
func TestExtraFilesAreLeftOut(t *testing.T) {
	t.Parallel()
	all := songFiles
	for name, c := range map[string]struct {
		err  error
		gone []string
		left []string
	}{
		"dead links": {
			mediagate.Errorf(mediagate.KindGone, "404"), []string{"cover", "film"}, []string{all[1], all[2], all[4], all[5]},
		},
		"no media": {
			mediagate.Errorf(mediagate.KindInvalid, "private"),
			[]string{"wav"},
			[]string{all[0], all[1], all[3], all[4], all[5]},
		},
		"all of it": {
			mediagate.Errorf(mediagate.KindGone, "404"),
			[]string{"cover", "wav", "film", "second-cover"},
			[]string{all[1], all[4]},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := musical(t, song())
			b.without(c.err, c.gone...)
			b.Async.End(taskID, song())
			_, err := b.mirror()
			b.ok(err)
			same(t, "results", b.shown(), c.left)
		})
	}
	t.Run("a fresh link works", func(t *testing.T) {
		t.Parallel()
		b := musical(t, song())
		b.without(mediagate.Errorf(mediagate.KindGone, "404"), "cover")
		fresh := song()
		fresh.Media[0].URL += "-anew"
		b.Async.End(taskID, fresh)
		_, err := b.mirror()
		b.ok(err)
		same(t, "results", b.shown(), all)
	})
	t.Run("not what it is about, while nobody has other links", func(t *testing.T) {
		t.Parallel()
		b := musical(t, song())
		b.without(mediagate.Errorf(mediagate.KindGone, "404"), "second")
		_, err := b.mirror()
		kind(t, err, mediagate.KindGone, mediagate.CodeResultUnavailable, false)
	})
	t.Run("not what the bucket failed at", func(t *testing.T) {
		t.Parallel()
		b := musical(t, song())
		b.Bucket.OnMirror = func(key string) error {
			if strings.HasSuffix(key, "/0") {
				return &mediagate.Error{Kind: mediagate.KindUnavailable, Code: string(mediagate.ParkStorage), Message: "away"}
			}
			return nil
		}
		_, err := b.mirror()
		kind(t, err, mediagate.KindUnavailable, mediagate.ParkStorage, true)
	})
}

// TestExtraFilesAreWaitedFor checks that a server that is away gets time: an extra file is left
// out by the third activity in a row.
func TestExtraFilesAreWaitedFor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file  string
		tries int
		ends  bool
	}{
		"a cover":  {"cover", 3, true},
		"the song": {"song", 5, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := musical(t, song())
			b.without(mediagate.Errorf(mediagate.KindTransient, "away"), c.file)
			if err := b.repeated(b.Activities.MirrorResult, firstCopy()); (err == nil) != c.ends {
				t.Errorf("it ends with %v", err)
			}
			if tries := b.fetched(c.file); tries != c.tries || b.attempt(1).Mirrored() != c.ends {
				t.Errorf("asked for %d times, mirrored %v", tries, b.attempt(1).Mirrored())
			}
		})
	}
}

// TestMadeWithoutFiles checks that voices and descriptions are results without files, and that
// nothing else without files is a result.
func TestMadeWithoutFiles(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		made *mediagate.Made
		ends bool
	}{
		"voices":       {&mediagate.Made{Voices: []string{"v"}}, true},
		"descriptions": {&mediagate.Made{Descriptions: []string{"a cat"}}, true},
		"nothing":      {nil, false},
		"empty":        {&mediagate.Made{Prompt: "p"}, false},
		"songs":        {&mediagate.Made{Clips: []mediagate.Clip{{ID: "c"}}}, false},
		"buttons":      {&mediagate.Made{Buttons: []mediagate.Button{{CustomID: "b"}}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := succeeded(t, mediagate.Outcome{Succeeded: true, Made: c.made})
			b.Store.EditTask(taskID, func(task *mediagate.Task) {
				task.Charges = []mediagate.Charge{{Item: "voice", Unit: mediagate.UnitOperation, Quantity: 1, UnitPrice: 40_000}}
			})
			answer, err := b.mirror()
			if !c.ends {
				kind(t, err, mediagate.KindInvalid, mediagate.CodeResultUnavailable, false)
				return
			}
			b.ok(err)
			if row := b.attempt(1); !row.Mirrored() || len(row.Results) != 0 {
				t.Errorf("attempt %+v", row)
			}
			if cost := b.Store.End(taskID).Cost; answer.Status != mediagate.StatusCompleted || cost != 40_000 {
				t.Errorf("answer %+v, cost %v", answer, cost)
			}
		})
	}
}

// TestPiecesAreLeftOut checks that a piece that cannot be had is left out, and that the others
// keep their numbers.
func TestPiecesAreLeftOut(t *testing.T) {
	t.Parallel()
	without := func(i int) []string { return slices.Delete(slices.Clone(songFiles), i, i+1) }
	for name, c := range map[string]struct {
		err   error
		gone  []string
		late  bool // the job has ended long ago
		tries int  // how often each missing piece was tried
		want  []string
		fails mediagate.Kind // the error, if want is empty
	}{
		"a page in place of the first": {
			mediagate.Errorf(mediagate.KindInvalid, "HTML"), []string{"song"}, false, 1, without(1), 0,
		},
		"a page in place of the second": {
			mediagate.Errorf(mediagate.KindInvalid, "HTML"), []string{"second"}, false, 1, without(4), 0,
		},
		"too large": {
			mediagate.Errorf(mediagate.KindTooLarge, "large"), []string{"second"}, false, 1, without(4), 0,
		},
		"refused, with fresh links too": {
			mediagate.Errorf(mediagate.KindGone, "403"), []string{"second"}, false, 10, without(4), 0,
		},
		"both are pages": {
			mediagate.Errorf(mediagate.KindInvalid, "HTML"), []string{"song", "second"}, false, 1, nil, mediagate.KindInvalid,
		},
		"both are refused": {
			mediagate.Errorf(mediagate.KindGone, "403"), []string{"song", "second"}, false, 0, nil, mediagate.KindInvalid,
		},
		"away for a moment": {
			mediagate.Errorf(mediagate.KindTransient, "away"), []string{"second"}, false, 10, nil, mediagate.KindTransient,
		},
		"away for long": {
			mediagate.Errorf(mediagate.KindTransient, "away"), []string{"second"}, true, 2, without(4), 0,
		},
		"both away for long": {
			mediagate.Errorf(mediagate.KindTransient, "away"), []string{"song", "second"}, true, 0, nil, mediagate.KindTransient,
		},
		"the channel's word is needed": {
			mediagate.Errorf(mediagate.KindUnreached, "none"), []string{"second"}, true, 0, nil, mediagate.KindUnreached,
		},
		"the bucket's fault is nobody's": {
			mediagate.Errorf(mediagate.KindUnavailable, "away"), []string{"second"}, true, 0, nil, mediagate.KindUnavailable,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := musical(t, song())
			b.without(c.err, c.gone...)
			b.Async.End(taskID, song())
			if c.late {
				b.Activities.Now = func() time.Time { return time.Now().Add(time.Hour) }
			}
			err := b.repeated(b.Activities.MirrorResult, firstCopy())
			if c.want == nil {
				if got := activities.FromTemporal(errors.Unwrap(errors.Unwrap(err))); err == nil || got.Kind != c.fails {
					t.Errorf("it ends with %v, want %s", err, c.fails)
				}
				return
			}
			b.ok(err)
			same(t, "results", b.shown(), c.want)
			if tries := b.fetched(c.gone[0]); tries != c.tries {
				t.Errorf("asked for %d times, want %d", tries, c.tries)
			}
		})
	}
}
