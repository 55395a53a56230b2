package vidu

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// imageFault is what a failed task says of an image that cannot be used.
const imageFault = string(mediagate.CodeImageProcessing)

// modelUnavailable is not found, too, but no job.
const modelUnavailable = "ModelUnavailable"

// meanings is the vendor's error table, by the name of the error.
var meanings = map[string]vendorhttp.Meaning{
	"BadRequest":               {Kind: mediagate.KindInvalid},
	"FieldLacking":             {Kind: mediagate.KindInvalid},
	"FieldUnwanted":            {Kind: mediagate.KindInvalid},
	"FieldInvalid":             {Kind: mediagate.KindInvalid},
	"FieldItemCountOutOfRange": {Kind: mediagate.KindInvalid},
	"PageSizeOutOfRange":       {Kind: mediagate.KindInvalid, Code: imageFault}, // sides or ratio of an image
	"ImageDownloadFailure":     {Kind: mediagate.KindInvalid, Code: imageFault},
	"ImageFormatInvalid":       {Kind: mediagate.KindInvalid, Code: imageFault},
	"UserCancelled":            {Kind: mediagate.KindInvalid},
	modelUnavailable:           {Kind: mediagate.KindNotFound},

	"CreditInsufficient": {Kind: mediagate.KindFunds}, // with HTTP 400

	"AuditSubmitIllegal":        {Kind: mediagate.KindModerated},
	"TaskPromptPolicyViolation": {Kind: mediagate.KindModerated}, // in the Chinese pages only
	"CreationPolicyViolation":   {Kind: mediagate.KindModerated},

	"Unauthorized": {Kind: mediagate.KindCredentials},
	"Forbidden":    {Kind: mediagate.KindCredentials},

	"TaskNotFound":     {Kind: mediagate.KindNotFound},
	"CreationNotFound": {Kind: mediagate.KindNotFound},
	"NotFound":         {Kind: mediagate.KindNotFound},

	"OperationInProcess": {Kind: mediagate.KindCapacity, Retry: time.Second}, // with HTTP 400; to be tried later
	"QuotaExceeded":      {Kind: mediagate.KindCapacity, Retry: time.Second}, // jobs at once
	"TooManyRequests":    {Kind: mediagate.KindThrottled, Retry: time.Second},
	"SystemThrottling":   {Kind: mediagate.KindThrottled, Retry: time.Second},

	// These prove nothing.
	"Conflict":               {Kind: mediagate.KindAmbiguous},
	"Canceled":               {Kind: mediagate.KindAmbiguous}, // HTTP 499: our side was thought to have left
	"InternalServiceFailure": {Kind: mediagate.KindAmbiguous},
}

// names finds an error's name however it is spelled: TaskNotFound,
// task_not_found or TASK_NOT_FOUND.
var names = func() map[string]string {
	m := map[string]string{}
	for name := range meanings {
		m[folded(name)] = name
	}
	return m
}()

func folded(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(name))
}

// refusal is what an answer states: the name of the error, and its meaning. The
// name is empty where the answer states no error.
func (r *reply) refusal() (name string, m vendorhttp.Meaning) {
	for _, text := range []vendorhttp.Text{r.Reason, r.ErrCode, r.Code, r.Message} {
		if known := names[folded(string(text))]; known != "" {
			return known, meanings[known]
		}
	}
	code := string(r.Code)
	if n, err := strconv.Atoi(code); err == nil && (n == 0 || n >= 200 && n < 300) {
		code = "" // which is no error
	}
	return cmp.Or(string(r.Reason), string(r.ErrCode), code), vendorhttp.Meaning{}
}

// failed is the outcome of a failed job. The vendor says why by the name of an
// error, and takes no credits for it.
func (a *Adapter) failed(job reply) *mediagate.Outcome {
	name, known := job.refusal()
	f := vendorhttp.FailureOf(known)
	switch {
	case known.Code == imageFault:
		f.Message = "an image of image_urls could not be used"
	case name == "UserCancelled":
		f = vendorhttp.FailureOf(vendorhttp.Meaning{}) // no fault of the request's
		f.Message = "the job was stopped at the vendor"
	}
	text := string(job.Message)
	if folded(text) == folded(name) {
		text = ""
	}
	out := a.HTTP.Failed(f, text)
	out.VendorText = cmp.Or(out.VendorText, a.HTTP.Clean(name))
	return out
}
