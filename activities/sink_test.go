package activities_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/task"
)

// handsOver makes the synchronous vendor answer with these files.
func (b *bundle) handsOver(files ...string) {
	b.Sync.OnSubmit = func(ctx context.Context, job mediagate.Job) (mediagate.Submission, error) {
		s, err := b.Sync.Accept(job)
		if err != nil {
			return s, err
		}
		s.Outcome = &mediagate.Outcome{Succeeded: true}
		for i, file := range files {
			m, err := job.Sink.Store(ctx, i, strings.NewReader(file))
			if err != nil {
				return mediagate.Submission{}, err
			}
			m.Index = i
			s.Outcome.Media = append(s.Outcome.Media, m)
		}
		return s, nil
	}
}

func (b *bundle) objects(want ...string) {
	b.t.Helper()
	same(b.t, "objects", b.Bucket.Objects(), want)
}

func key(n, position int) string { return activities.ResultKey(taskID, n, position) }

func manifest(name string) string { return "results/" + taskID + "/1/" + name }

// TestSink checks that a file that comes with the answer is stored while it arrives. The mirror
// has nothing to copy, and the manifest stays.
func TestSink(t *testing.T) {
	t.Parallel()
	b := setup(t, image)
	b.Activities.Settings.QuickCopy = 0 // the copy is a step of its own
	b.handsOver("first", "second")
	if answer := b.submit(1); answer.Step.Kind != task.Mirror {
		t.Fatalf("answer %+v", answer)
	}
	b.objects(key(1, 0), key(1, 1), manifest("outcome.json"))
	answer, err := b.mirror()
	b.ok(err)
	if answer.Status != mediagate.StatusCompleted || len(b.Bucket.Writes()) != 2 || len(b.Fetcher.URLs()) != 0 {
		t.Errorf("answer %+v after writes of %v, fetched %v", answer, b.Bucket.Writes(), b.Fetcher.URLs())
	}
	b.objects(key(1, 0), key(1, 1), manifest("outcome.json"))
	results := b.attempt(1).Results
	if len(results) != 2 || results[1].Key != key(1, 1) || results[1].Size != int64(len("second")) ||
		results[1].Index != 1 || results[1].SHA256 == "" {
		t.Errorf("results %+v", results)
	}
}

func TestSinkErrors(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken off")
	cases := map[string]struct {
		scene func(b *bundle)
		file  io.Reader
		sees  func(err error) bool
		state mediagate.AttemptState
		code  mediagate.FailureCode
	}{
		"the reader's error comes back as it is": {
			file: io.MultiReader(strings.NewReader("half"), iotest.ErrReader(broken)),
			sees: func(err error) bool { return err == broken }, //nolint:errorlint // the very same error
			// An adapter decides what to make of it. This one returns it unchanged.
			state: mediagate.AttemptUnknown,
		},
		"a file that the task cannot use is the job's end": {
			file:  strings.NewReader(strings.Repeat("x", 2<<20)),
			sees:  func(err error) bool { return mediagate.Is(err, mediagate.KindTooLarge) },
			state: mediagate.AttemptEnded, code: mediagate.CodeResultUnavailable,
		},
		"without a bucket nobody has the file": {
			scene: func(b *bundle) { b.Bucket.OnMirror = func(string) error { return errNoBucket } },
			file:  strings.NewReader("file"),
			sees:  func(err error) bool { return errors.Is(err, errNoBucket) },
			state: mediagate.AttemptUnknown,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, image)
			if c.scene != nil {
				c.scene(b)
			}
			b.Sync.OnSubmit = func(ctx context.Context, job mediagate.Job) (mediagate.Submission, error) {
				_, err := job.Sink.Store(ctx, 0, c.file)
				if !c.sees(err) {
					t.Errorf("the adapter gets %v", err)
				}
				return mediagate.Submission{}, mediagate.Errorf(mediagate.KindAmbiguous, "%w", err)
			}
			b.submit(1)
			a := b.stored(1)
			if a.State != c.state || c.code != "" && (a.Outcome == nil || a.Outcome.Failure.Code != c.code) {
				t.Errorf("the attempt is %s, its outcome %+v; want %s, %q", a.State, a.Outcome, c.state, c.code)
			}
			if got := b.Bucket.Objects(); len(got) != 0 {
				t.Errorf("objects %v of a broken file", got)
			}
		})
	}
}

// TestD13StoredFileIsGone checks that a stored file that is gone does not become a link that
// leads nowhere.
func TestD13StoredFileIsGone(t *testing.T) {
	t.Parallel()
	b := setup(t, image)
	b.Activities.Settings.QuickCopy = 0 // the copy is a step of its own
	b.handsOver("file")
	b.submit(1)
	_, err := b.Bucket.DeletePrefix(t.Context(), "results/")
	b.ok(err)
	_, err = b.mirror()
	kind(t, err, mediagate.KindGone, string(mediagate.CodeResultUnavailable), false)
}

// TestD13HandedOverTooLate checks that files that arrive for a task that has ended meanwhile are
// removed at once.
func TestD13HandedOverTooLate(t *testing.T) {
	t.Parallel()
	b := setup(t, image)
	b.handsOver("file")
	submit := b.Sync.OnSubmit
	b.Sync.OnSubmit = func(ctx context.Context, job mediagate.Job) (mediagate.Submission, error) {
		b.change(task.CancelRequested{})
		b.advance(10 * time.Minute) // the call should be over by then (D5)
		b.change(task.EndDue{})
		return submit(ctx, job)
	}
	if st := b.submit(1); st.Status != mediagate.StatusCancelled {
		t.Errorf("answer %+v", st)
	}
	if got := b.Bucket.Objects(); len(got) != 0 {
		t.Errorf("objects %v of a task that has ended", got)
	}
}

// dies makes the sender lose its answer between the bucket and the row, as a crash would.
func (b *bundle) dies() {
	b.t.Helper()
	b.Store.Fault = failsWith("Change", mediagate.Errorf(mediagate.KindInternal, "dead"))
	if _, err := b.tryStep(task.Submit, 1); err == nil {
		b.t.Fatal("the sender lives")
	}
	b.Store.Fault = nil
}

// diesAfterTheFirst makes the sender of several calls die between two files. The first is stored.
func (b *bundle) diesAfterTheFirst() {
	b.t.Helper()
	b.Sync.OnSubmit = func(ctx context.Context, job mediagate.Job) (mediagate.Submission, error) {
		m, err := job.Sink.Store(ctx, 0, strings.NewReader("first"))
		b.ok(err)
		job.Sink.Record(ctx, mediagate.Submission{Outcome: &mediagate.Outcome{Succeeded: true, Media: []mediagate.Media{m}}})
		return mediagate.Submission{}, mediagate.Errorf(mediagate.KindAmbiguous, "cut off")
	}
	b.dies()
}

// TestD6HandedOverIsFound checks that files that a synchronous vendor delivered before a crash
// are found, and not asked for again.
func TestD6HandedOverIsFound(t *testing.T) {
	t.Parallel()
	takers := map[string]func(b *bundle) activities.Answer{
		"by the next worker": func(b *bundle) activities.Answer { return b.submit(1) },
		"after the deadline": func(b *bundle) activities.Answer { return b.step(task.Lookup, 1) },
		"before it is given up": func(b *bundle) activities.Answer {
			b.change(task.SubmitUnknown{Sending: b.sending(1), SenderLost: true})
			return b.step(task.Lookup, 1)
		},
	}
	for name, take := range takers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, image)
			b.handsOver("first", "second")
			b.dies()
			if answer := take(b); answer.State != mediagate.AttemptEnded || answer.Step.Kind != task.Mirror {
				t.Fatalf("answer %+v", answer)
			}
			if _, err := b.mirror(); err != nil {
				t.Fatal(err)
			}
			b.submitted(taskID)
			if row := b.attempt(1); len(row.Results) != 2 || row.Ref.JobID != "job-"+taskID {
				t.Errorf("row %+v", row)
			}
		})
	}
}

// TestD6ArrivedFilesAreFound checks a sender of several calls that dies between two files and
// leaves the first. That file counts once the call must be over: until then the sender may still
// bring the second.
func TestD6ArrivedFilesAreFound(t *testing.T) {
	t.Parallel()
	b := setup(t, image)
	b.diesAfterTheFirst()
	if answer := b.submit(1); answer.State != mediagate.AttemptUnknown {
		t.Fatalf("while the call may go on: %+v", answer)
	}
	b.advance(b.attempt(1).CallEnds.Sub(b.Now()))
	if answer := b.step(task.Lookup, 1); answer.State != mediagate.AttemptEnded {
		t.Fatalf("after the call's end: %+v", answer)
	}
	b.submitted(taskID)
	if out := b.attempt(1).Outcome; !out.Succeeded || len(out.Media) != 1 {
		t.Errorf("outcome %+v", out)
	}
}

// TestD6SearchedTooEarly checks that a search does not count if its process is a little behind
// the one that asked for it, and searches too early: another search follows.
func TestD6SearchedTooEarly(t *testing.T) {
	t.Parallel()
	b := setup(t, image)
	b.diesAfterTheFirst()
	b.submit(1)
	b.advance(b.attempt(1).CallEnds.Sub(b.Now()) - time.Millisecond)
	b.Store.Fault = func(method string) error {
		if method == "Change" { // the transaction begins after the search
			b.advance(time.Millisecond)
		}
		return nil
	}
	_, _ = b.tryStep(task.Lookup, 1)
	b.Store.Fault = nil
	b.advance(time.Minute)
	if next := b.ask().Step; next.Kind != task.Lookup {
		t.Fatalf("the next step is %+v: nobody searches for the image", next)
	}
	if answer := b.step(task.Lookup, 1); answer.State != mediagate.AttemptEnded {
		t.Errorf("answer %+v", answer)
	}
}

// TestD6HalfIsNotFound checks that half a file does not count, and neither does one that another
// file has replaced.
func TestD6HalfIsNotFound(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		scene func(b *bundle)
	}{
		"no manifest":           {func(b *bundle) { b.Bucket.OnManifest = func(string) error { return errNoBucket } }},
		"half a manifest":       {func(b *bundle) { b.Bucket.Write(manifest("outcome.json"), `{"outcome":`) }},
		"a manifest of nothing": {func(b *bundle) { b.Bucket.Write(manifest("outcome.json"), `{}`) }},
		"half a file":           {func(b *bundle) { b.Bucket.Write(key(1, 1), "sec") }},
		"another file":          {func(b *bundle) { b.Bucket.Write(key(1, 0), "tsrif") }},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, image)
			b.handsOver("first", "second")
			if name == "no manifest" {
				c.scene(b)
			}
			b.dies()
			c.scene(b)
			if st := b.submit(1); st.State != mediagate.AttemptUnknown {
				t.Fatalf("answer %+v", st)
			}
			if answer := b.step(task.Lookup, 1); answer.State != mediagate.AttemptUnknown {
				t.Errorf("answer %+v", answer)
			}
			b.submitted(taskID)
		})
	}
}

// TestD13LostFilesAreSwept checks that the files of a lost call are searched for once the call
// can store no more.
func TestD13LostFilesAreSwept(t *testing.T) {
	t.Parallel()
	b := setup(t, image)
	b.Sync.OnSubmit = refuses(mediagate.KindAmbiguous)
	b.submit(1)
	b.change(task.FailRequested{}, task.EndDue{})
	b.advance(2*mediagate.CopyLimit + time.Second)
	due, err := b.Store.DueSweeps(t.Context(), 10)
	b.ok(err)
	if len(due) != 1 || due[0].TaskID != taskID || !due[0].Again.IsZero() {
		t.Errorf("to be swept: %v", due)
	}
}

// opening is a vendor that offers files by reference.
type opening struct {
	*activitytest.Vendor
	open func(ref mediagate.JobRef, m mediagate.Media) (io.ReadCloser, int64, error)
}

func (o opening) Open(_ context.Context, ref mediagate.JobRef, m mediagate.Media) (io.ReadCloser, int64, error) {
	return o.open(ref, m)
}

// TestMirrorOfReferences checks that the channel that has the account opens a reference, that its
// file is copied like that of a link, and that roles and positions stay.
func TestMirrorOfReferences(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	channel := b.AsyncBound()
	channel.Vendor = opening{b.Async, func(ref mediagate.JobRef, m mediagate.Media) (io.ReadCloser, int64, error) {
		return io.NopCloser(strings.NewReader(ref.JobID + ": " + m.Ref)), -1, nil
	}}
	b.Channels.Set(channel)
	b.submit(1)
	b.change(task.VendorEnded{N: 1, Outcome: mediagate.Outcome{Succeeded: true, Media: []mediagate.Media{
		{Ref: "a"}, {URL: "https://m.example.com/b", Index: 1}, {Ref: "c", Role: mediagate.RoleCover},
	}}})
	_, err := b.mirror()
	b.ok(err)
	same(t, "results", b.shown(), []string{"0 main 0 video/test", "1 main 1 video/test", "2 cover 0 image/test"})
	same(t, "the first file", string(b.object(key(1, 0))), "job-"+taskID+": a")
}

// TestD11ReferenceWithoutItsChannel checks that no reference can be opened without the channel
// that has the account.
func TestD11ReferenceWithoutItsChannel(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	b.submit(1)
	b.change(task.VendorEnded{N: 1, Outcome: mediagate.Outcome{Succeeded: true, Media: []mediagate.Media{{Ref: "a"}}}})
	b.Channels.Set(b.SyncBound())
	_, err := b.mirror()
	kind(t, err, mediagate.KindUnreached, string(mediagate.ParkChannelMissing), true)
}

// TestD17AForgottenImageCompletesAgain checks an image whose outcome and end the database forgets
// after the client has seen its files. The run remembers the end, and the manifest has the files.
func TestD17AForgottenImageCompletesAgain(t *testing.T) {
	t.Parallel()
	b := setup(t, image)
	b.handsOver("file")
	answers := b.Sync.OnSubmit
	b.Sync.OnSubmit = func(ctx context.Context, job mediagate.Job) (mediagate.Submission, error) {
		b.ok(b.Store.KeepPast()) // the intent is stored, and nothing else
		b.advance(time.Second)
		return answers(ctx, job)
	}
	ended := b.submit(1)
	if ended.Status != mediagate.StatusCompleted {
		t.Fatalf("answer %+v", ended)
	}
	b.ok(b.Store.Lapse(time.Second))
	if row := b.attempt(1); row.State != mediagate.AttemptIntent {
		t.Fatalf("the database has forgotten nothing: %+v", row)
	}
	in := stepOf(taskID, task.Submit, 1)
	in.Seen = ended.Seen
	answer, err := call[activities.Answer](b, b.Activities.SubmitJob, in)
	b.ok(err)
	if answer.Step.Kind == task.Mirror {
		answer, err = b.mirror()
		b.ok(err)
	}
	if answer.Status != mediagate.StatusCompleted || len(b.Sync.Submits()) != 1 {
		t.Errorf("answer %+v after %d submits", answer, len(b.Sync.Submits()))
	}
	if err := b.Bucket.Verify(t.Context(), b.attempt(1).Results[0]); err != nil {
		t.Errorf("the file that the client has seen: %v", err)
	}
}

// TestD13CancelledBetweenTwoImages checks that a cancel between two images wins. The image that
// had arrived, and its record, are removed.
func TestD13CancelledBetweenTwoImages(t *testing.T) {
	t.Parallel()
	b := setup(t, image)
	b.Sync.OnSubmit = func(ctx context.Context, job mediagate.Job) (mediagate.Submission, error) {
		m, err := job.Sink.Store(ctx, 0, strings.NewReader("first"))
		b.ok(err)
		s := mediagate.Submission{Outcome: &mediagate.Outcome{Succeeded: true, Media: []mediagate.Media{m}}}
		job.Sink.Record(ctx, s)
		b.change(task.CancelRequested{})
		return s, nil
	}
	b.submit(1)
	if answer := b.step(task.Settle, 1); answer.Status != mediagate.StatusCancelled {
		t.Errorf("answer %+v", answer)
	}
	b.objects()
}

// TestD6TheSenderWasOnlySlow checks a sender that counted as lost and stores the second image
// after the end of its call, when the task has ended with the first (D5). The task stays as it
// is, and the second image is swept.
func TestD6TheSenderWasOnlySlow(t *testing.T) {
	t.Parallel()
	b := setup(t, func(w *activitytest.World) mediagate.Task {
		two := w.NewImage()
		two.Charges[0].Quantity = 2
		return two
	})
	b.Sync.OnSubmit = func(ctx context.Context, job mediagate.Job) (mediagate.Submission, error) {
		first, err := job.Sink.Store(ctx, 0, strings.NewReader("first"))
		b.ok(err)
		s := mediagate.Submission{
			Ref: mediagate.JobRef{JobID: "one"}, Outcome: &mediagate.Outcome{Succeeded: true, Media: []mediagate.Media{first}},
		}
		job.Sink.Record(ctx, s)
		b.change(task.SubmitUnknown{Sending: b.sending(1), SenderLost: true})
		b.advance(b.attempt(1).CallEnds.Sub(b.Now()))
		b.step(task.Lookup, 1)
		if answer := b.step(task.Mirror, 1); answer.Status != mediagate.StatusCompleted {
			t.Errorf("answer %+v", answer)
		}
		second, err := job.Sink.Store(ctx, 1, strings.NewReader("second"))
		b.ok(err)
		second.Index = 1
		both := *s.Outcome
		both.Media = []mediagate.Media{first, second}
		return mediagate.Submission{Ref: s.Ref, Outcome: &both}, nil
	}
	if answer := b.submit(1); answer.Status != mediagate.StatusCompleted {
		t.Errorf("answer %+v", answer)
	}
	if st := b.state(); len(st.Results) != 1 {
		t.Errorf("results %+v", st.Results)
	}
	b.advance(2*mediagate.CopyLimit + time.Second)
	due, err := b.Store.DueSweeps(t.Context(), 10)
	b.ok(err)
	if len(due) != 1 {
		t.Errorf("sweeps %v, objects %v", due, b.Bucket.Objects())
	}
}
