package openai

import (
	"bufio"
	"context"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// PublicURL is the vendor's public address.
const PublicURL = "https://api.openai.com/v1"

const opSpeech = "speech"

// Options of a channel. They choose the account that pays if a key belongs to several.
const (
	optionOrganization = "organization"
	optionProject      = "project"
)

const (
	// headTimeout bounds the wait for the head of the answer, stallTimeout each pause after it.
	headTimeout  = 60 * time.Second
	stallTimeout = 30 * time.Second
	// speechTimeout exceeds the time that the gateway gives a speech, because a listener may read
	// slowly.
	speechTimeout = time.Hour
	// speechBytes exceeds the longest speech: 4096 characters at a quarter of the normal speed take
	// about 20 minutes, at 48 kB per second.
	speechBytes = 128 << 20
	errorBytes  = 64 << 10
)

// Description states what the adapter supports.
func Description() providers.Description {
	return providers.Description{
		Credentials: []string{"api_key"},
		Options:     []string{optionOrganization, optionProject},
		Operations: map[string]providers.Operation{
			opSpeech: {
				Fields: []string{"input", "voice", "response_format", "speed", "instructions", "stream_format"},
				Media:  "audio", Sync: true, Streams: true, Submit: headTimeout,
			},
		},
	}
}

// Adapter talks to one vendor account. It is safe for concurrent use.
type Adapter struct {
	vendorhttp.Keyed
	header http.Header // of every call, in addition to the key
}

// New returns the adapter of a channel. Its errors name channel and field.
func New(ch mediagate.Channel, opt vendorhttp.Options) (*Adapter, error) {
	account, err := vendorhttp.OpenKeyed(
		ch, opt, PublicURL, "Authorization", "Bearer ", optionOrganization, optionProject,
	)
	if err != nil {
		return nil, err
	}
	check := vendorhttp.Check(ch)
	a := &Adapter{Keyed: account, header: http.Header{"Accept": {"audio/*, application/json"}}}
	for option, name := range map[string]string{
		optionOrganization: "OpenAI-Organization", optionProject: "OpenAI-Project",
	} {
		value := ch.Options[option]
		if value == "" {
			continue
		}
		if vendorhttp.Text(value).ID() == "" {
			check.AddProblem("options."+option, "must be 1 to 256 printable ASCII characters without spaces")
		}
		a.header.Set(name, value)
	}
	if err := check.Err(); err != nil {
		a.Close()
		return nil, err
	}
	return a, nil
}

// Supports returns nil if the vendor's API can express the request, or an error that says why not.
func Supports(job mediagate.Job, _ map[string]string) error {
	_, err := decode(job)
	return err
}

// Speak sends the text and returns the sound. providers.Speaker lists the kinds of its errors.
func (a *Adapter) Speak(ctx context.Context, job mediagate.Job) (io.ReadCloser, error) {
	document, err := decode(job)
	if err != nil {
		return nil, err
	}
	answer, err := a.HTTP.Stream(ctx, vendorhttp.Call{
		Effect: vendorhttp.Submits, Path: "/audio/speech", Body: vendorhttp.JSON(document), Header: a.header,
		SendBefore: job.SendBefore,
		Limits:     vendorhttp.Limits{Header: headTimeout, Total: speechTimeout, Stall: stallTimeout, Bytes: speechBytes},
	})
	if err != nil {
		return nil, err
	}
	if answer.Status == http.StatusOK && mayBeSound(answer.Header.Get("Content-Type")) {
		sound := bufio.NewReader(answer.Body)
		head, err := sound.Peek(soundHead(document.ResponseFormat))
		// If Peek has failed without any bytes, the caller's first read returns its error.
		if (len(head) > 0 || err == nil) && !mayBeginWith(document.ResponseFormat, head) {
			_ = answer.Body.Close()
			return nil, mediagate.Errorf(
				mediagate.KindAmbiguous, "the vendor's answer is no sound of the format %q", document.ResponseFormat,
			)
		}
		return struct {
			io.Reader
			io.Closer
		}{sound, answer.Body}, nil
	}
	whole, err := answer.Whole(errorBytes)
	if err != nil {
		return nil, err
	}
	return nil, a.refusal(whole)
}

// mayBeSound reports whether an answer may contain sound. Content types of sound differ from server
// to server, so mayBeSound only excludes text and JSON.
func mayBeSound(contentType string) bool {
	kind, _, err := mime.ParseMediaType(contentType)
	return err == nil && kind != "application/json" && !strings.HasPrefix(kind, "text/")
}

// Submit returns an error: a speech is never a task.
func (a *Adapter) Submit(_ context.Context, job mediagate.Job) (mediagate.Submission, error) {
	if _, err := decode(job); err != nil {
		return mediagate.Submission{}, err
	}
	return mediagate.Submission{}, mediagate.Errorf(mediagate.KindNotFound, "the vendor makes no jobs")
}

// Poll returns KindNotFound, because the vendor stores no jobs.
func (a *Adapter) Poll(context.Context, mediagate.JobRef) (mediagate.Report, error) {
	return mediagate.Report{}, mediagate.Errorf(mediagate.KindNotFound, "the vendor keeps no jobs")
}
