package gemini_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/providers/gemini"
	"github.com/mediagate/mediagate/providers/providertest"
)

var update = flag.Bool("update", false, "rewrite golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// These are short names for the tables below.
var (
	quote = providertest.Quote
	row   = providertest.RowOf
)

const externalID = "task_01JZZZZZZZZZZZZZZZZZZZZZZZ"

func picture(format string, width, height int) string {
	var b bytes.Buffer
	img := image.NewGray(image.Rect(0, 0, width, height))
	if format == "jpeg" {
		if err := jpeg.Encode(&b, img, nil); err != nil {
			panic(err)
		}
		return b.String()
	}
	if err := png.Encode(&b, img); err != nil {
		panic(err)
	}
	return b.String()
}

var made = picture("png", 2, 2)

func inline(data string) string {
	return `{"inlineData":{"mimeType":"image/png","data":"` + base64.StdEncoding.EncodeToString([]byte(data)) + `"}}`
}

// content returns an answer with these parts.
func content(parts ...string) providertest.Reply {
	return providertest.Reply{Body: `{"candidates":[{"content":{"role":"model","parts":[` + strings.Join(parts, ",") +
		`]},"finishReason":"STOP","index":0}],"usageMetadata":{"totalTokenCount":1290},"modelVersion":"m","responseId":"resp-1"}`}
}

func refusal(status int, code, text string) providertest.Reply {
	return providertest.Reply{Status: status, Body: fmt.Sprintf(`{"error":{"code":%d,"message":%s,"status":%s}}`, status, quote(text), quote(code))}
}

const noKey = `{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}]}}`

func suite() providertest.Suite {
	ref := mediagate.JobRef{JobID: "resp-1", ExternalID: externalID, Operation: "image"}
	stored, err := providertest.NewSink().Store(context.Background(), 0, strings.NewReader(made))
	if err != nil {
		panic(err)
	}
	return providertest.Suite{
		Channel: mediagate.Channel{
			Name: "gemini-a", Provider: "gemini", Credentials: mediagate.Secrets(map[string]string{"api_key": "AIzaSyB4bX9mQ2vT7pW8nR3"}),
		},
		Job: mediagate.Job{
			TaskID: externalID, ExternalID: externalID, Upstream: "gemini-3.1-flash-image", Operation: "image",
			Params: []byte(`{"prompt":"a red kite","image_urls":["https://img.example.com/a.png"],"size":"16:9","resolution":"2K","n":1}`),
		},
		Others: []mediagate.Job{{
			TaskID: externalID, ExternalID: externalID, Upstream: "gemini-9-image", Operation: "base_image",
			Params: []byte(`{"prompt":"a red kite","image_urls":["https://img.example.com/a.png"]}`),
		}},
		Inexpressible: []mediagate.Job{
			{Upstream: "gemini-9-image", Operation: "base_image", Params: []byte(`{"prompt":"a","size":"1:1","aspect_ratio":"4:3"}`)},
			{Upstream: "gemini-9-image", Operation: "base_image", Params: []byte(`{"prompt":"a","resolution":"8K"}`)},
		},
		Files: map[string]string{
			"https://img.example.com/a.png":  picture("png", 3, 2),
			"https://img.example.com/b.jpg":  picture("jpeg", 30, 20),
			"https://img.example.com/c.txt":  "no image",
			"https://img.example.com/c.gif":  "GIF89a\x01\x00\x01\x00\x00\x00\x00;",
			"https://img.example.com/heavy1": heavy(8_000_000),
			"https://img.example.com/heavy2": heavy(7_000_000),
		},
		Accepted:   content(`{"text":"Here it is."}`, inline(made)),
		Submission: mediagate.Submission{Ref: ref, Outcome: &mediagate.Outcome{Succeeded: true, Media: []mediagate.Media{stored}, VendorCharge: mediagate.ChargedBy("1290", "tokens")}},
		Refused:    func(text string) providertest.Reply { return refusal(400, "INVALID_ARGUMENT", text) },
		SubmitRows: map[string]providertest.Row{
			"INVALID_ARGUMENT":    {Reply: refusal(400, "INVALID_ARGUMENT", "bad size"), Kind: mediagate.KindInvalid, Code: mediagate.CodeInvalidParameters},
			"no key":              row(mediagate.KindCredentials, providertest.Reply{Status: 400, Body: noKey}),
			"FAILED_PRECONDITION": row(mediagate.KindFunds, refusal(400, "FAILED_PRECONDITION", "enable billing")),
			"UNAUTHENTICATED":     {Reply: refusal(401, "UNAUTHENTICATED", "who are you"), Kind: mediagate.KindCredentials, Code: mediagate.CodeProviderRefused},
			"PERMISSION_DENIED":   row(mediagate.KindCredentials, refusal(403, "PERMISSION_DENIED", "no")),
			"NOT_FOUND":           {Reply: refusal(404, "NOT_FOUND", "models/gemini-3.1-flash-image is not found for API version v1beta, or is not supported for generateContent."), Kind: mediagate.KindNoModel, Code: mediagate.CodeModelRetired},
			"NOT_FOUND, no model": row(mediagate.KindNotFound, refusal(404, "NOT_FOUND", "no such page")),
			"NOT_FOUND, a path":   row(mediagate.KindNotFound, refusal(404, "NOT_FOUND", "nothing is served at /v1/models/gemini-3.1-flash-image:generateContent")),
			"RESOURCE_EXHAUSTED":  {Reply: refusal(429, "RESOURCE_EXHAUSTED", "slow down"), Kind: mediagate.KindThrottled, RetryAfter: time.Second},
			"INTERNAL":            {Reply: refusal(500, "INTERNAL", "oops"), Kind: mediagate.KindAmbiguous, Code: mediagate.CodeSubmissionUnknown},
			"UNKNOWN":             row(mediagate.KindAmbiguous, refusal(500, "UNKNOWN", "oops")),
			"UNAVAILABLE":         row(mediagate.KindAmbiguous, refusal(503, "UNAVAILABLE", "overloaded")),
			"DEADLINE_EXCEEDED":   row(mediagate.KindAmbiguous, refusal(504, "DEADLINE_EXCEEDED", "too long")),
			"CANCELLED":           row(mediagate.KindAmbiguous, refusal(499, "CANCELLED", "gone")),
			"new status with 400": row(mediagate.KindInvalid, refusal(400, "NOVELTY", "new")),
			"no error with 202":   row(mediagate.KindAmbiguous, providertest.Reply{Status: 202, Body: content(inline(made)).Body}),
			"ends in the image":   row(mediagate.KindAmbiguous, providertest.Reply{Body: content(inline(made)).Body[:120]}),
			"ends after it":       row(mediagate.KindAmbiguous, providertest.Reply{Body: strings.TrimRight(content(inline(made)).Body, "}")}),
			"odd candidates":      row(mediagate.KindAmbiguous, providertest.Reply{Body: `{"candidates":"none"}`}),
			"an image elsewhere":  row(mediagate.KindAmbiguous, providertest.Reply{Body: `{"data":"` + base64.StdEncoding.EncodeToString([]byte(made)) + `"}`}),
			"no JSON":             row(mediagate.KindAmbiguous, providertest.Reply{Body: "<html>"}),
			"endless refusal":     row(mediagate.KindAmbiguous, refusal(400, "INVALID_ARGUMENT", strings.Repeat("x", 2<<20))),
			"endless words":       row(mediagate.KindAmbiguous, content(`{"text":"`+strings.Repeat("x", 2<<20)+`"}`)),
		},
	}
}

// heavy returns a picture of n bytes.
func heavy(n int) string {
	p := picture("png", 4, 4)
	return p + strings.Repeat("\x00", n-len(p))
}

func TestConformance(t *testing.T) {
	t.Parallel()
	providertest.Run(t, suite())
}

func TestGolden(t *testing.T) {
	t.Parallel()
	suite().Golden(t, "testdata/*.txtar", *update)
}

func submit(t *testing.T, params string, reply providertest.Reply) (*providertest.Vendor, *providertest.Sink, mediagate.Submission, error) {
	t.Helper()
	s := suite()
	vendor, sink := providertest.NewVendor(t, reply), providertest.NewSink()
	job := s.Job
	job.Params, job.Inputs, job.Sink = []byte(params), providertest.Inputs(s.Files), sink
	submission, err := s.Open(t, vendor.URL, providers.Options{}).Submit(t.Context(), job)
	return vendor, sink, submission, err
}

// TestAnswersWithoutAnImage checks that HTTP 200 without an image is a failure, and that its reason
// decides whether the content was refused.
func TestAnswersWithoutAnImage(t *testing.T) {
	t.Parallel()
	finish := func(reason string) providertest.Reply {
		return providertest.Reply{Body: `{"candidates":[{"finishReason":` + quote(reason) + `,"finishMessage":"cannot show https://a.example.com/b"}],"responseId":"resp-1"}`}
	}
	type answer struct {
		reply providertest.Reply
		code  mediagate.FailureCode
	}
	answers := map[string]answer{
		"blocked":       {providertest.Reply{Body: `{"promptFeedback":{"blockReason":"OTHER"},"responseId":"resp-1"}`}, mediagate.CodeContentPolicy},
		"only words":    {content(`{"text":"I can only describe it."}`), mediagate.CodeGenerationFailed},
		"only a draft":  {content(strings.TrimSuffix(inline(made), "}") + `,"thought":true}`), mediagate.CodeGenerationFailed},
		"broken base64": {content(`{"inlineData":{"data":"a!b?"}}`), mediagate.CodeGenerationFailed},
	}
	for _, reason := range []string{"SAFETY", "IMAGE_SAFETY", "PROHIBITED_CONTENT", "IMAGE_PROHIBITED_CONTENT", "RECITATION", "IMAGE_RECITATION", "BLOCKLIST", "SPII"} {
		answers[reason] = answer{finish(reason), mediagate.CodeContentPolicy}
	}
	for _, reason := range []string{"NO_IMAGE", "IMAGE_OTHER", "OTHER", "MAX_TOKENS", "STOP", "NOVELTY"} {
		answers[reason] = answer{finish(reason), mediagate.CodeGenerationFailed}
	}
	for name, tc := range answers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, s, err := submit(t, `{"prompt":"a"}`, tc.reply)
			if err != nil {
				t.Fatal(err)
			}
			o := s.Outcome
			if o == nil || o.Succeeded || o.Failure == nil || o.Failure.Code != tc.code || o.Failure.Message == "" || len(o.Media) != 0 {
				t.Fatalf("outcome %+v, want a failure %s", o, tc.code)
			}
			if strings.Contains(o.VendorText+o.Failure.Message, "example.com") {
				t.Errorf("the text shows an address: %q", o.VendorText)
			}
		})
	}
}

// TestTheLastImageCounts checks that the final image replaces the drafts before it.
func TestTheLastImageCounts(t *testing.T) {
	t.Parallel()
	draft := strings.TrimSuffix(inline("a draft"), "}") + `,"thought":true}`
	_, sink, s, err := submit(t, `{"prompt":"a"}`, content(draft, `{"text":"done"}`, inline(made)))
	if err != nil || s.Outcome == nil || !s.Outcome.Succeeded || len(s.Outcome.Media) != 1 {
		t.Fatalf("%+v, %v", s.Outcome, err)
	}
	if d := cmp.Diff(map[int]string{0: made}, sink.Files()); d != "" {
		t.Errorf("files (-want +got):\n%s", d)
	}
}

// TestReferences checks that the adapter validates reference images before it sends anything.
func TestReferences(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ params, message string }{
		"texts and objects": {`{"prompt":"a","image_urls":["https://img.example.com/a.png",{"url":"https://img.example.com/b.jpg"}]}`, ""},
		"no image":          {`{"prompt":"a","image_urls":["https://img.example.com/a.png","https://img.example.com/c.txt"]}`, "image_urls[1] must be a PNG, JPEG or WebP image"},
		"another type":      {`{"prompt":"a","image_urls":["https://img.example.com/c.gif"]}`, "image_urls[0] must be a PNG, JPEG or WebP image"},
		"heavy":             {`{"prompt":"a","image_urls":["https://img.example.com/heavy1"]}`, ""},
		"too heavy":         {`{"prompt":"a","image_urls":["https://img.example.com/heavy1","https://img.example.com/heavy2"]}`, "the file is too large"},
		"unreachable":       {`{"prompt":"a","image_urls":["https://img.example.com/none"]}`, "the file cannot be fetched"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			vendor, _, _, err := submit(t, tc.params, content(inline(made)))
			sent := vendor.Requests()
			if tc.message == "" {
				if err != nil || len(sent) != 1 || !json.Valid([]byte(sent[0].Body)) {
					t.Fatalf("%d requests, %v", len(sent), err)
				}
				return
			}
			e, _ := errors.AsType[*mediagate.Error](err)
			if e == nil || e.Kind != mediagate.KindInvalid || e.Code != string(mediagate.CodeImageProcessing) || e.Message != tc.message {
				t.Errorf("error %v, want %q", err, tc.message)
			}
			if len(sent) != 0 {
				t.Errorf("%d requests, want none", len(sent))
			}
		})
	}
}

// TestTextLikeAPlaceholder checks that no text of the client takes the place of an image.
func TestTextLikeAPlaceholder(t *testing.T) {
	t.Parallel()
	const text = `\u00010\u0001`
	vendor, _, _, err := submit(t, `{"prompt":"`+text+`","size":"`+text+`","image_urls":["https://img.example.com/a.png"]}`, content(inline(made)))
	if err != nil {
		t.Fatal(err)
	}
	var sent struct {
		Contents []struct {
			Parts []struct {
				Inline struct {
					Data []byte `json:"data"`
				} `json:"inlineData"`
			} `json:"parts"`
		} `json:"contents"`
	}
	if err := json.Unmarshal([]byte(vendor.Requests()[0].Body), &sent); err != nil {
		t.Fatal(err)
	}
	if got := sent.Contents[0].Parts[1].Inline.Data; string(got) != suite().Files["https://img.example.com/a.png"] {
		t.Errorf("sent %d bytes in place of the image", len(got))
	}
}

func TestSupports(t *testing.T) {
	t.Parallel()
	for params, field := range map[string]string{
		`{"prompt":"a","size":"auto","resolution":"0.5K","n":4}`: "",
		`{"prompt":"a","resolution":"8K"}`:                       "resolution",
		`{"prompt":"a","seed":1}`:                                "seed",
	} {
		err := gemini.Supports(mediagate.Job{Operation: "image", Params: []byte(params)}, nil)
		e, _ := errors.AsType[*mediagate.Error](err)
		if (err == nil) != (field == "") || e != nil && e.Param != field {
			t.Errorf("%s: %v, want %q", params, err, field)
		}
	}
}

// TestPollFindsNothing checks that Poll makes no call, because the vendor keeps no jobs.
func TestPollFindsNothing(t *testing.T) {
	t.Parallel()
	vendor := providertest.NewVendor(t)
	_, err := suite().Open(t, vendor.URL, providers.Options{}).Poll(t.Context(), mediagate.JobRef{JobID: "resp-1"})
	if !mediagate.Is(err, mediagate.KindNotFound) || len(vendor.Requests()) != 0 {
		t.Errorf("Poll: %v after %d requests", err, len(vendor.Requests()))
	}
}

func FuzzDecode(f *testing.F) { providertest.Fuzz(f, suite()) }
