package musicapi

import (
	"net/http"
	"regexp"
	"strconv"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// reply is any answer of the vendor's.
type reply struct {
	Code    vendorhttp.Text `json:"code"` // may be missing
	Message vendorhttp.Text `json:"message"`
	Error   vendorhttp.Text `json:"error"`   // in place of the message, to some customers
	TaskID  vendorhttp.Text `json:"task_id"` // of a job that has just been made
	Type    vendorhttp.Text `json:"type"`    // of a job that has no songs yet
	Data    []clip          `json:"data"`
}

type clip struct {
	ID        vendorhttp.Text `json:"clip_id"`
	State     vendorhttp.Text `json:"state"`
	Title     vendorhttp.Text `json:"title"`
	Tags      vendorhttp.Text `json:"tags"`
	Lyrics    vendorhttp.Text `json:"lyrics"`
	Image     vendorhttp.Text `json:"image_url"`
	Audio     vendorhttp.Text `json:"audio_url"` // until it is done, of a stream
	Video     vendorhttp.Text `json:"video_url"`
	CreatedAt vendorhttp.Text `json:"created_at"`
	Duration  vendorhttp.Text `json:"duration"`
	Message   vendorhttp.Text `json:"message"` // of a failed one
}

// text is what the answer says in words.
func (r *reply) text() string {
	if r.Message != "" {
		return string(r.Message)
	}
	return string(r.Error)
}

// status is the HTTP status that the answer means: its code counts where HTTP
// knows of no error.
func (r *reply) status(answer vendorhttp.Answer) int {
	code, err := strconv.Atoi(string(r.Code))
	if err == nil && answer.Status < http.StatusMultipleChoices && code >= http.StatusBadRequest && code < 600 {
		return code
	}
	return answer.Status
}

// The words by which answers of one status are told apart.
var (
	outOfFunds     = regexp.MustCompile(`(?i)credits are not enough|active subscription`)
	refusedContent = regexp.MustCompile(`(?i)copyright|inappropriate|moderat|artist name|producer tag|matches existing work|sensitive|prohibited|violat`)
	badLyrics      = regexp.MustCompile(`(?i)lyrics format is invalid`)
	noTask         = regexp.MustCompile(`(?i)task not found`)
	taskFailed     = regexp.MustCompile(`(?i)task failed`)
)

// pace is the time between two songs of an account that the vendor asks for.
const pace = 3 * time.Second

// meaning is what an error says, of a status below 500.
func meaning(status int, text string) vendorhttp.Meaning {
	v := vendorhttp.Meaning{Kind: vendorhttp.RefusalKind(status)}
	switch status {
	case http.StatusBadRequest:
		if refusedContent.MatchString(text) {
			v.Kind = mediagate.KindModerated
		}
	case http.StatusForbidden:
		switch {
		case outOfFunds.MatchString(text):
			v.Kind = mediagate.KindFunds
		case refusedContent.MatchString(text):
			v.Kind = mediagate.KindModerated
		case badLyrics.MatchString(text):
			v.Kind = mediagate.KindInvalid
		default:
			v.Kind = mediagate.KindForbidden
		}
	case http.StatusTooManyRequests:
		v.Retry = pace
	}
	return v
}

// said reads an answer for what it says of errors.
func (r *reply) said(answer vendorhttp.Answer) vendorhttp.Said {
	own := answer.Decode(r) == nil
	s := vendorhttp.Said{Own: own, Code: string(r.Code), Text: r.text()}
	if status := r.status(answer); status >= http.StatusBadRequest && status < http.StatusInternalServerError {
		s.Meaning = meaning(status, s.Text)
	}
	return s
}

// made reads the answer to a submission.
func (r *reply) made(answer vendorhttp.Answer) vendorhttp.Said {
	said := r.said(answer)
	said.Done = r.status(answer) < http.StatusMultipleChoices && (r.Code == "" || r.Code == success) && r.TaskID.ID() != ""
	return said
}

// found reads the answer to a query.
func (r *reply) found(answer vendorhttp.Answer) vendorhttp.Said {
	said, status := r.said(answer), r.status(answer)
	switch {
	case r.Type == notReady:
		said.Done = status < http.StatusInternalServerError
	case status == http.StatusBadRequest && noTask.MatchString(said.Text):
		said.Meaning, said.Sure = vendorhttp.Meaning{Kind: mediagate.KindNotFound}, true
	default:
		said.Done = status == http.StatusOK && r.Code == success && r.Data != nil
	}
	return said
}

// overdue says that the vendor has given the job up.
func (r *reply) overdue(answer vendorhttp.Answer) bool {
	return r.status(answer) == http.StatusGatewayTimeout && taskFailed.MatchString(r.text())
}

const (
	success  = "200" // the code of an answer that states no error
	notReady = "not_ready"
)

// states is the vendor's vocabulary for songs.
var states = map[string]mediagate.JobState{
	"pending":   mediagate.JobQueued,
	"running":   mediagate.JobRunning,
	"succeeded": mediagate.JobSucceeded,
	"failed":    mediagate.JobFailed,
}

// lost is the report on a job that the vendor has given up.
func (a *Adapter) lost(ref mediagate.JobRef, r reply) mediagate.Report {
	out := a.failed("")
	out.VendorText = a.HTTP.Clean(r.text()) // it speaks of our credits, and not of the client's
	return mediagate.Report{Ref: ref, Percent: -1, State: mediagate.JobFailed, Word: strconv.Itoa(http.StatusGatewayTimeout), Outcome: out}
}

// report translates a job by its songs, once it is ready. It goes on as long as
// one of them does, and has failed when all were lost. No answer names the job.
func (a *Adapter) report(ref mediagate.JobRef, r reply) mediagate.Report {
	report := mediagate.Report{Ref: ref, Percent: -1}
	if r.Type == notReady {
		report.State, report.Word = mediagate.JobQueued, notReady
		return report
	}
	if len(r.Data) == 0 {
		report.State = mediagate.JobSucceeded
		report.Offer(outcome(nil))
		return report
	}
	var word vendorhttp.Text
	rank := map[mediagate.JobState]int{
		mediagate.JobFailed: 1, mediagate.JobSucceeded: 2, mediagate.JobQueued: 3, mediagate.JobRunning: 4, mediagate.JobUnknown: 5,
	}
	for _, c := range r.Data {
		if state, _ := a.HTTP.State(states, c.State); rank[state] > rank[report.State] {
			report.State, word = state, c.State
		}
	}
	_, report.Word = a.HTTP.State(states, word)
	switch report.State {
	case mediagate.JobSucceeded:
		report.Offer(outcome(r.Data))
	case mediagate.JobFailed:
		report.Outcome = a.failed(string(r.Data[0].Message))
	default: // still under way
	}
	return report
}

// outcome is that of a job whose songs have come to their ends, and whether
// each has its file. Those that were lost have none.
func outcome(clips []clip) (out *mediagate.Outcome, whole bool) {
	out, whole = &mediagate.Outcome{Made: &mediagate.Made{}}, true
	for i, c := range clips {
		id, link, seconds := c.ID.ID(), c.Audio.Link(), c.Duration.Seconds()
		out.Made.Clips = append(out.Made.Clips, mediagate.Clip{
			ID: id, Title: c.Title.Prose(), Lyrics: c.Lyrics.Prose(), Tags: c.Tags.Prose(), CreatedAt: c.CreatedAt.Moment(),
			Seconds: seconds, State: c.State.Prose(),
		})
		if states[string(c.State)] == mediagate.JobFailed {
			continue
		}
		whole = whole && id != "" && link != ""
		if link == "" {
			continue
		}
		out.Media = append(out.Media, mediagate.Media{URL: link, Index: i, Duration: seconds})
		if cover := c.Image.Link(); cover != "" {
			out.Media = append(out.Media, mediagate.Media{URL: cover, Role: mediagate.RoleCover, Index: i})
		}
		if film := c.Video.Link(); film != "" {
			out.Media = append(out.Media, mediagate.Media{URL: film, Role: mediagate.RoleFilm, Index: i, MimeType: "video/mp4"})
		}
	}
	return out, whole
}

// failed is the outcome of a failed job, whose words may say that its content was
// refused.
func (a *Adapter) failed(text string) *mediagate.Outcome {
	var v vendorhttp.Meaning
	if refusedContent.MatchString(text) {
		v.Kind = mediagate.KindModerated
	}
	return a.HTTP.Failed(vendorhttp.FailureOf(v), text)
}
