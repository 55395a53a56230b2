package acedata

import (
	"context"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// PublicURL is the vendor's host.
const PublicURL = "https://api.acedata.cloud"

// The names of the operations.
const (
	opSong        = "song"
	opRemaster    = "remaster"
	opStems       = "stems"
	opReplace     = "replace"
	opVoice       = "voice"
	opFlowSong    = "flow_song"
	opFlowStems   = "flow_stems"
	opFlowReplace = "flow_replace"
)

// The paths of the vendor's two APIs.
const (
	suno     = "/suno"
	producer = "/producer"
)

const (
	audiosPath  = "/audios"
	tasksPath   = "/tasks"
	uploadPath  = "/upload"
	personaPath = "/persona"
)

const (
	// submitTimeout bounds the call that starts a job.
	submitTimeout = 30 * time.Second
	// uploadTimeout bounds an upload. The vendor fetches the file during the call.
	uploadTimeout = 45 * time.Second
	// batch is the most jobs that one call asks for. The vendor documents no limit.
	batch = 50
)

// apis maps each operation to the API that serves it.
var apis = map[string]string{
	opSong: suno, opRemaster: suno, opStems: suno, opReplace: suno, opVoice: suno,
	opFlowSong: producer, opFlowStems: producer, opFlowReplace: producer,
}

// Description describes the adapter: its credentials and its operations.
func Description() providers.Description {
	asyncOperation := func(fields ...string) providers.Operation {
		return providers.Operation{Fields: fields, Media: "audio", Submit: submitTimeout, Batch: batch, Callback: true}
	}
	sourceOperation := func(fields ...string) providers.Operation {
		op := asyncOperation(fields...)
		op.Source, op.Uploads, op.Submit = true, true, uploadTimeout+submitTimeout
		return op
	}
	song := asyncOperation(songFields...)
	song.Source = true // a voice; the adapter never uploads one
	return providers.Description{
		Credentials: []string{"api_key"},
		Operations: map[string]providers.Operation{
			opSong:     song,
			opRemaster: sourceOperation("version"),
			opStems:    sourceOperation(),
			opReplace:  sourceOperation(replaceFields...),
			opVoice: {
				Fields: []string{"audio_url"}, Media: "audio", Sync: true,
				Uploads: true, Submit: uploadTimeout + submitTimeout,
			},
			opFlowSong:    asyncOperation(flowSongFields...),
			opFlowStems:   sourceOperation(),
			opFlowReplace: sourceOperation(flowReplaceFields...),
		},
	}
}

// Adapter calls one vendor account. It is safe for concurrent use.
type Adapter struct {
	vendorhttp.Keyed
}

// New returns the adapter of a channel. Its errors name the channel and the field.
func New(ch mediagate.Channel, opt vendorhttp.Options) (*Adapter, error) {
	account, err := vendorhttp.OpenKeyed(ch, opt, PublicURL, "Authorization", "Bearer ")
	if err != nil {
		return nil, err
	}
	return &Adapter{account}, nil
}

// Supports returns an error that says why the vendor's API cannot express the request, or nil.
func Supports(job mediagate.Job, _ map[string]string) error {
	_, err := write(job)
	return err
}

// Submit uploads the source file if the job needs it, then submits the job once. providers.Provider
// lists the kinds of its errors.
func (a *Adapter) Submit(ctx context.Context, job mediagate.Job) (mediagate.Submission, error) {
	w, err := write(job)
	if err != nil {
		return mediagate.Submission{}, err
	}
	ref := mediagate.JobRef{ExternalID: job.ExternalID, Operation: job.Operation, State: w.state}
	if w.upload != "" {
		id, err := a.upload(ctx, apis[job.Operation], w.upload, w.field)
		if err != nil {
			return mediagate.Submission{}, err
		}
		w.body.AudioID = id
	}
	if job.Operation == opVoice {
		return a.submitVoice(ctx, job, w, ref)
	}
	var created reply
	if err := a.send(ctx, job, w, created.readSubmission); err != nil {
		return mediagate.Submission{}, err
	}
	ref.JobID = created.TaskID.ID()
	return mediagate.Submission{Ref: ref}, nil
}

// submitVoice makes a voice from an uploaded song. The answer holds the id of the voice, so the
// submission ends the job.
func (a *Adapter) submitVoice(
	ctx context.Context, job mediagate.Job, w *wire, ref mediagate.JobRef,
) (mediagate.Submission, error) {
	var created reply
	if err := a.send(ctx, job, w, created.readVoice); err != nil {
		return mediagate.Submission{}, err
	}
	ref.JobID, ref.State = created.TaskID.ID(), w.body.AudioID
	return mediagate.Submission{Ref: ref, Outcome: &mediagate.Outcome{
		Succeeded: true, Made: &mediagate.Made{Voices: []string{created.createdIDs().PersonaID.ID()}},
	}}, nil
}

// send submits the job.
func (a *Adapter) send(
	ctx context.Context, job mediagate.Job, w *wire, read func(vendorhttp.Answer) vendorhttp.Reading,
) error {
	return a.HTTP.Ask(ctx, vendorhttp.Call{
		Effect: vendorhttp.Submits, Path: w.path, Body: vendorhttp.JSON(w.body),
		SendBefore: job.SendBefore, Limits: vendorhttp.Limits{Total: submitTimeout},
	}, read)
}

// upload makes the vendor fetch the file behind link, and returns the vendor's id of the file. Its
// errors prove that nothing was submitted. An error about the file names field.
func (a *Adapter) upload(ctx context.Context, api, link, field string) (string, error) {
	var uploaded reply
	err := a.HTTP.Ask(ctx, vendorhttp.Call{
		Effect: vendorhttp.Reads, Path: api + uploadPath, Body: vendorhttp.JSON(map[string]string{"audio_url": link}),
		Limits: vendorhttp.Limits{Header: uploadTimeout, Total: uploadTimeout},
	}, func(answer vendorhttp.Answer) vendorhttp.Reading {
		reading := uploaded.readUpload(answer)
		reading.Param = field
		return reading
	})
	return uploaded.createdIDs().AudioID.ID(), vendorhttp.BeforeSubmission(err)
}

// Poll asks for one job by the vendor's id.
func (a *Adapter) Poll(ctx context.Context, ref mediagate.JobRef) (mediagate.Report, error) {
	if ref.JobID == "" {
		return mediagate.Report{}, mediagate.Errorf(mediagate.KindNotFound, "the reference names no job")
	}
	var t task
	if err := a.ask(ctx, ref, map[string]any{"id": ref.JobID, "action": "retrieve"}, t.readTask); err != nil {
		return mediagate.Report{}, err
	}
	return a.report(ref, t)
}

// PollAll asks for jobs of one operation in one call.
func (a *Adapter) PollAll(ctx context.Context, refs []mediagate.JobRef) ([]providers.Answer, error) {
	ids := make([]string, len(refs))
	for i, ref := range refs {
		ids[i] = ref.JobID
	}
	var found list
	if err := a.ask(ctx, refs[0], map[string]any{"ids": ids, "action": "retrieve_batch"}, found.readTasks); err != nil {
		return nil, err
	}
	answers := make([]providers.Answer, len(refs))
	for i, ref := range refs {
		answers[i].Err = mediagate.Errorf(mediagate.KindNotFound, "the answer leaves the job out")
		for _, t := range found.Items {
			if t.id() == ref.JobID {
				answers[i].Report, answers[i].Err = a.report(ref, t)
			}
		}
	}
	return answers, nil
}

// ask sends a query about jobs to the API that made the job of ref.
func (a *Adapter) ask(
	ctx context.Context, ref mediagate.JobRef, question any, read func(vendorhttp.Answer) vendorhttp.Reading,
) error {
	api, ok := apis[ref.Operation]
	if !ok {
		// KindNotFound would prove that the vendor has no such job.
		return mediagate.Errorf(mediagate.KindTransient, "operation %q is unknown here", ref.Operation)
	}
	return a.HTTP.Ask(ctx, vendorhttp.Call{
		Effect: vendorhttp.Reads, Path: api + tasksPath, Body: vendorhttp.JSON(question),
		Limits: vendorhttp.Limits{Bytes: answerBytes},
	}, read)
}

// answerBytes bounds an answer. It leaves room for the songs of a whole batch with their lyrics.
const answerBytes = 4 << 20
