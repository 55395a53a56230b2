package sunoapi

import (
	"net/http"
	"regexp"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// reply is any answer of the vendor's.
type reply struct {
	Code vendorhttp.Text `json:"code"`
	Msg  vendorhttp.Text `json:"msg"`
	Data record          `json:"data"`
}

// record is a job; of one that has just been made it is the id alone.
type record struct {
	TaskID   vendorhttp.Text `json:"taskId"`
	Status   vendorhttp.Text `json:"status"`      // of songs
	Flag     vendorhttp.Text `json:"successFlag"` // of separations
	Response *response       `json:"response"`

	ErrorCode    vendorhttp.Text `json:"errorCode"`
	ErrorMessage vendorhttp.Text `json:"errorMessage"`
}

type response struct {
	Songs []song `json:"sunoData"`
	tracks
}

type song struct {
	ID         vendorhttp.Text `json:"id"`
	Audio      vendorhttp.Text `json:"audioUrl"` // empty until it is done; the stream beside it is a preview
	Image      vendorhttp.Text `json:"imageUrl"`
	Prompt     vendorhttp.Text `json:"prompt"` // the lyrics
	Title      vendorhttp.Text `json:"title"`
	Tags       vendorhttp.Text `json:"tags"`
	CreateTime vendorhttp.Text `json:"createTime"` // milliseconds, or a text (read at second hand)
	Duration   vendorhttp.Text `json:"duration"`
}

// tracks are those of a separation, each in a field of its own.
type tracks struct {
	Vocals        vendorhttp.Text `json:"vocalUrl"`
	BackingVocals vendorhttp.Text `json:"backingVocalsUrl"`
	Instrumental  vendorhttp.Text `json:"instrumentalUrl"`
	Drums         vendorhttp.Text `json:"drumsUrl"`
	Bass          vendorhttp.Text `json:"bassUrl"`
	Guitar        vendorhttp.Text `json:"guitarUrl"`
	Piano         vendorhttp.Text `json:"pianoUrl"`
	Keyboard      vendorhttp.Text `json:"keyboardUrl"`
	Percussion    vendorhttp.Text `json:"percussionUrl"`
	Strings       vendorhttp.Text `json:"stringsUrl"`
	Synth         vendorhttp.Text `json:"synthUrl"`
	FX            vendorhttp.Text `json:"fxUrl"`
	Brass         vendorhttp.Text `json:"brassUrl"`
	Woodwinds     vendorhttp.Text `json:"woodwindsUrl"`
}

// success is the code of an answer that states no error.
const success = "200"

// meanings is the vendor's error table, by code.
var meanings = map[string]vendorhttp.Meaning{
	"400": {Kind: mediagate.KindInvalid},
	"401": {Kind: mediagate.KindCredentials},
	"402": {Kind: mediagate.KindFunds}, // of the twin service only
	"404": {Kind: mediagate.KindNotFound},
	"405": {Kind: mediagate.KindThrottled, Retry: time.Second},
	"413": {Kind: mediagate.KindInvalid}, // a text is too long
	"422": {Kind: mediagate.KindInvalid},
	"429": {Kind: mediagate.KindFunds}, // credits, and no rate
	"430": {Kind: mediagate.KindThrottled, Retry: time.Second},
	"455": {Kind: mediagate.KindThrottled, Retry: 30 * time.Second}, // maintenance
	"500": {Kind: mediagate.KindAmbiguous},
}

// refusedContent are the words of refusals for their content, which have the
// codes of others.
var refusedContent = regexp.MustCompile(`(?i)sensitive|moderat|inappropriate|copyright|artist name|prohibited|violat`)

// said reads an answer for what it says of errors.
func (r *reply) said(answer vendorhttp.Answer) vendorhttp.Said {
	own := answer.Decode(r) == nil
	s := vendorhttp.Said{Own: own, Code: string(r.Code), Text: string(r.Msg), Meaning: meanings[string(r.Code)]}
	if s.Meaning.Kind == mediagate.KindInvalid && refusedContent.MatchString(s.Text) {
		s.Meaning = vendorhttp.Meaning{Kind: mediagate.KindModerated}
	}
	return s
}

// made reads the answer to a submission.
func (r *reply) made(answer vendorhttp.Answer) vendorhttp.Said {
	said := r.said(answer)
	said.Done = answer.Status < http.StatusMultipleChoices && r.Code == success && r.Data.TaskID.ID() != ""
	return said
}

// found reads the answer to a query.
func (r *reply) found(answer vendorhttp.Answer) vendorhttp.Said {
	said := r.said(answer)
	said.Done = answer.Status == http.StatusOK && r.Code == success
	said.Sure = said.Meaning.Kind == mediagate.KindNotFound
	return said
}

// The vendor's whole vocabulary.
const (
	undelivered = "CALLBACK_EXCEPTION"
	sensitive   = "SENSITIVE_WORD_ERROR"
)

var states = map[string]mediagate.JobState{
	"PENDING":               mediagate.JobQueued,
	"TEXT_SUCCESS":          mediagate.JobRunning,
	"FIRST_SUCCESS":         mediagate.JobRunning,
	"SUCCESS":               mediagate.JobSucceeded,
	undelivered:             mediagate.JobSucceeded, // once the songs are there
	"CREATE_TASK_FAILED":    mediagate.JobFailed,
	"GENERATE_AUDIO_FAILED": mediagate.JobFailed,
	sensitive:               mediagate.JobFailed,
}

// stages are how far a job is, in percent.
var stages = map[string]int{"TEXT_SUCCESS": 33, "FIRST_SUCCESS": 66}

// report translates a job.
func (a *Adapter) report(ref mediagate.JobRef, job record) (mediagate.Report, error) {
	word := job.Status
	if ref.Operation == opStems {
		word = job.Flag
	}
	report, err := a.HTTP.Report(ref, job.TaskID, states, word)
	if err != nil {
		return report, err
	}
	text := report.Word
	if percent, ok := stages[text]; ok {
		report.Percent = percent
	}
	switch report.State {
	case mediagate.JobSucceeded:
		out, whole := outcome(ref, job.Response)
		if len(out.Media) == 0 && text == undelivered {
			// A callback of an earlier stage may have failed: the songs may still
			// come, unless there is an error and none of them.
			report.State = mediagate.JobRunning
			begun := job.Response != nil && len(job.Response.Songs) > 0
			if !begun && (job.ErrorCode != "" || job.ErrorMessage != "") {
				report.State, report.Outcome = mediagate.JobFailed, a.failed(job, text)
			}
			return report, nil
		}
		report.Offer(out, whole)
	case mediagate.JobFailed:
		report.Outcome = a.failed(job, text)
	default: // still under way
	}
	return report, nil
}

// outcome is that of a job that has succeeded, and whether each of its songs has
// its file.
func outcome(ref mediagate.JobRef, r *response) (out *mediagate.Outcome, whole bool) {
	out, whole = &mediagate.Outcome{Made: &mediagate.Made{}}, true
	switch {
	case r == nil:
	case ref.Operation == opStems:
		out.Made.Clips = []mediagate.Clip{{ID: ref.State}}
		out.Media = r.media()
	default:
		for i, s := range r.Songs {
			id, link, seconds := s.ID.ID(), s.Audio.Link(), s.Duration.Seconds()
			out.Made.Clips = append(out.Made.Clips, mediagate.Clip{
				ID: id, Title: s.Title.Prose(), Lyrics: s.Prompt.Prose(), Tags: s.Tags.Prose(), CreatedAt: s.CreateTime.Moment(), Seconds: seconds,
			})
			whole = whole && id != "" && link != ""
			if link == "" {
				continue
			}
			out.Media = append(out.Media, mediagate.Media{URL: link, Index: i, Duration: seconds})
			if cover := s.Image.Link(); cover != "" {
				out.Media = append(out.Media, mediagate.Media{URL: cover, Role: mediagate.RoleCover, Index: i})
			}
		}
	}
	return out, whole
}

// media are the tracks that there are, named by what is in them.
func (t tracks) media() []mediagate.Media {
	var all []mediagate.Media
	for _, track := range []struct {
		name string
		link vendorhttp.Text
	}{
		{"vocals", t.Vocals},
		{"backing-vocals", t.BackingVocals},
		{"instrumental", t.Instrumental},
		{"drums", t.Drums},
		{"bass", t.Bass},
		{"guitar", t.Guitar},
		{"piano", t.Piano},
		{"keyboard", t.Keyboard},
		{"percussion", t.Percussion},
		{"strings", t.Strings},
		{"synth", t.Synth},
		{"fx", t.FX},
		{"brass", t.Brass},
		{"woodwinds", t.Woodwinds},
	} {
		if link := track.link.Link(); link != "" {
			all = append(all, mediagate.Media{URL: link, Role: mediagate.RoleStem, Index: len(all), Name: track.name})
		}
	}
	return all
}

// failed is the outcome of a failed job. A word of the vendor's says that the
// content was refused, else its message does.
func (a *Adapter) failed(job record, word string) *mediagate.Outcome {
	var v vendorhttp.Meaning
	text := string(job.ErrorMessage)
	if word == sensitive || refusedContent.MatchString(text) {
		v.Kind = mediagate.KindModerated
	}
	return a.HTTP.Failed(vendorhttp.FailureOf(v), text)
}
