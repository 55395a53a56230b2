package vertex

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/providers/googleapi"
	"github.com/mediagate/mediagate/providers/inline"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// The operations.
const (
	opVideo     = "video"
	opBaseVideo = "base_video" // for requests of the base contract
)

const (
	// submitTimeout bounds a submission, including the call for its token. Most of it is for
	// sending the frames, because the answer comes at once.
	submitTimeout = 60 * time.Second
	// pollTimeout bounds a poll, which may read videos to check that they exist.
	pollTimeout = 30 * time.Second
	// fileTimeout bounds the reading of a video and of all videos before it.
	fileTimeout = mediagate.CopyLimit
	headTimeout = 20 * time.Second
	// answerBytes bounds an answer: four long videos in 4K, as base64.
	answerBytes = 4 << 30
	// textBytes bounds an answer without its videos.
	textBytes = 1 << 20
)

// Description states what the adapter supports.
func Description() providers.Description {
	return providers.Description{
		Credentials: []string{credAccount, credProject, credLocation},
		Operations: map[string]providers.Operation{
			opVideo:     {Fields: googleapi.VideoFields(), Media: "video", Inputs: true, Submit: submitTimeout},
			opBaseVideo: {Fields: baseFields(), Media: "video", Inputs: true, Submit: submitTimeout, Base: true},
		},
	}
}

// Adapter talks to one project at one location. It is safe for concurrent use.
type Adapter struct {
	http   *vendorhttp.Client
	tokens *tokens
	images *inline.Images
	owner  mediagate.Secret // the path of the models' owner
}

// New returns the adapter of a channel. Its errors name channel and field.
func New(ch mediagate.Channel, opt vendorhttp.Options) (*Adapter, error) {
	s, err := readSettings(ch)
	if err != nil {
		return nil, err
	}
	client := vendorhttp.New(vendorhttp.Config{BaseURL: s.base, Secrets: s.secrets}, opt)
	return &Adapter{
		http: client, tokens: newTokens(client, s.account), images: inline.NewImages(client.Now),
		owner: mediagate.NewSecret("projects/" + s.project + "/locations/" + s.location + "/publishers/google/models/"),
	}, nil
}

// Close closes idle connections.
func (a *Adapter) Close() { a.http.Close() }

// Supports returns nil if the vendor's API can express the request, or an error that says why not.
func Supports(job mediagate.Job, _ map[string]string) error {
	_, err := decode(job)
	return err
}

// Submit sends the job once. providers.Provider lists the kinds of its errors.
func (a *Adapter) Submit(ctx context.Context, job mediagate.Job) (mediagate.Submission, error) {
	v, err := decode(job)
	if err != nil {
		return mediagate.Submission{}, err
	}
	req, err := a.images.Request(ctx, job, v.Images(), func(frames []inline.Blob) any {
		return v.Document(parametersOf(v), frames)
	})
	if err != nil {
		return mediagate.Submission{}, err
	}
	defer req.Release()
	ctx, cancel := context.WithTimeout(ctx, submitTimeout) // for all calls together
	defer cancel()
	answer, err := a.authorized(ctx, func() vendorhttp.Call {
		return vendorhttp.Call{
			Effect: vendorhttp.Submits, Path: "/v1/" + a.owner.Reveal() + job.Upstream + ":predictLongRunning",
			Body:       req.Body(nil),
			SendBefore: job.SendBefore, Limits: vendorhttp.Limits{Total: submitTimeout, Bytes: textBytes},
		}
	})
	if err != nil {
		// This changes only the errors of a token: a submission never fails with KindTransient.
		return mediagate.Submission{}, vendorhttp.BeforeSubmission(err)
	}
	whole, err := answer.Whole(textBytes)
	if err != nil {
		return mediagate.Submission{}, err
	}
	var op googleapi.Operation
	if whole.Status == http.StatusOK && whole.Decode(&op) == nil {
		if owner, id, ok := op.Parts(); ok {
			return mediagate.Submission{Ref: mediagate.JobRef{
				JobID: id, ExternalID: job.ExternalID, Operation: job.Operation, State: resource{owner, v.Samples()}.String(),
			}}, nil
		}
	}
	return mediagate.Submission{}, googleapi.RefuseVideo(a.http, whole, job.Upstream)
}

// authorized makes a call with a token. If the vendor refuses the token, it makes the call once
// more with a new one. That is safe, because a refused call has no effect at the vendor.
func (a *Adapter) authorized(ctx context.Context, call func() vendorhttp.Call) (*vendorhttp.Stream, error) {
	refused := ""
	for {
		token, err := a.tokens.token(ctx, refused)
		if err != nil {
			return nil, err
		}
		c := call()
		c.Header = http.Header{"Authorization": {"Bearer " + token}}
		answer, err := a.http.Stream(ctx, c)
		if err != nil || answer.Status != http.StatusUnauthorized || refused != "" {
			return answer, err
		}
		refused = token
		_ = answer.Body.Close()
	}
}

// resource is the resource at which an operation is polled, and the most videos that it can make.
// It is the content of JobRef.State.
type resource struct {
	owner   string
	samples int
}

// String formats the resource like "2 projects/…/models/…".
func (p resource) String() string { return strconv.Itoa(p.samples) + " " + p.owner }

func resourceOf(state string) (p resource, ok bool) {
	count, owner, _ := strings.Cut(state, " ")
	n, err := strconv.Atoi(count)
	if _, _, named := (googleapi.Operation{
		Name: vendorhttp.Text(googleapi.OperationName(owner, "x")),
	}).Parts(); err != nil || n < 1 || !named {
		return resource{}, false
	}
	return resource{owner, n}, true
}

// fetch asks for the operation. The answer may have any status. The caller closes it.
func (a *Adapter) fetch(
	ctx context.Context, ref mediagate.JobRef, limits vendorhttp.Limits,
) (*vendorhttp.Stream, resource, error) {
	if ref.JobID == "" {
		return nil, resource{}, mediagate.Errorf(mediagate.KindNotFound, "the reference names no job")
	}
	at, ok := resourceOf(ref.State)
	if known := ref.Operation == opVideo || ref.Operation == opBaseVideo; !ok || !known {
		// The error is not KindNotFound, which would prove that there is no job.
		return nil, resource{}, mediagate.Errorf(mediagate.KindTransient, "the reference is none of this adapter's")
	}
	limits.Bytes = answerBytes
	answer, err := a.authorized(ctx, func() vendorhttp.Call {
		return vendorhttp.Call{
			Effect: vendorhttp.Reads, Path: "/v1/" + at.owner + ":fetchPredictOperation", Limits: limits,
			Body: vendorhttp.JSON(map[string]string{"operationName": googleapi.OperationName(at.owner, ref.JobID)}),
		}
	})
	return answer, at, err
}
