package kling

import (
	"net/http"
	"strings"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// fine is the code of an answer that states no error.
const fine = "0"

// meanings is the vendor's error table. The code decides, never the HTTP
// status: 429 comes with an empty purse as well as with too many calls.
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
	// A server's fault proves nothing.
	"5000": {Kind: mediagate.KindAmbiguous},
	"5001": {Kind: mediagate.KindAmbiguous}, // maintenance
	"5002": {Kind: mediagate.KindAmbiguous}, // timeout inside
	// A success that holds nothing of what was asked for.
	fine: {Kind: mediagate.KindAmbiguous},
}

// unfit says that it may be the token that was refused, and not the key behind
// it: a new one is worth a try.
func unfit(code vendorhttp.Text) bool {
	switch code {
	case "1000", "1001", "1002", "1003", "1004":
		return true
	default:
		return false
	}
}

// said reads an answer for what it says of errors.
func said(h *head) vendorhttp.Said {
	if h == nil {
		return vendorhttp.Said{}
	}
	return vendorhttp.Said{
		Own: true, Meaning: meanings[h.Code], Code: string(h.Code), RequestID: string(h.RequestID), Text: string(h.Message),
	}
}

// made reads the answer to a submission. Where our id is taken, an earlier call
// did arrive: a lookup finds it. A model that is gone is known by the code and the text: a
// wrong address has the same code.
func made(answer vendorhttp.Answer, h *head, at place) vendorhttp.Said {
	s := said(h)
	s.Done = s.Code == fine && answer.Status < http.StatusMultipleChoices && idOf(answer, at) != ""
	if s.Own && duplicate(h) {
		s.Meaning = vendorhttp.Meaning{Kind: mediagate.KindAmbiguous}
	}
	ofModel := contains(strings.ToLower(s.Text), "model", "模型")
	if s.Own && answer.Status == http.StatusNotFound && s.Code == "1203" && ofModel {
		s.Meaning = vendorhttp.Meaning{Kind: mediagate.KindNoModel}
	}
	return s
}

// found reads the answer to a query.
func found(answer vendorhttp.Answer, h *head) vendorhttp.Said {
	s := said(h)
	s.Done = s.Code == fine && answer.Status == http.StatusOK
	s.Sure = s.Meaning.Kind == mediagate.KindForbidden
	if s.Own && absent(h) {
		s.Meaning, s.Sure = vendorhttp.Meaning{Kind: mediagate.KindNotFound}, true
	}
	return s
}

// absent is the vendor's word that there is no such job. It proves absence to
// whoever looks for a lost submission, so it is read narrowly: the old
// endpoints say it with the code of a bad value, and 1202, an unknown method,
// would be a wrong address.
func absent(env *head) bool {
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

// duplicate tells a refused external id from other bad values. The vendor
// documents only that it must be unique, so the words are a guess on the wide
// side: an unneeded lookup does no harm.
func duplicate(env *head) bool {
	if env.Code != "1200" && env.Code != "1201" {
		return false
	}
	text := strings.ToLower(string(env.Message))
	taken := contains(text, "exist", "duplicat", "unique", "repeat", "already", "been used", "in use", "重复", "已存在", "唯一")
	return contains(text, "already exist", "已存在", "duplicat", "重复") || taken && contains(text, "external_task_id", "external task id", "externaltaskid")
}

// moderationWords mark a failure as the work of a content check: a failed job
// has a text but no code.
var moderationWords = []string{
	"risk control", "sensitive", "violat", "content policy", "platform policy", "usage policy", "content security", "moderation", "prohibited",
	"inappropriate", "illegal content", "unsafe", "nsfw", "content review",
	"敏感", "违规", "审核", "风控", "违反", "不合规",
}

// failed is the outcome of a failed job, by the vendor's text.
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
