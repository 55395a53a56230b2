package activities_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/internal/failpoint"
	"github.com/mediagate/mediagate/task"
)

func media(urls ...string) mediagate.Outcome {
	o := mediagate.Outcome{Succeeded: true, Seconds: 5}
	for _, url := range urls {
		o.Media = append(o.Media, mediagate.Media{URL: url})
	}
	return o
}

func (b *bundle) mirror() (activities.Answer, error) { return b.tryStep(task.Mirror, 1) }

// firstCopy names the first attempt, whose result has to be copied.
func firstCopy() activities.StepArgs { return stepOf(taskID, task.Mirror, 1) }

func TestMirror(t *testing.T) {
	t.Parallel()
	b := succeeded(t, media("https://m.example.com/a", "https://m.example.com/b"))
	answer, err := b.mirror()
	b.ok(err)
	if answer.Status != mediagate.StatusCompleted || answer.Step.Kind != task.Done {
		t.Errorf("answer %+v", answer)
	}
	want := []string{"results/" + taskID + "/1/0", "results/" + taskID + "/1/1"}
	same(t, "objects", b.Bucket.Objects(), want)
	results := b.attempt(1).Results
	if len(results) != 2 || results[0].Key != want[0] || results[1].Size != int64(len("https://m.example.com/b")) {
		t.Errorf("results %+v", results)
	}
	// D13: a repetition copies nothing more.
	_, err = b.mirror()
	b.ok(err)
	if got := b.Bucket.Writes(); len(got) != 2 {
		t.Errorf("writes %v, want 2", got)
	}
}

// TestMirrorIsBounded checks that the number of copied files is not left to the vendor.
func TestMirrorIsBounded(t *testing.T) {
	t.Parallel()
	urls := make([]string, 500)
	for i := range urls {
		urls[i] = fmt.Sprintf("https://m.example.com/%d", i)
	}
	b := succeeded(t, media(urls...))
	_, err := b.mirror()
	b.ok(err)
	if got := len(b.Bucket.Objects()); got != 32 || len(b.attempt(1).Results) != got {
		t.Errorf("%d files copied, %d in the row", got, len(b.attempt(1).Results))
	}
}

// TestD13CopyIsRepeatedWithoutASecondObject checks that a copy that was not recorded is made
// again under the same keys.
func TestD13CopyIsRepeatedWithoutASecondObject(t *testing.T) {
	t.Parallel()
	b := succeeded(t, media("https://m.example.com/a"))
	failures := 0
	b.Store.Fault = func(method string) error {
		if method == "Change" && failures < 2 { // the second try only stores the files
			failures++
			return mediagate.Errorf(mediagate.KindUnavailable, "the database is away")
		}
		return nil
	}
	_, err := b.mirror()
	kind(t, err, mediagate.KindUnavailable, "", true)
	_, err = b.mirror()
	b.ok(err)
	if got := b.Bucket.Objects(); len(b.Bucket.Writes()) != 2 || len(got) != 1 {
		t.Errorf("objects %v after %d writes, want one after two", got, len(b.Bucket.Writes()))
	}
}

// TestD12DeadLinkIsAskedForAnew checks that the vendor is asked once for a new link if a link is
// dead.
func TestD12DeadLinkIsAskedForAnew(t *testing.T) {
	t.Parallel()
	const dead, alive = "https://m.example.com/dead", "https://m.example.com/alive"
	fetch := func(b *bundle, kind mediagate.Kind) {
		b.Fetcher.OnFetch = func(_ context.Context, url, _ string) (io.ReadCloser, int64, error) {
			if url == dead {
				return nil, 0, mediagate.Errorf(kind, "dead")
			}
			return io.NopCloser(strings.NewReader(url)), int64(len(url)), nil
		}
	}
	for _, k := range []mediagate.Kind{mediagate.KindGone, mediagate.KindTransient} {
		t.Run(k.String()+", fresh links work", func(t *testing.T) {
			t.Parallel()
			b := succeeded(t, media("https://m.example.com/first", dead))
			fetch(b, k)
			b.Async.End(taskID, media("https://m.example.com/first", alive))
			_, err := b.mirror()
			b.ok(err)
			if !b.attempt(1).Mirrored() || len(b.Async.Polls()) != 1 {
				t.Errorf("attempt %+v after %d polls, want mirrored after one", b.attempt(1), len(b.Async.Polls()))
			}
			urls := b.Fetcher.URLs()
			same(t, "fetched", urls, []string{"https://m.example.com/first", dead, alive})
		})
		t.Run(k.String()+", fresh links are dead too", func(t *testing.T) {
			t.Parallel()
			b := succeeded(t, media(dead))
			fetch(b, k)
			b.Async.End(taskID, media(dead))
			_, err := b.mirror()
			kind(t, err, mediagate.KindTransient, mediagate.CodeResultUnavailable, true) // they may begin to work
			if got := len(b.Async.Polls()); got != 1 {
				t.Errorf("%d polls, want one", got)
			}
		})
	}
	never := map[string]func(*bundle){
		"the vendor is away": func(b *bundle) {
			b.Async.OnPoll = unreported(mediagate.KindTransient)
		},
		"no channel": func(b *bundle) { b.Channels.Set() },
		"another account": func(b *bundle) {
			other, _ := b.Stranger()
			b.Channels.Set(other)
		},
	}
	for name, leave := range never {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := succeeded(t, media(dead))
			fetch(b, mediagate.KindGone)
			leave(b)
			_, err := b.mirror()
			kind(t, err, mediagate.KindGone, mediagate.CodeResultUnavailable, false)
		})
	}
}

// broken is a file that breaks off.
type broken struct{ io.Reader }

func (broken) Close() error { return nil }

func TestMirrorBlamesTheRightSide(t *testing.T) {
	t.Parallel()
	away := &mediagate.Error{Kind: mediagate.KindUnavailable, Code: string(mediagate.ParkStorage), Message: "away"}
	for name, c := range map[string]struct {
		scene func(*bundle)
		kind  mediagate.Kind
		code  string
		again bool
	}{
		"the source breaks off": {func(b *bundle) {
			b.Fetcher.OnFetch = func(context.Context, string, string) (io.ReadCloser, int64, error) {
				return broken{io.MultiReader(strings.NewReader("half"), failing{})}, 8, nil
			}
		}, mediagate.KindTransient, string(mediagate.CodeResultUnavailable), true},
		"the bucket is away": {func(b *bundle) {
			b.Bucket.OnMirror = func(string) error { return away }
		}, mediagate.KindUnavailable, string(mediagate.ParkStorage), true},
		"an address against the rules": {func(b *bundle) {
			b.without(mediagate.Errorf(mediagate.KindInvalid, "private"), "a")
		}, mediagate.KindInvalid, string(mediagate.CodeResultUnavailable), false},
		"an address that may be the channel's own": {func(b *bundle) {
			b.Fetcher.OnFetch = func(_ context.Context, _, channel string) (io.ReadCloser, int64, error) {
				if channel != "" {
					t.Errorf("the channel of another account, %q, is trusted", channel)
				}
				return nil, 0, mediagate.Errorf(mediagate.KindInvalid, "private")
			}
			other, _ := b.Stranger()
			b.Channels.Set(other)
		}, mediagate.KindUnreached, string(mediagate.ParkChannelMissing), true},
		"too large": {func(b *bundle) {
			b.Store.EditTask(taskID, func(task *mediagate.Task) { task.Plan.MaxBytes = 3 })
		}, mediagate.KindTooLarge, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := succeeded(t, media("https://m.example.com/a"))
			c.scene(b)
			_, err := b.mirror()
			kind(t, err, c.kind, c.code, c.again)
			if got := len(b.Async.Polls()); name == "the bucket is away" && got != 0 {
				t.Errorf("the vendor was asked for fresh links %d times", got)
			}
		})
	}
	t.Run("the bucket is still away", func(t *testing.T) {
		t.Parallel()
		b := succeeded(t, media("https://m.example.com/a"))
		b.Store.Park(taskID, mediagate.ParkStorage)
		b.Bucket.OnProbe = func() error { return away }
		_, err := b.mirror()
		kind(t, err, mediagate.KindUnavailable, mediagate.ParkStorage, false)
		if got := len(b.Fetcher.URLs()); got != 0 {
			t.Errorf("the file was fetched %d times for a bucket that takes none", got)
		}
		b.Bucket.OnProbe = nil
		if answer, err := b.mirror(); err != nil || answer.Status != mediagate.StatusCompleted {
			t.Errorf("once the bucket is back: %+v (%v)", answer, err)
		}
	})
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("connection reset") }

// TestMirrorNothing checks that nothing is copied for a task that has ended, or for an attempt
// without success.
func TestMirrorNothing(t *testing.T) {
	t.Parallel()
	b := succeeded(t, media("https://m.example.com/a"))
	b.change(task.CancelRequested{}, task.EndDue{})
	if answer, err := b.mirror(); err != nil || answer.Status != mediagate.StatusCancelled || len(b.Fetcher.URLs()) != 0 {
		t.Errorf("answer %+v (%v), fetched %v", answer, err, b.Fetcher.URLs())
	}
	failed := succeeded(t, activitytest.Failed(mediagate.CodeGenerationFailed))
	if answer, err := failed.mirror(); err != nil || failed.attempt(1).Mirrored() || len(failed.Fetcher.URLs()) != 0 {
		t.Errorf("answer %+v (%v)", answer, err)
	}
}

// TestMirrorKeepsTheDuration checks that the file's own length counts, and that the vendor's word
// counts if there is none.
func TestMirrorKeepsTheDuration(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ own, stated, want float64 }{
		"its own": {4.2, 5, 4.2}, "as stated": {0, 5, 5}, "unknown": {0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := media("https://m.example.com/a")
			o.Media[0].Duration = c.stated
			b := succeeded(t, o)
			b.Bucket.Duration = c.own
			_, err := b.mirror()
			b.ok(err)
			if got := b.attempt(1).Results[0].Duration; got != c.want {
				t.Errorf("duration %v, want %v", got, c.want)
			}
		})
	}
}

// envFailpointDir makes the test program a process that dies while it copies.
const envFailpointDir = "MEDIAGATE_TEST_MIRROR_HALF"

// process is a program that leaves nothing to clean up.
type process struct{}

func (process) Cleanup(func()) {}

// mirrorUntilKilled copies a file with the failpoint mirror-half armed, and is killed on its way,
// once a folder. The second time its exit code reports success.
func mirrorUntilKilled(dir string) int {
	if err := failpoint.Arm(failpoint.MirrorHalf, dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	w := activitytest.New(process{}, time.Now)
	w.Store.Add(w.NewVideo())
	if _, err := newEnv(w).ExecuteActivity(w.Activities.SubmitJob, stepOf(taskID, task.Submit, 1)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	if _, err := w.Store.Change(
		context.Background(), taskID, task.VendorEnded{N: 1, Outcome: media("https://m.example.com/a")},
	); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	read := 0
	w.Fetcher.OnFetch = func(context.Context, string, string) (io.ReadCloser, int64, error) {
		return broken{readerFunc(func(p []byte) (int, error) {
			if read == 10 {
				return 0, io.EOF
			}
			read++
			note := filepath.Join(dir, "read")
			if err := os.WriteFile(note, []byte{byte('0' + read%10)}, 0o600); err != nil {
				return 0, err
			}
			return copy(p, "x"), nil
		})}, 10, nil
	}
	if _, err := newEnv(w).ExecuteActivity(w.Activities.MirrorResult, firstCopy()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	if objects := w.Bucket.Objects(); len(objects) != 1 {
		fmt.Fprintln(os.Stderr, objects)
		return 2
	}
	return 0
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestMirrorHalfKillsOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	run := func() error {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), envFailpointDir+"="+dir)
		cmd.Stderr = t.Output()
		return cmd.Run()
	}
	var exit *exec.ExitError
	if err := run(); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the first process ended with %v, want it killed", err)
	}
	// The sixth byte of ten is the first beyond the half.
	if got, err := os.ReadFile(filepath.Join(dir, "read")); err != nil || string(got) != "6" {
		t.Errorf("killed after byte %q (%v), want 6", got, err)
	}
	if err := run(); err != nil {
		t.Errorf("the second process ended with %v, want it to pass", err)
	}
}

// TestD13FilesGoWithTheEnd checks that files of a task that ends without showing them are removed
// at its end, and that those of a completed or an open task stay.
func TestD13FilesGoWithTheEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		wishes []task.Event
		left   int
	}{
		"open":   {nil, 1},
		"failed": {[]task.Event{task.FailRequested{}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := succeeded(t, activitytest.Success())
			b.Bucket.Put(activities.ResultKey(taskID, 1, 0))
			b.change(c.wishes...)
			b.step(task.Settle, 1)
			if got := b.Bucket.Objects(); len(got) != c.left {
				t.Errorf("objects %v, want %d", got, c.left)
			}
		})
	}
}

// owners notes for whose copies the bucket's memory is used.
type owners struct {
	activities.Bucket
	found []string
}

func (o *owners) Mirror(
	ctx context.Context, key string, open activities.Opener, l activities.Limits,
) (mediagate.Result, error) {
	o.found = append(o.found, l.Owner)
	return o.Bucket.Mirror(ctx, key, open, l)
}

// TestD18MemoryOfACopyIsItsProviders checks that a copy takes its memory from the share of its
// provider.
func TestD18MemoryOfACopyIsItsProviders(t *testing.T) {
	t.Parallel()
	b := succeeded(t, media("https://m.example.com/a"))
	bucket := &owners{Bucket: b.Bucket}
	b.Activities.Bucket = bucket
	_, err := b.mirror()
	b.ok(err)
	same(t, "owners", bucket.found, []string{activitytest.AsyncProvider})
}
