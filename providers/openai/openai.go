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

// Options of a channel: whose account pays, where a key has several.
const (
	optionOrganization = "organization"
	optionProject      = "project"
)

const (
	// headTimeout is for the vendor's first words, stallTimeout for each pause
	// after them.
	headTimeout  = 60 * time.Second
	stallTimeout = 30 * time.Second
	// speechTimeout is above what the gateway gives a speech: whoever listens
	// may be slow.
	speechTimeout = time.Hour
	// speechBytes is above the longest: 4096 characters at a quarter of the
	// speed are some twenty minutes, of 48 kB a second.
	speechBytes = 128 << 20
	errorBytes  = 64 << 10
)

// Description is what the adapter says of itself.
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

// Adapter speaks to one account. It is safe for concurrent use.
type Adapter struct {
	vendorhttp.Keyed
	header http.Header // of every call, beside the key
}

// New makes the adapter of a channel; errors name channel and field.
func New(ch mediagate.Channel, opt vendorhttp.Options) (*Adapter, error) {
	account, err := vendorhttp.OpenKeyed(ch, opt, PublicURL, "Authorization", "Bearer ", optionOrganization, optionProject)
	if err != nil {
		return nil, err
	}
	check := vendorhttp.Check(ch)
	a := &Adapter{Keyed: account, header: http.Header{"Accept": {"audio/*, application/json"}}}
	for option, name := range map[string]string{optionOrganization: "OpenAI-Organization", optionProject: "OpenAI-Project"} {
		value := ch.Options[option]
		if value == "" {
			continue
		}
		if vendorhttp.Text(value).ID() == "" {
			check.Wrong("options."+option, "must be 1 to 256 printable ASCII characters without spaces")
		}
		a.header.Set(name, value)
	}
	if err := check.Err(); err != nil {
		a.Close()
		return nil, err
	}
	return a, nil
}

// Supports returns an error that says why the vendor's API cannot express the request, or nil.
func Supports(job mediagate.Job, _ map[string]string) error {
	_, err := decode(job)
	return err
}

// Speak has the text spoken; providers.Speaker says which kinds of errors it
// returns.
func (a *Adapter) Speak(ctx context.Context, job mediagate.Job) (io.ReadCloser, error) {
	document, err := decode(job)
	if err != nil {
		return nil, err
	}
	answer, err := a.HTTP.Stream(ctx, vendorhttp.Call{
		Effect: vendorhttp.Submits, Path: "/audio/speech", Body: vendorhttp.JSON(document), Header: a.header, SendBefore: job.SendBefore,
		Limits: vendorhttp.Limits{Header: headTimeout, Total: speechTimeout, Stall: stallTimeout, Bytes: speechBytes},
	})
	if err != nil {
		return nil, err
	}
	if answer.Status == http.StatusOK && isSound(answer.Header.Get("Content-Type")) {
		sound := bufio.NewReader(answer.Body)
		head, err := sound.Peek(soundHead(document.ResponseFormat))
		if (len(head) > 0 || err == nil) && !beginsAs(document.ResponseFormat, head) { // of an error whoever reads on is told
			_ = answer.Body.Close()
			return nil, mediagate.Errorf(mediagate.KindAmbiguous, "the vendor's answer is no sound of the format %q", document.ResponseFormat)
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

// isSound reports whether an answer can be what was asked for. Types of sound
// differ from server to server; what is certainly none is text.
func isSound(contentType string) bool {
	kind, _, err := mime.ParseMediaType(contentType)
	return err == nil && kind != "application/json" && !strings.HasPrefix(kind, "text/")
}

// Submit refuses: what the vendor makes, nobody waits for as a task.
func (a *Adapter) Submit(_ context.Context, job mediagate.Job) (mediagate.Submission, error) {
	if _, err := decode(job); err != nil {
		return mediagate.Submission{}, err
	}
	return mediagate.Submission{}, mediagate.Errorf(mediagate.KindNotFound, "the vendor makes no jobs")
}

// Poll finds nothing: the vendor keeps no job.
func (a *Adapter) Poll(context.Context, mediagate.JobRef) (mediagate.Report, error) {
	return mediagate.Report{}, mediagate.Errorf(mediagate.KindNotFound, "the vendor keeps no jobs")
}
