package activities_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/internal/limit"
	"github.com/mediagate/mediagate/task"
)

// naming returns a video task whose request names n images, one film and one sound, with the
// bounds of each.
func naming(bounds ...mediagate.Input) func(*activitytest.World) mediagate.Task {
	return func(w *activitytest.World) mediagate.Task {
		task := w.NewVideo()
		task.Params = json.RawMessage(`{"prompt":"p","image_urls":["https://m.example.com/0","https://m.example.com/1","https://m.example.com/2"],` +
			`"video_urls":["https://m.example.com/film"],"audio_urls":["https://m.example.com/sound"],"subjects":[{"face":{"url":"https://m.example.com/face"}}]}`)
		task.Plan.Inputs = bounds
		return task
	}
}

func input(field string, bounds mediagate.MediaBounds) mediagate.Input {
	return mediagate.Input{Field: field, MediaBounds: bounds}
}

var anImage = mediagate.MediaBounds{Kind: "image", MinSide: 128}

// serves answers for addresses by their last element. All others are gone.
func (b *bundle) serves(files map[string][]byte) {
	b.Fetcher.OnFetch = func(_ context.Context, url, _ string) (io.ReadCloser, int64, error) {
		file, ok := files[strings.TrimPrefix(url, "https://m.example.com/")]
		if !ok {
			return nil, 0, mediagate.Errorf(mediagate.KindGone, "404")
		}
		return io.NopCloser(bytes.NewReader(file)), int64(len(file)), nil
	}
}

// unfetched fails to open any file.
func unfetched(kind mediagate.Kind) func(context.Context, string, string) (io.ReadCloser, int64, error) {
	return func(context.Context, string, string) (io.ReadCloser, int64, error) {
		return nil, 0, mediagate.Errorf(kind, "no file")
	}
}

func (b *bundle) check() (activities.Answer, error) { return b.tryStep(task.CheckInputs, 0) }

// found returns the check as it is stored.
func (b *bundle) found() mediagate.InputCheck {
	b.t.Helper()
	return b.state().Inputs
}

func box(id string, payload ...[]byte) []byte {
	body := bytes.Join(payload, nil)
	return append(append(binary.BigEndian.AppendUint32(nil, uint32(8+len(body))), id...), body...)
}

func words(values ...uint32) []byte {
	var b []byte
	for _, v := range values {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	return b
}

// TestCheckInputsWhileAServerIsAway checks that a server that is away is asked again, and that
// files that were found good are not fetched a second time.
func TestCheckInputsWhileAServerIsAway(t *testing.T) {
	t.Parallel()
	b := setup(
		t, naming(input("image_urls[0]", anImage), input("image_urls[1]", anImage), input("image_urls[2]", anImage)),
	)
	good := []byte(bomb(256, 256))
	b.serves(map[string][]byte{"0": good, "2": good})
	files := b.Fetcher.OnFetch
	var away atomic.Bool
	away.Store(true)
	b.Fetcher.OnFetch = func(ctx context.Context, url, channel string) (io.ReadCloser, int64, error) {
		switch {
		case !strings.HasSuffix(url, "/1"):
			return files(ctx, url, channel)
		case away.Load():
			return nil, 0, mediagate.Errorf(mediagate.KindTransient, "503")
		default:
			return io.NopCloser(bytes.NewReader(good)), -1, nil
		}
	}
	for n := 1; n <= 2; n++ {
		_, err := b.check()
		kind(t, err, mediagate.KindTransient, "", true)
		if diff := cmp.Diff(
			mediagate.InputCheck{Passed: []string{"image_urls[0]", "image_urls[2]"}, Tries: n}, b.found(),
		); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	}
	away.Store(false)
	answer, err := b.check()
	b.ok(err)
	if j := b.found(); answer.Step.Kind != task.Submit || !j.Over || j.Failure != nil {
		t.Errorf("check %+v", j)
	}
	for file, want := range map[string]int{"0": 1, "1": 3, "2": 1} {
		if got := b.fetched(file); got != want {
			t.Errorf("file %s was fetched %d times, want %d", file, got, want)
		}
	}
}

// TestCheckInputsEndsWithTheServerAway checks that a server that stays away ends the task after a
// few tries.
func TestCheckInputsEndsWithTheServerAway(t *testing.T) {
	t.Parallel()
	b := setup(t, naming(input("image_urls[0]", anImage)))
	b.Fetcher.OnFetch = unfetched(mediagate.KindTransient)
	for range 4 {
		_, err := b.check()
		kind(t, err, mediagate.KindTransient, "", true)
	}
	_, err := b.check()
	b.ok(err)
	want := &mediagate.Failure{
		Code: mediagate.CodeImageProcessing, Message: "image_urls[0] cannot be fetched: its server does not answer",
		Retryable: true,
	}
	same(t, "failure", b.found().Failure, want)
}

// TestCheckInputsNamesTheFirst checks that the first of several bad files is named, whichever is
// found first, and that servers that are away do not delay that.
func TestCheckInputsNamesTheFirst(t *testing.T) {
	t.Parallel()
	b := setup(
		t, naming(input("image_urls[0]", anImage), input("image_urls[1]", anImage), input("image_urls[2]", anImage)),
	)
	late := make(chan struct{})
	b.Fetcher.OnFetch = func(ctx context.Context, url, _ string) (io.ReadCloser, int64, error) {
		switch url[len(url)-1] {
		case '0':
			return nil, 0, mediagate.Errorf(mediagate.KindTransient, "away")
		case '1':
			<-late
			return io.NopCloser(strings.NewReader(bomb(64, 64))), -1, nil
		default:
			close(late)
			return io.NopCloser(strings.NewReader(bomb(65, 65))), -1, nil
		}
	}
	_, err := b.check()
	b.ok(err)
	if f := b.found().Failure; f == nil || !strings.HasPrefix(f.Message, "image_urls[1] is 64") {
		t.Errorf("failure %+v", f)
	}
}

// TestCheckInputsAfterADeath checks that after a death between check and record another worker
// does the work, and that the first result stays.
func TestCheckInputsAfterADeath(t *testing.T) {
	t.Parallel()
	b := setup(t, naming(input("image_urls[0]", anImage)))
	b.serves(map[string][]byte{"0": []byte(bomb(64, 64))})
	b.Store.Fault = failsWith("Change", mediagate.Errorf(mediagate.KindInternal, "killed"))
	_, err := b.check()
	kind(t, err, mediagate.KindInternal, "", true)
	b.Store.Fault = nil
	answer, err := b.check()
	b.ok(err)
	if f := b.found().Failure; answer.Step.Kind != task.Settle || f == nil || f.Code != mediagate.CodeInvalidParameters {
		t.Fatalf("answer %+v, failure %+v", answer, f)
	}
	b.serves(map[string][]byte{"0": []byte(bomb(256, 256))})
	if _, err := b.check(); err != nil || b.found().Failure == nil {
		t.Errorf("checked again: %+v, %v", b.found(), err)
	}
	if n := len(b.Fetcher.URLs()); n != 2 {
		t.Errorf("fetched %d times", n)
	}
}

// TestCheckInputsWithoutNeed checks that nothing is fetched for a task that has ended, is to be
// cancelled, or is gone.
func TestCheckInputsWithoutNeed(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*bundle){
		"ended":     func(b *bundle) { b.change(task.CancelRequested{}, task.EndDue{}) },
		"cancelled": func(b *bundle) { b.change(task.CancelRequested{}) },
		"gone":      func(b *bundle) { b.Store.Remove(taskID) },
	} {
		b := setup(t, naming(input("image_urls[0]", anImage)))
		edit(b)
		answer, err := b.check()
		if err != nil || answer.Missing != (name == "gone") || len(b.Fetcher.URLs()) > 0 {
			t.Errorf("%s: %+v, %v", name, answer, err)
		}
	}
}

// flood is a file without end.
type flood struct {
	ctx   context.Context
	pause time.Duration
	size  int
}

func (f *flood) Read(p []byte) (int, error) {
	if f.pause > 0 {
		select {
		case <-f.ctx.Done():
			return 0, errors.New("hung up")
		case <-time.After(f.pause):
		}
	}
	n := min(len(p), f.size)
	clear(p[:n])
	return n, nil
}

// TestCheckInputsHasALimit checks that all of a task's files share one limit.
func TestCheckInputsHasALimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var many []mediagate.Input
		for range 20 {
			many = append(many, input("video_urls[0]", mediagate.MediaBounds{Kind: "video", MinSide: 9}))
		}
		for i := range many {
			many[i].Field = "video_urls[0]"
		}
		b := setup(t, naming(many...))
		b.Fetcher.OnFetch = func(ctx context.Context, _, _ string) (io.ReadCloser, int64, error) {
			head := slices.Concat(box("ftyp", []byte("isom\x00\x00\x02\x00isommp41")), words(0), []byte("mdat"))
			return io.NopCloser(io.MultiReader(bytes.NewReader(head), &flood{ctx: ctx, pause: time.Second, size: 4096})), -1, nil
		}
		b.Activities.Settings.InputPace.Whole = 4 * time.Minute
		began := time.Now()
		_, err := b.check()
		b.ok(err)
		if took := time.Since(began); took > b.Activities.Settings.CheckTime+time.Second || b.found().Failure == nil {
			t.Errorf("it took %v: %+v", took, b.found())
		}
	})
}

// TestCheckInputsLeavesTheRest checks that a file whose fetch could not begin in the time of the
// check is left to the next try, and does not fail the task as too slow.
func TestCheckInputsLeavesTheRest(t *testing.T) {
	t.Parallel()
	b := setup(t, naming(input("image_urls[0]", anImage)))
	b.Activities.Settings.CheckTime = -1 // the time is over before the first fetch
	b.Fetcher.OnFetch = func(ctx context.Context, _, _ string) (io.ReadCloser, int64, error) {
		return nil, 0, context.Cause(ctx)
	}
	_, err := b.check()
	kind(t, err, mediagate.KindTransient, "", true)
	same(t, "check", b.found(), mediagate.InputCheck{Tries: 1})
}

// TestCheckInputsWithoutTheBucket checks that a fault of ours says nothing about the file.
func TestCheckInputsWithoutTheBucket(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		edit func(*mediagate.Task)
		kind mediagate.Kind
	}{
		"no such field": {
			func(t *mediagate.Task) { t.Plan.Inputs[0].Field = "image_urls[7]" }, mediagate.KindInternal,
		},
		"a request that is none": {func(t *mediagate.Task) { t.Params = json.RawMessage(`{`) }, mediagate.KindInternal},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, naming(input("image_urls[0]", anImage)))
			b.Store.EditTask(taskID, c.edit)
			_, err := b.check()
			kind(t, err, c.kind, "", true)
			same(t, "check", b.found(), mediagate.InputCheck{})
		})
	}
}

// TestCheckSurvivesAPanic checks that a file that makes a reader panic fails one step of its own
// task, and does not end the process of all others.
func TestCheckSurvivesAPanic(t *testing.T) {
	t.Parallel()
	b := setup(t, naming(input("image_urls[0]", anImage), input("image_urls[1]", anImage)))
	b.Fetcher.OnFetch = func(context.Context, string, string) (io.ReadCloser, int64, error) {
		return io.NopCloser(panicking{}), -1, nil
	}
	_, err := b.check()
	kind(t, err, mediagate.KindInternal, "", true)
	if j := b.found(); j.Over || len(j.Passed) > 0 {
		t.Errorf("%+v", j)
	}
}

type panicking struct{}

func (panicking) Read([]byte) (int, error) { panic("index out of range") }

// TestD18InputsOfABusyAccount checks that an account whose files come slowly delays only its own
// tasks: they give their slots back within seconds and come again later, and another account's
// files are checked meanwhile.
func TestD18InputsOfABusyAccount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, naming(input("image_urls[0]", anImage)))
		b.Activities.Limits.Inputs = limit.New("inputs", 4)
		var opened atomic.Int32
		b.Fetcher.OnFetch = func(ctx context.Context, url, _ string) (io.ReadCloser, int64, error) {
			if strings.HasSuffix(url, "/good") {
				return io.NopCloser(strings.NewReader(bomb(256, 256))), -1, nil
			}
			opened.Add(1)
			return io.NopCloser(&flood{ctx: ctx, pause: time.Second, size: 1}), -1, nil
		}
		check := func(id, account, path string) error {
			added := naming(input("image_urls[0]", anImage))(b.World)
			added.ID, added.AccountID, added.Params = id, account, json.RawMessage(
				`{"image_urls":["https://m.example.com/`+path+`"]}`,
			)
			b.Store.Add(added)
			_, err := newEnv(b.World).ExecuteActivity(b.Activities.CheckInputs, stepOf(id, task.CheckInputs, 0))
			return err
		}
		began := time.Now()
		late := make(chan error, 6)
		for i := range cap(late) {
			go func() { late <- check(fmt.Sprint("task_slow_", i), "acc_slow", "drip") }()
		}
		synctest.Wait()
		if opened.Load() != 2 {
			t.Errorf("%d files of one account are open, want half of 4", opened.Load())
		}
		b.ok(check("task_other", "acc_other", "good"))
		if st, err := b.Store.State(
			t.Context(), "task_other", 0,
		); err != nil || !st.Inputs.Over || st.Inputs.Failure != nil || time.Since(began) > 0 {
			t.Errorf("another account's file after %v: %+v, %v", time.Since(began), st.Inputs, err)
		}
		for range cap(late) - 2 {
			kind(t, <-late, mediagate.KindCapacity, activities.CodeNoPermit, true)
		}
		if took := time.Since(began); took > b.Activities.Settings.PermitWait {
			t.Errorf("the others held their slots for %v", took)
		}
		for range 2 {
			b.ok(<-late)
		}
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("files that drip held their permits for %v", took)
		}
	})
}

// TestCheckInputsWithinTheDay checks that no more is fetched for an account than a day allows.
// Its other files wait, which does not count as a try, and files that were found good are not
// fetched again.
func TestCheckInputsWithinTheDay(t *testing.T) {
	t.Parallel()
	const large = 1 << 20
	b := setup(t, naming(input("image_urls[0]", anImage), input("video_urls[0]", mediagate.MediaBounds{Kind: "video"})))
	film := box("ftyp", []byte("isom"), words(0), []byte("isom"))
	film = append(film, box("free", make([]byte, 2*large-len(film)-8))...)
	b.serves(map[string][]byte{"0": []byte(bomb(256, 256)), "film": film})
	day := &allowance{Store: b.Store, most: 10, fetched: 10}
	b.Activities.Store = day
	_, err := b.check()
	kind(t, err, mediagate.KindCapacity, activities.CodeNoPermit, true)
	if j := b.found(); j.Over || j.Tries > 0 {
		t.Errorf("it waits for tomorrow, and the check is %+v", j)
	}
	if got := day.fetched; got != 10 {
		t.Errorf("%d bytes count of files that were not read", got-10)
	}

	day.most = large
	_, err = b.check()
	kind(t, err, mediagate.KindCapacity, activities.CodeNoPermit, true)
	if j := b.found(); !slices.Equal(j.Passed, []string{"image_urls[0]"}) || j.Over || j.Tries > 0 {
		t.Errorf("one of two files could be looked at, and the check is %+v", j)
	}

	day.most = 4 * large
	_, err = b.check()
	b.ok(err)
	if j := b.found(); j.Failure == nil {
		t.Errorf("the film has no tracks, and the check is %+v", j)
	}
	if got, want := day.fetched, int64(10+len(film)+len(bomb(256, 256))); got != want {
		t.Errorf("%d bytes count, want the %d of both files and 10 before", got, want)
	}
	if pictures := b.fetched("0"); pictures != 2 {
		t.Errorf("the picture was fetched %d times", pictures)
	}
}

// allowance is a store that allows so many bytes for an account's files. The real number is far
// larger than a test would fetch.
type allowance struct {
	activities.Store
	most    int64
	mu      sync.Mutex
	fetched int64
}

func (a *allowance) TakeFetched(_ context.Context, _ string, bytes int64) (taken int64, ok bool, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	taken = min(bytes, a.most)
	if a.fetched+taken > a.most {
		return taken, false, nil
	}
	a.fetched += taken
	return taken, true, nil
}

// TestCheckInputsCountsWhatItReads checks that bytes that are not read do not count, and that no
// more is given back than was taken: less than the file's size if the file is larger than a day
// allows.
func TestCheckInputsCountsWhatItReads(t *testing.T) {
	t.Parallel()
	const large = 4 << 20
	for _, day := range []int64{10 * large, large, large / 4} {
		b := setup(t, naming(input("image_urls[0]", anImage)))
		counted := &allowance{Store: b.Store, most: day}
		b.Activities.Store = counted
		b.serves(map[string][]byte{"0": append([]byte("<html>"), make([]byte, large)...)})
		_, err := b.check()
		b.ok(err)
		if got := counted.fetched; got <= 0 || got > large/8 {
			t.Errorf("with %d a day, %d bytes count of a page whose first bytes tell that it is no picture", day, got)
		}
	}
}

// TestTriesOfACheck checks that waiting for a permit does not count as a try, however often, and
// that a check that a fault of ours ends is not tried for ever.
func TestTriesOfACheck(t *testing.T) {
	t.Parallel()
	b := setup(t, naming(input("image_urls[7]", anImage))) // the request has no such field
	b.Activities.Limits.Inputs, b.Activities.Settings.PermitWait = limit.New("inputs", 1), time.Millisecond
	held, _ := b.Activities.Limits.Inputs.TryAcquire("others", 1)
	tries := 0
	err := b.repeated(b.Activities.CheckInputs, stepOf(taskID, task.CheckInputs, 0), func(attempt int32) {
		if tries++; attempt == 20 {
			held.Release()
		}
	})
	if err == nil || tries != 19+12 {
		t.Errorf("it ends with %v after %d tries, want 12 beside 19 without a permit", err, tries)
	}
}
