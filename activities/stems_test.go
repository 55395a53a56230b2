package activities_test

import (
	"archive/zip"
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/sandbox/sample"
)

// stemsOf returns an outcome of stems with the names, at addresses by their number.
func stemsOf(names ...string) mediagate.Outcome {
	o := mediagate.Outcome{Succeeded: true}
	for i, name := range names {
		o.Media = append(
			o.Media,
			mediagate.Media{URL: "https://m.example.com/" + string(rune('0'+i)), Role: mediagate.RoleStem, Index: i, Name: name},
		)
	}
	return o
}

func readAll(tb testing.TB, r io.Reader) []byte {
	tb.Helper()
	b, err := io.ReadAll(r)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// serving returns a bundle whose task has stems with these files.
func serving(t *testing.T, o mediagate.Outcome, files ...[]byte) *bundle {
	t.Helper()
	b := musical(t, o)
	b.Store.EditTask(taskID, func(task *mediagate.Task) { task.Plan.MaxBytes = 8 << 20 })
	b.serves(numbered(files))
	return b
}

func numbered(files [][]byte) map[string][]byte {
	by := map[string][]byte{}
	for i, file := range files {
		by[string(rune('0'+i))] = file
	}
	return by
}

func (b *bundle) object(key string) []byte {
	b.t.Helper()
	body, _, err := b.Bucket.Open(b.t.Context(), key)
	b.ok(err)
	return readAll(b.t, body)
}

func TestStems(t *testing.T) {
	t.Parallel()
	vocals, drums := readAll(t, sample.MP3(2)), readAll(t, sample.WAV(3))
	var once, again mediagate.Result
	for _, made := range []*mediagate.Result{&once, &again} { // D13: a repetition makes the same bytes
		b := serving(t, stemsOf("vocals", "Drums"), vocals, drums)
		_, err := b.mirror()
		b.ok(err)
		*made = b.attempt(1).Results[0]
		b.objects(key(1, 0))
	}
	if once.Role != mediagate.RoleMain || once.Index != 0 || once.Key != key(1, 0) || once != again {
		t.Errorf("%+v, then %+v", once, again)
	}
}

// TestStemsAmongOtherFiles checks that the files of clip 1 keep that index, and that a cover
// among them stays one.
func TestStemsAmongOtherFiles(t *testing.T) {
	t.Parallel()
	o := stemsOf("", "a", "b")
	o.Media[0] = mediagate.Media{URL: o.Media[0].URL, Role: mediagate.RoleCover}
	sound := readAll(t, sample.MP3(1))
	b := serving(t, o, []byte("cover"), sound, sound)
	_, err := b.mirror()
	b.ok(err)
	same(t, "results", b.shown(), []string{"0 cover 0 image/test", "1 main 1 archive/test"})
}

// tagAlone is the tag at the beginning of a sound, without the sound.
var tagAlone = "ID3\x04\x00\x00\x00\x00\x00\x0a" + strings.Repeat("\x00", 20)

// TestStemsWithoutSome checks that files that are not stems are left out of the archive, and that
// the others keep their names.
func TestStemsWithoutSome(t *testing.T) {
	t.Parallel()
	sound := readAll(t, sample.MP3(1))
	for name, c := range map[string]struct {
		files [][]byte
		want  []string
	}{
		"no sound":              {[][]byte{sound, []byte("<html>"), sound}, []string{"stem-1.mp3", "stem-3.mp3"}},
		"no sound, the first":   {[][]byte{[]byte("<html>"), sound, sound}, []string{"stem-2.mp3", "stem-3.mp3"}},
		"a tag of a sound":      {[][]byte{sound, sound, []byte(tagAlone)}, []string{"stem-1.mp3", "stem-2.mp3"}},
		"empty":                 {[][]byte{sound, nil, nil}, []string{"stem-1.mp3"}},
		"empty, the first":      {[][]byte{nil, nil, sound}, []string{"stem-3.mp3"}},
		"an archive among them": {[][]byte{sound, packedBy(t, "a.mp3"), sound}, []string{"stem-1.mp3", "stem-3.mp3"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := serving(t, stemsOf("", "", ""), c.files...)
			_, err := b.mirror()
			b.ok(err)
			file := b.object(activities.ResultKey(taskID, 1, 0))
			archive, err := zip.NewReader(bytes.NewReader(file), int64(len(file)))
			b.ok(err)
			var names []string
			for _, f := range archive.File {
				names = append(names, f.Name)
				r, err := f.Open()
				b.ok(err)
				if !bytes.Equal(readAll(t, r), sound) {
					t.Errorf("%s is another file", f.Name)
				}
			}
			same(t, "names", names, c.want)
		})
	}
}

func TestStemsFail(t *testing.T) {
	t.Parallel()
	sound := readAll(t, sample.MP3(1))
	const code = mediagate.CodeResultUnavailable
	for name, c := range map[string]struct {
		files [][]byte
		kind  mediagate.Kind
	}{
		"no sound":         {[][]byte{[]byte("<html>"), []byte("<html>")}, mediagate.KindInvalid},
		"a tag of a sound": {[][]byte{nil, []byte(tagAlone)}, mediagate.KindInvalid},
		"empty":            {[][]byte{nil, nil}, mediagate.KindInvalid},
		"gone":             {[][]byte{sound}, mediagate.KindGone},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := serving(t, stemsOf("a", "b"), c.files...)
			_, err := b.mirror()
			kind(t, err, c.kind, code, false)
			if got := b.Bucket.Objects(); len(got) != 0 {
				t.Errorf("stored %v", got)
			}
		})
	}
	t.Run("a part breaks off", func(t *testing.T) {
		t.Parallel()
		for _, at := range []string{"/0", "/1"} {
			for _, n := range []int{10, 5000} {
				b := serving(t, stemsOf("a", "b"))
				long := readAll(t, sample.WAV(1))
				b.Fetcher.OnFetch = func(_ context.Context, url, _ string) (io.ReadCloser, int64, error) {
					if strings.HasSuffix(url, at) {
						return broken{io.MultiReader(bytes.NewReader(long[:n]), failing{})}, -1, nil
					}
					return io.NopCloser(bytes.NewReader(sound)), -1, nil
				}
				_, err := b.mirror()
				kind(t, err, mediagate.KindTransient, code, true)
			}
		}
	})
	t.Run("all of them together are too large", func(t *testing.T) {
		t.Parallel()
		b := serving(t, stemsOf("a", "b"), sound, sound)
		b.Store.EditTask(taskID, func(task *mediagate.Task) { task.Plan.MaxBytes = int64(len(sound)) + 1000 })
		_, err := b.mirror()
		kind(t, err, mediagate.KindTooLarge, "", false)
	})
}

// TestStemsFromFreshLinks checks that one dead link of a stem gets fresh links for all.
func TestStemsFromFreshLinks(t *testing.T) {
	t.Parallel()
	sound := readAll(t, sample.MP3(1))
	b := serving(t, stemsOf("a", "b"), sound)
	fresh := stemsOf("a", "b")
	for i := range fresh.Media {
		fresh.Media[i].URL = "https://m.example.com/fresh"
	}
	b.Async.End(taskID, fresh)
	b.serves(map[string][]byte{"0": sound, "fresh": sound})
	_, err := b.mirror()
	b.ok(err)
	archive, err := zip.NewReader(
		bytes.NewReader(b.object(activities.ResultKey(taskID, 1, 0))), b.attempt(1).Results[0].Size,
	)
	b.ok(err)
	if len(archive.File) != 2 || len(b.Async.Polls()) != 1 {
		t.Errorf("%d files after %d polls", len(archive.File), len(b.Async.Polls()))
	}
}

// packedBy returns an archive that a vendor has packed.
func packedBy(tb testing.TB, names ...string) []byte {
	tb.Helper()
	var file bytes.Buffer
	w := zip.NewWriter(&file)
	for _, name := range names {
		f, err := w.Create(name)
		if err == nil {
			_, err = io.Copy(f, sample.MP3(1))
		}
		if err != nil {
			tb.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return file.Bytes()
}

// TestStemsPackedByTheVendor checks that an archive that the vendor has packed is passed on as it
// is.
func TestStemsPackedByTheVendor(t *testing.T) {
	t.Parallel()
	file := packedBy(t, "vocals.mp3", "drums.mp3")
	for name, m := range map[string]mediagate.Media{
		"as a stem":     {URL: "https://m.example.com/0", Role: mediagate.RoleStem, Index: 1},
		"as the result": {URL: "https://m.example.com/0", Index: 1, MimeType: "application/zip"},
		"in the bucket": {
			Stored: &mediagate.Result{Key: "results/elsewhere", Size: int64(len(file))}, Role: mediagate.RoleStem, Index: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := serving(t, mediagate.Outcome{Succeeded: true, Media: []mediagate.Media{m}}, file)
			b.Bucket.Write("results/elsewhere", string(file))
			_, err := b.mirror()
			b.ok(err)
			same(t, "results", b.shown(), []string{"0 main 1 archive/test"})
			if !bytes.Equal(b.object(b.attempt(1).Results[0].Key), file) {
				t.Error("it is another file")
			}
		})
	}
}
