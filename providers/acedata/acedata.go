package acedata

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// PublicURL is the vendor's host.
const PublicURL = "https://api.acedata.cloud"

// The operations.
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

// The two APIs.
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
	// submitTimeout bounds the call that makes the job.
	submitTimeout = 30 * time.Second
	// uploadTimeout bounds an upload: the vendor fetches the file meanwhile.
	uploadTimeout = 45 * time.Second
	// batch is how many jobs one question may name. The vendor states no bound.
	batch = 50
)

// apis tells which of the two an operation belongs to.
var apis = map[string]string{
	opSong: suno, opRemaster: suno, opStems: suno, opReplace: suno, opVoice: suno,
	opFlowSong: producer, opFlowStems: producer, opFlowReplace: producer,
}

// Description is what the adapter says of itself.
func Description() providers.Description {
	made := func(fields ...string) providers.Operation {
		return providers.Operation{Fields: fields, Media: "audio", Submit: submitTimeout, Batch: batch, Callback: true}
	}
	follows := func(fields ...string) providers.Operation {
		op := made(fields...)
		op.Source, op.Uploads, op.Submit = true, true, uploadTimeout+submitTimeout
		return op
	}
	song := made(songFields...)
	song.Source = true // a voice, which is never uploaded
	return providers.Description{
		Credentials: []string{"api_key"},
		Operations: map[string]providers.Operation{
			opSong:     song,
			opRemaster: follows("version"),
			opStems:    follows(),
			opReplace:  follows(replaceFields...),
			opVoice: {
				Fields: []string{"audio_url"}, Media: "audio", Sync: true, Uploads: true, Submit: uploadTimeout + submitTimeout,
			},
			opFlowSong:    made(flowSongFields...),
			opFlowStems:   follows(),
			opFlowReplace: follows(flowReplaceFields...),
		},
	}
}

// Adapter speaks to one account. It is safe for concurrent use.
type Adapter struct {
	vendorhttp.Keyed
}

// New makes the adapter of a channel; errors name channel and field.
func New(ch mediagate.Channel, opt vendorhttp.Options) (*Adapter, error) {
	account, err := vendorhttp.OpenKeyed(ch, opt, PublicURL)
	if err != nil {
		return nil, err
	}
	return &Adapter{account}, nil
}

// Express says why the job's request cannot be written, if so.
func Express(job mediagate.Job, _ map[string]string) error {
	_, err := write(job)
	return err
}

// Submit sends the job once, after the upload that it may need;
// providers.Provider says which kinds it returns.
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
	answer, err := a.send(ctx, job, w)
	if err != nil {
		return mediagate.Submission{}, err
	}
	created, own := readReply(answer)
	if err := a.submitError(answer, created, own); err != nil {
		return mediagate.Submission{}, err
	}
	ref.JobID = created.TaskID.ID()
	return mediagate.Submission{Ref: ref}, nil
}

// submitVoice makes a voice of an uploaded song: the answer brings its id.
func (a *Adapter) submitVoice(ctx context.Context, job mediagate.Job, w *wire, ref mediagate.JobRef) (mediagate.Submission, error) {
	answer, err := a.send(ctx, job, w)
	if err != nil {
		return mediagate.Submission{}, err
	}
	created, own := readReply(answer)
	id := created.object().PersonaID.ID()
	if err := a.answered(answer, created, own, id != "" && created.Success != "false"); err != nil {
		return mediagate.Submission{}, err
	}
	ref.JobID, ref.State = created.TaskID.ID(), w.body.AudioID
	return mediagate.Submission{Ref: ref, Outcome: &mediagate.Outcome{
		Succeeded: true, Made: &mediagate.Made{Voices: []string{id}},
	}}, nil
}

// send makes the call that submits.
func (a *Adapter) send(ctx context.Context, job mediagate.Job, w *wire) (vendorhttp.Answer, error) {
	return a.SubmitJSON(ctx, job, a.call(vendorhttp.Call{Path: w.path}), w.body, submitTimeout)
}

// upload hands a file over by its link, and returns the vendor's id of it. Its
// errors say that nothing was submitted; field is what they name where the file
// is at fault.
func (a *Adapter) upload(ctx context.Context, api, link, field string) (string, error) {
	body, err := vendorhttp.Encode(map[string]string{"audio_url": link})
	if err != nil {
		return "", mediagate.Errorf(mediagate.KindInvalid, "the link cannot be written: %w", err)
	}
	answer, err := a.HTTP.Do(ctx, a.call(vendorhttp.Call{
		Effect: vendorhttp.Reads, Path: api + uploadPath, Body: vendorhttp.JSON(body),
		Limits: vendorhttp.Limits{Header: uploadTimeout, Total: uploadTimeout},
	}))
	if err != nil {
		return "", vendorhttp.BeforeSubmission(err)
	}
	reply, own := readReply(answer)
	id := reply.object().AudioID.ID()
	if err := a.uploadError(answer, reply, own, id != "", field); err != nil {
		return "", vendorhttp.BeforeSubmission(err)
	}
	return id, nil
}

// Poll asks for a job by the vendor's id.
func (a *Adapter) Poll(ctx context.Context, ref mediagate.JobRef) (mediagate.Report, error) {
	if ref.JobID == "" {
		return mediagate.Report{}, mediagate.Errorf(mediagate.KindNotFound, "the reference names no job")
	}
	answer, err := a.ask(ctx, ref, map[string]any{"id": ref.JobID, "action": "retrieve"})
	if err != nil {
		return mediagate.Report{}, err
	}
	var t task
	own := answer.Decode(&t) == nil
	if !own || answer.Status != http.StatusOK || !t.tells() {
		reply, own := readReply(answer)
		return mediagate.Report{}, a.readError(answer, reply, own)
	}
	return a.report(ref, t)
}

// PollAll asks for jobs of one operation in one call.
func (a *Adapter) PollAll(ctx context.Context, refs []mediagate.JobRef) ([]providers.Answer, error) {
	ids := make([]string, len(refs))
	for i, ref := range refs {
		ids[i] = ref.JobID
	}
	answer, err := a.ask(ctx, refs[0], map[string]any{"ids": ids, "action": "retrieve_batch"})
	if err != nil {
		return nil, err
	}
	var list struct {
		Items []json.RawMessage `json:"items"`
	}
	if answer.Decode(&list) != nil || answer.Status != http.StatusOK || list.Items == nil {
		reply, own := readReply(answer)
		return nil, a.readError(answer, reply, own)
	}
	answers := make([]providers.Answer, len(refs))
	for i, ref := range refs {
		answers[i].Err = mediagate.Errorf(mediagate.KindNotFound, "the answer leaves the job out")
		for _, item := range list.Items {
			var t task
			// An odd field is left zero, as everywhere.
			_ = vendorhttp.Answer{Body: item}.Decode(&t)
			if t.id() == ref.JobID {
				answers[i].Report, answers[i].Err = a.report(ref, t)
			}
		}
	}
	return answers, nil
}

// ask is a question about jobs, to the API that made the one of ref.
func (a *Adapter) ask(ctx context.Context, ref mediagate.JobRef, question any) (vendorhttp.Answer, error) {
	api, ok := apis[ref.Operation]
	if !ok {
		// Not KindNotFound, which would prove that there is no job.
		return vendorhttp.Answer{}, mediagate.Errorf(mediagate.KindTransient, "operation %q is unknown here", ref.Operation)
	}
	body, err := vendorhttp.Encode(question)
	if err != nil {
		return vendorhttp.Answer{}, mediagate.Errorf(mediagate.KindInternal, "the question cannot be written: %w", err)
	}
	return a.HTTP.Do(ctx, a.call(vendorhttp.Call{
		Effect: vendorhttp.Reads, Path: api + tasksPath, Body: vendorhttp.JSON(body), Limits: vendorhttp.Limits{Bytes: answerBytes},
	}))
}

// answerBytes is room for the songs of a whole batch with their lyrics.
const answerBytes = 4 << 20

// call is the call with the account's key.
func (a *Adapter) call(c vendorhttp.Call) vendorhttp.Call {
	c.Header = http.Header{"Authorization": {"Bearer " + a.Key.Reveal()}}
	return c
}
