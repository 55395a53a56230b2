package midjourney

import (
	"bytes"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// reply is the proxy's answer to a submission, or its refusal of any call.
type reply struct {
	Code        vendorhttp.Text `json:"code"`
	Description vendorhttp.Text `json:"description"`
	Result      vendorhttp.Text `json:"result"` // the id of the job
	Properties  struct {
		BannedWord vendorhttp.Text `json:"bannedWord"`
	} `json:"properties"`
}

// The codes of answers. codeExisted also comes with a new job that waits.
const (
	codeAccepted = "1"
	codeMissing  = "3"
	codeExisted  = "21"
	codeQueued   = "22"
)

// queueRetry is the shortest pause before the next try when the proxy has no free account or its
// queue is full.
const queueRetry = 5 * time.Second

// meanings is the proxy's table of refusals, which mostly come with HTTP 200. The meaning of
// codeMissing depends on the job; see reply.meaning.
var meanings = map[string]vendorhttp.Meaning{
	"4":  {Kind: mediagate.KindInvalid},
	"9":  {Kind: mediagate.KindCapacity, Retry: queueRetry}, // a fault of the proxy, or a full queue
	"23": {Kind: mediagate.KindCapacity, Retry: queueRetry},
	"24": {Kind: mediagate.KindModerated},
}

// noAccount matches the text of a codeMissing that means that the proxy has no account for the job.
// Otherwise codeMissing means that the proxy does not know the earlier job.
var noAccount = regexp.MustCompile(`(?i)\baccounts?\b|账号`)

// contentRefusal matches the words of a refusal of content.
var contentRefusal = regexp.MustCompile(
	`(?i)banned prompt|moderat|content polic|community (guidelines|standards)|violat|sensitive|image denied|敏感|违规|违禁|审核`,
)

// readSubmission returns the job's id from the answer to a submission. If the answer to an action has
// the id of the earlier job, the action has made no job, and readSubmission returns KindInvalid.
func (a *Adapter) readSubmission(job mediagate.Job, answer vendorhttp.Answer) (string, error) {
	var r reply
	own := answer.Decode(&r) == nil && r.Code != ""
	id, fine := a.http.ID(r.Result), answer.Status < http.StatusMultipleChoices && r.accepts()
	if own && fine && job.Operation == opAction && id == job.Source.Ref.JobID {
		return "", mediagate.Invalid("custom_id", "custom_id %s makes no picture", mediagate.Quote(job.Source.Button))
	}
	reading := vendorhttp.Reading{
		FromVendor: own, Done: fine && id != "", Meaning: r.meaning(job), Code: string(r.Code), Text: string(r.Description),
	}
	if word := string(r.Properties.BannedWord); reading.Meaning.Kind == mediagate.KindModerated && word != "" {
		reading.Text = "the prompt holds a word that is not allowed: " + word
	}
	if r.Code == codeMissing && reading.Meaning.Kind == mediagate.KindInvalid {
		reading.Text, reading.Param = "the job of task_id is known no more", "task_id"
	}
	return id, a.http.ErrorOf(vendorhttp.Submits, answer, reading)
}

func (r reply) accepts() bool {
	return r.Code == codeAccepted || r.Code == codeQueued || r.Code == codeExisted
}

// meaning returns the meaning of an answer to a submission. Only actions and modals work on an
// earlier job. For other operations codeMissing always means that the proxy has no account.
func (r reply) meaning(job mediagate.Job) vendorhttp.Meaning {
	follows := job.Operation == opAction || job.Operation == opModal
	m, ok := meanings[string(r.Code)]
	switch {
	case r.Code == codeMissing && follows && !noAccount.MatchString(string(r.Description)):
		return vendorhttp.Meaning{Kind: mediagate.KindInvalid}
	case r.Code == codeMissing:
		return vendorhttp.Meaning{Kind: mediagate.KindCapacity, Retry: queueRetry}
	case ok && contentRefusal.MatchString(string(r.Description)):
		return vendorhttp.Meaning{Kind: mediagate.KindModerated}
	}
	return m
}

// readError returns the error for an answer that holds no job, to a call that makes none.
func (a *Adapter) readError(answer vendorhttp.Answer) error {
	var r reply
	v := vendorhttp.Meaning{Kind: mediagate.KindTransient}
	own := answer.Decode(&r) == nil && r.Code != ""
	switch status := answer.Status; {
	case status == http.StatusTooManyRequests:
		v.Kind = mediagate.KindThrottled
	case (status == http.StatusUnauthorized || status == http.StatusForbidden) && !isMarkup(answer.Body):
		v.Kind = mediagate.KindCredentials // the body is empty or plain text
	case own && r.Code == codeMissing && status < http.StatusInternalServerError &&
		!noAccount.MatchString(string(r.Description)):
		v.Kind = mediagate.KindNotFound
	}
	return a.http.Refuse(v, answer, string(r.Code), "", string(r.Description))
}

// isMarkup reports whether the body is HTML, which comes from a server before the proxy.
func isMarkup(body []byte) bool { return bytes.HasPrefix(bytes.TrimSpace(body), []byte("<")) }

// task is a job in an answer of the proxy.
type task struct {
	ID          vendorhttp.Text `json:"id"`
	Action      vendorhttp.Text `json:"action"`
	Status      vendorhttp.Text `json:"status"`
	Prompt      vendorhttp.Text `json:"prompt"`
	PromptEn    vendorhttp.Text `json:"promptEn"`
	Progress    vendorhttp.Text `json:"progress"`
	ImageURL    vendorhttp.Text `json:"imageUrl"` // a draft until the job has succeeded
	ImageURLs   []picture       `json:"imageUrls"`
	FailReason  vendorhttp.Text `json:"failReason"`
	Description vendorhttp.Text `json:"description"`
	Buttons     []button        `json:"buttons"`
	Properties  struct {
		FinalPrompt vendorhttp.Text `json:"finalPrompt"`
		MessageHash vendorhttp.Text `json:"messageHash"`
	} `json:"properties"`
}

type picture struct {
	URL vendorhttp.Text `json:"url"`
}

// readTask reads the answer about one job. The proxy answers with an empty body or null if it does
// not know the job.
func (a *Adapter) readTask(answer vendorhttp.Answer) (task, error) {
	var t task
	body := bytes.TrimSpace(answer.Body)
	ok := answer.Status == http.StatusOK || answer.Status == http.StatusNoContent
	if ok && (len(body) == 0 || bytes.Equal(body, []byte("null"))) {
		return t, mediagate.Errorf(mediagate.KindNotFound, "the vendor knows no such job")
	}
	if answer.Status != http.StatusOK || answer.Decode(&t) != nil || t.ID.ID() == "" {
		return t, a.readError(answer)
	}
	return t, nil
}

// readTasks reads the answer about several jobs, which is a bare list.
func (a *Adapter) readTasks(answer vendorhttp.Answer) ([]task, error) {
	var tasks []task
	if answer.Status != http.StatusOK || answer.DecodeList(&tasks) != nil {
		return nil, a.readError(answer)
	}
	return tasks, nil
}

// states holds all status words. A MODAL job waits until it gets its mask or words.
var states = map[string]mediagate.JobState{
	"NOT_START":   mediagate.JobQueued,
	"SUBMITTED":   mediagate.JobQueued,
	"IN_PROGRESS": mediagate.JobRunning,
	"MODAL":       mediagate.JobWaiting,
	"SUCCESS":     mediagate.JobSucceeded,
	"FAILURE":     mediagate.JobFailed,
	"CANCEL":      mediagate.JobFailed,
}

// report translates a job into a report.
func (a *Adapter) report(ref mediagate.JobRef, t task) (mediagate.Report, error) {
	report, err := a.http.Report(ref, t.ID, states, t.Status)
	if err != nil {
		return report, err
	}
	report.Percent = percent(t.Progress)
	if report.State == mediagate.JobWaiting && ref.Operation == opModal {
		// The modal has arrived. The status stays MODAL until the job leaves the queue.
		report.State = mediagate.JobQueued
	}
	switch report.State {
	case mediagate.JobSucceeded:
		report.Offer(a.successOutcome(ref, t))
	case mediagate.JobFailed:
		report.Outcome = a.failed(t)
	default: // still under way
	}
	return report, nil
}

// percent reads a text such as 45%. It returns -1 for any other text, and 99 at most.
func percent(progress vendorhttp.Text) int {
	n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(string(progress)), "%"))
	if err != nil || n < 0 {
		return -1
	}
	return min(n, 99)
}

// successOutcome returns the outcome of a job by its pictures or texts. whole reports whether every
// picture has its link.
func (a *Adapter) successOutcome(ref mediagate.JobRef, t task) (out *mediagate.Outcome, whole bool) {
	out = &mediagate.Outcome{Made: &mediagate.Made{Buttons: t.buttons()}}
	if ref.Operation == opDescribe || t.Action == "DESCRIBE" {
		// The picture of such a job is the client's own.
		out.Made.Descriptions = descriptions(t)
		return out, true
	}
	out.Made.Prompt = t.prompt()
	out.Media, whole = t.media()
	if a.dialect == dialectNovicezk && t.isGrid() {
		id := t.Properties.MessageHash.ID()
		if id == "" {
			id = t.ID.ID()
		}
		out.Made.Buttons = classicButtons(id)
	}
	return out, whole
}

// upload matches a link to an image of the request in the vendor's storage.
var upload = regexp.MustCompile(`<?https?://(?:s\.mj\.run|[a-z0-9.-]*discord(?:app)?\.(?:com|net))/\S*\s*`)

// prompt returns the prompt that the vendor used, without the links to the images of the request.
func (t task) prompt() string {
	for _, text := range []vendorhttp.Text{t.Properties.FinalPrompt, t.PromptEn, t.Prompt} {
		if words := upload.ReplaceAllString(string(text), ""); words != "" {
			return cleanText(words)
		}
	}
	return ""
}

// media returns the job's pictures: a grid with its four pictures if the proxy has cut them, or the
// one picture. If some of the four have no link but there is a grid, media returns the grid alone,
// and the gateway cuts all four out of it. whole is false if a picture is missing.
func (t task) media() (out []mediagate.Media, whole bool) {
	image := t.ImageURL.Link()
	var single []mediagate.Media
	for i, p := range t.ImageURLs {
		if link := p.URL.Link(); link != "" {
			single = append(single, mediagate.Media{URL: link, Index: i})
		}
	}
	switch four := t.isGrid(); {
	case four && image != "" && len(single) == 4:
		return append([]mediagate.Media{{URL: image, Role: mediagate.RoleGrid}}, single...), true
	case four && image != "":
		return []mediagate.Media{{URL: image, Role: mediagate.RoleGrid}}, true
	case four:
		return single, len(single) == 4
	case image != "":
		return []mediagate.Media{{URL: image}}, true
	case len(single) > 0:
		return []mediagate.Media{{URL: single[0].URL}}, true
	default:
		return nil, false
	}
}

var (
	cancelled      = regexp.MustCompile(`(?i)cancel+ed|取消`)
	invalidRequest = regexp.MustCompile(`(?i)invalid (parameter|link|prompt|request)`)
)

// failed returns the outcome of a failed job. The proxies give the reason in words only.
func (a *Adapter) failed(t task) *mediagate.Outcome {
	reason := string(t.FailReason)
	switch {
	case t.Status == "CANCEL", cancelled.MatchString(reason):
		f := vendorhttp.FailureOf(vendorhttp.Meaning{})
		f.Message = "the job was cancelled at the vendor"
		return a.http.Failed(f, "")
	case contentRefusal.MatchString(reason):
		return a.http.Failed(vendorhttp.FailureOf(vendorhttp.Meaning{Kind: mediagate.KindModerated}), reason)
	case invalidRequest.MatchString(reason):
		return a.http.Failed(vendorhttp.FailureOf(vendorhttp.Meaning{Kind: mediagate.KindInvalid}), reason)
	default:
		return a.http.Failed(vendorhttp.FailureOf(vendorhttp.Meaning{}), reason)
	}
}
