package kling

import (
	"net/http"
	"strings"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// codeOK is the code of an answer without an error.
const codeOK = "0"

// meanings is the vendor's error table. The code decides, never the HTTP status: the vendor answers
// 429 both for missing funds and for too many calls.
var meanings = map[vendorhttp.Text]vendorhttp.Meaning{
	"1000": {Kind: mediagate.KindCredentials}, // authentication failed
	"1001": {Kind: mediagate.KindCredentials}, // empty
	"1002": {Kind: mediagate.KindCredentials}, // invalid
	"1003": {Kind: mediagate.KindCredentials}, // not yet valid
	"1004": {Kind: mediagate.KindCredentials}, // expired
	"1100": {Kind: mediagate.KindFunds},       // exception of the account
	"1101": {Kind: mediagate.KindFunds},       // arrears
	"1102": {Kind: mediagate.KindFunds},       // resource pack used up or expired
	"1103": {Kind: mediagate.KindForbidden},   // no permission for the API or model
	"1200": {Kind: mediagate.KindInvalid},     // parameters
	"1201": {Kind: mediagate.KindInvalid},     // key or value
	"1202": {Kind: mediagate.KindNotFound},    // method
	"1203": {Kind: mediagate.KindNotFound},    // resource, such as the model
	"1300": {Kind: mediagate.KindModerated},   // platform policy
	"1301": {Kind: mediagate.KindModerated},   // content security
	"1302": {Kind: mediagate.KindThrottled, Retry: time.Second},
	"1303": {Kind: mediagate.KindCapacity, Retry: time.Second}, // parallel tasks over the pack
	"1304": {Kind: mediagate.KindCredentials},                  // IP allow list
	// A fault of the server proves nothing.
	"5000": {Kind: mediagate.KindAmbiguous},
	"5001": {Kind: mediagate.KindAmbiguous}, // maintenance
	"5002": {Kind: mediagate.KindAmbiguous}, // timeout inside
	// A success without the requested data proves nothing.
	codeOK: {Kind: mediagate.KindAmbiguous},
}

// mayRefuseToken reports whether the code may refuse the token and not the key behind it. Then a
// new token is worth a try.
func mayRefuseToken(code vendorhttp.Text) bool {
	switch code {
	case "1000", "1001", "1002", "1003", "1004":
		return true
	default:
		return false
	}
}

// readError reads the error of an answer.
func readError(h *head) vendorhttp.Reading {
	if h == nil {
		return vendorhttp.Reading{}
	}
	return vendorhttp.Reading{
		FromVendor: true, Meaning: meanings[h.Code], Code: string(h.Code),
		RequestID: string(h.RequestID), Text: string(h.Message),
	}
}

// readSubmission reads the answer to a submission. If our id is taken, an earlier call has arrived,
// and a lookup finds its job. An unknown model has the same code as a wrong address, so
// readSubmission also checks that the text speaks of a model.
func readSubmission(answer vendorhttp.Answer, h *head, at place) vendorhttp.Reading {
	s := readError(h)
	s.Done = s.Code == codeOK && answer.Status < http.StatusMultipleChoices && readJobID(answer, at) != ""
	if s.FromVendor && isDuplicate(h) {
		s.Meaning = vendorhttp.Meaning{Kind: mediagate.KindAmbiguous}
	}
	ofModel := contains(strings.ToLower(s.Text), "model", "模型")
	if s.FromVendor && answer.Status == http.StatusNotFound && s.Code == "1203" && ofModel {
		s.Meaning = vendorhttp.Meaning{Kind: mediagate.KindNoModel}
	}
	return s
}

// readQuery reads the answer to a query.
func readQuery(answer vendorhttp.Answer, h *head) vendorhttp.Reading {
	s := readError(h)
	s.Done = s.Code == codeOK && answer.Status == http.StatusOK
	s.ForAllCalls = s.Meaning.Kind == mediagate.KindForbidden
	if s.FromVendor && isAbsent(h) {
		s.Meaning, s.ForAllCalls = vendorhttp.Meaning{Kind: mediagate.KindNotFound}, true
	}
	return s
}

// isAbsent reports whether the answer says that there is no such job. Callers take that as proof
// when they look for a lost submission, so isAbsent accepts few answers. The older endpoints say it
// with the code of a bad value, so isAbsent also checks the text. It does not accept 1202, an
// unknown method, which may mean a wrong address.
func isAbsent(env *head) bool {
	switch env.Code {
	case "1203":
		return true
	case "1200", "1201":
		text := strings.ToLower(string(env.Message))
		return contains(text, "not found", "not exist", "doesn't exist", "no such", "不存在", "未找到")
	default:
		return false
	}
}

// isDuplicate reports whether the vendor refuses the external id because it exists. The vendor
// documents only that the id must be unique, so the words are a broad guess. A false match costs
// one lookup.
func isDuplicate(env *head) bool {
	if env.Code != "1200" && env.Code != "1201" {
		return false
	}
	text := strings.ToLower(string(env.Message))
	taken := contains(text,
		"exist", "duplicat", "unique", "repeat", "already", "been used", "in use", "重复", "已存在", "唯一")
	return contains(text, "already exist", "已存在", "duplicat", "重复") ||
		taken && contains(text, "external_task_id", "external task id", "externaltaskid")
}

// moderationWords appear in the text of a job that failed a content check. A failed job has a text
// but no code.
var moderationWords = []string{
	"risk control", "sensitive", "violat", "content policy", "platform policy", "usage policy",
	"content security", "moderation", "prohibited",
	"inappropriate", "illegal content", "unsafe", "nsfw", "content review",
	"敏感", "违规", "审核", "风控", "违反", "不合规",
}

// failed returns the outcome of a failed job, by the vendor's text.
func (a *Adapter) failed(text string) *mediagate.Outcome {
	var v vendorhttp.Meaning
	if contains(strings.ToLower(text), moderationWords...) {
		v.Kind = mediagate.KindModerated
	}
	return a.http.Failed(vendorhttp.FailureOf(v), text)
}

func contains(text string, words ...string) bool {
	for _, w := range words {
		if strings.Contains(text, w) {
			return true
		}
	}
	return false
}
