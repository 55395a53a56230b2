package openai_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/providers/openai"
	"github.com/mediagate/mediagate/providers/providertest"
	"github.com/mediagate/mediagate/sandbox/sample"
)

var update = flag.Bool("update", false, "rewrite golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Short names for the tables.
var row = providertest.RowOf

const sound = "ID3\x04\x00 the sound of a fox"

func accepted() providertest.Reply {
	return providertest.Reply{Body: sound, Header: map[string]string{"Content-Type": "audio/mpeg"}}
}

func refusal(status int, kind, code, text string) providertest.Reply {
	body, err := json.Marshal(map[string]any{"error": map[string]any{"message": text, "type": kind, "param": nil, "code": code}})
	if err != nil {
		panic(err)
	}
	return providertest.Reply{Status: status, Body: string(body)}
}

func throttled(after time.Duration, header ...string) providertest.Row {
	reply := refusal(429, "requests", "rate_limit_exceeded", "slow down")
	reply.Header = map[string]string{}
	for i := 0; i < len(header); i += 2 {
		reply.Header[header[i]] = header[i+1]
	}
	return providertest.Row{Reply: reply, Kind: mediagate.KindThrottled, RetryAfter: after}
}

func suite() providertest.Suite {
	sum := sha256.Sum256([]byte(sound))
	const invalid = "invalid_request_error"
	return providertest.Suite{
		Channel: mediagate.Channel{
			Name: "openai-a", Provider: "openai", Credentials: mediagate.Secrets(map[string]string{"api_key": "sk-test-0123456789abcdef"}),
			Options: map[string]string{"organization": "org-1", "project": "proj_1"},
		},
		Prefix: "/v1",
		Job: mediagate.Job{
			TaskID: "speech_1", ExternalID: "speech_1", Upstream: "gpt-4o-mini-tts", Operation: "speech",
			Params: []byte(`{"input":"a fox <b>","voice":"coral","response_format":"mp3","speed":1}`),
		},
		Accepted: accepted(),
		Submission: mediagate.Submission{Outcome: &mediagate.Outcome{Succeeded: true, Media: []mediagate.Media{{Stored: &mediagate.Result{
			Key: "result-0", MimeType: http.DetectContentType([]byte(sound)), Size: int64(len(sound)), SHA256: hex.EncodeToString(sum[:]),
		}}}}},
		Refused: func(text string) providertest.Reply { return refusal(400, invalid, "", text) },
		SubmitRows: map[string]providertest.Row{
			"invalid":                {Reply: refusal(400, invalid, "", "too many tokens"), Kind: mediagate.KindInvalid, Code: mediagate.CodeInvalidParameters},
			"content":                {Reply: refusal(400, invalid, "content_policy_violation", "no"), Kind: mediagate.KindModerated, Code: mediagate.CodeContentPolicy},
			"no key":                 row(mediagate.KindCredentials, refusal(401, invalid, "invalid_api_key", "who are you")),
			"wrong organization":     row(mediagate.KindCredentials, refusal(401, invalid, "mismatched_organization", "not yours")),
			"region":                 row(mediagate.KindCredentials, refusal(403, "request_forbidden", "unsupported_country_region_territory", "not there")),
			"no model":               {Reply: refusal(404, invalid, "model_not_found", "no such model"), Kind: mediagate.KindNoModel, Code: mediagate.CodeModelRetired},
			"no model with 403":      row(mediagate.KindNotFound, refusal(403, invalid, "model_not_found", "no access")),
			"no route":               row(mediagate.KindNotFound, refusal(404, invalid, "", "Invalid URL")),
			"rate limit":             throttled(0),
			"rate limit, seconds":    throttled(7*time.Second, "Retry-After", "7"),
			"rate limit, ms":         throttled(2500*time.Millisecond, "Retry-After-Ms", "2500"),
			"rate limit, odd ms":     throttled(0, "Retry-After-Ms", "-1e9"),
			"rate limit, endless ms": throttled(5*time.Minute, "Retry-After-Ms", "1e300"),
			"tokens a minute":        row(mediagate.KindThrottled, refusal(429, "tokens", "rate_limit_exceeded", "slow down")),
			"new code with 429":      row(mediagate.KindThrottled, refusal(429, "novelty", "", "slow down")),
			"insufficient_quota":     row(mediagate.KindFunds, refusal(429, "insufficient_quota", "insufficient_quota", "pay")),
			"quota by its type":      row(mediagate.KindFunds, refusal(429, "insufficient_quota", "", "pay")),
			"hard limit":             row(mediagate.KindFunds, refusal(400, invalid, "billing_hard_limit_reached", "pay")),
			"new code with 400":      row(mediagate.KindInvalid, refusal(400, "novelty", "novelty", "no")),
			"conflict":               row(mediagate.KindAmbiguous, refusal(409, invalid, "", "later")),
			"refusal with 500":       row(mediagate.KindAmbiguous, refusal(500, "insufficient_quota", "insufficient_quota", "pay")),
			"overloaded":             row(mediagate.KindAmbiguous, refusal(503, "server_error", "", "overloaded")),
			"sound with 202":         row(mediagate.KindAmbiguous, providertest.Reply{Status: 202, Body: sound, Header: accepted().Header}),
			"events":                 row(mediagate.KindAmbiguous, providertest.Reply{Body: "data: {}\n\n", Header: map[string]string{"Content-Type": "text/event-stream"}}),
			"endless refusal":        row(mediagate.KindAmbiguous, refusal(400, invalid, "", strings.Repeat("x", 1<<20))),
		},
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	providertest.Run(t, suite())
}

func TestGolden(t *testing.T) {
	t.Parallel()
	suite().Golden(t, "testdata/*.txtar", *update)
}

// An answer that is not sound of the requested format is ambiguous, whatever its content type.
// Sound is passed on to its last byte.
func TestSoundIsLookedAt(t *testing.T) {
	t.Parallel()
	bytesOf := func(r io.Reader) string {
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	sounds := map[string]string{
		"mp3": bytesOf(sample.MP3(0.1)), "opus": bytesOf(sample.Opus()), "aac": bytesOf(sample.AAC(0.1)), "flac": bytesOf(sample.FLAC()),
		"wav": bytesOf(sample.Wave(0.1, 24000)), "pcm": bytesOf(sample.PCM(0.1, 24000)),
	}
	others := map[string]string{
		"HTML": "<!DOCTYPE html><html><body>Sign in</body></html>", "XML": "\ufeff<?xml version='1.0'?><error/>", "JSON": `{"error":{"message":"böse"}}`,
		"a PNG":          "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR",
		"HTML in UTF-16": "\xff\xfe<\x00h\x00t\x00m\x00l\x00>\x00", "JSON in UTF-16": "\xfe\xff\x00{\x00\"\x00e\x00r\x00r\x00o\x00r",
		"a JPEG": "\xff\xd8\xff\xe0\x00\x10JFIF", "a word": "no",
	}
	speak := func(t *testing.T, format, kind, body string) (io.ReadCloser, error) {
		t.Helper()
		vendor := providertest.NewVendor(t, providertest.Reply{Body: body, Header: map[string]string{"Content-Type": kind}})
		ch := suite().Channel
		ch.BaseURL = vendor.URL + "/v1"
		a, err := openai.New(ch, providers.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(a.Close)
		job := suite().Job
		job.Params = []byte(`{"input":"a fox","voice":"coral","response_format":"` + format + `"}`)
		return a.Speak(t.Context(), job)
	}
	for format, sound := range sounds {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			for _, kind := range []string{"audio/mpeg", "application/octet-stream", "application/xml"} {
				stream, err := speak(t, format, kind, sound)
				if err != nil {
					t.Fatalf("%s as %s: %v", format, kind, err)
				}
				if got, err := io.ReadAll(stream); err != nil || string(got) != sound {
					t.Errorf("%s as %s: %d bytes of %d, %v", format, kind, len(got), len(sound), err)
				}
				_ = stream.Close()
			}
			for name, body := range others {
				if _, err := speak(t, format, "audio/mpeg", body); !mediagate.Is(err, mediagate.KindAmbiguous) {
					t.Errorf("%s for %s: %v", name, format, err)
				}
			}
			for other, body := range sounds {
				if other == format || format == "pcm" && (other == "mp3" || other == "aac") {
					continue // a frame may also be a sample
				}
				if _, err := speak(t, format, "audio/mpeg", body); !mediagate.Is(err, mediagate.KindAmbiguous) {
					t.Errorf("%s for %s: %v", other, format, err)
				}
			}
		})
	}
}

// Speak sends the options of the channel with each call. New checks them.
func TestOptions(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		options map[string]string
		want    [2]string
		wrong   bool
	}{
		"none":          {nil, [2]string{}, false},
		"both":          {map[string]string{"organization": "org-1", "project": "proj_1"}, [2]string{"org-1", "proj_1"}, false},
		"a line break":  {map[string]string{"organization": "org-1\r\nX-Evil: 1"}, [2]string{}, true},
		"not all ASCII": {map[string]string{"project": "pröj"}, [2]string{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			vendor := providertest.NewVendor(t, accepted())
			ch := suite().Channel
			ch.BaseURL, ch.Options = vendor.URL+"/v1", tc.options
			a, err := openai.New(ch, providers.Options{})
			if tc.wrong != mediagate.Is(err, mediagate.KindInvalid) {
				t.Fatalf("New: %v", err)
			}
			if tc.wrong {
				return
			}
			defer a.Close()
			stream, err := a.Speak(t.Context(), suite().Job)
			if err != nil {
				t.Fatal(err)
			}
			defer stream.Close()
			h := vendor.Requests()[0].Header
			if got := [2]string{h.Get("OpenAI-Organization"), h.Get("OpenAI-Project")}; got != tc.want {
				t.Errorf("sent %q, want %q", got, tc.want)
			}
		})
	}
}

// The vendor stores nothing that could be polled.
func TestPollFindsNothing(t *testing.T) {
	t.Parallel()
	vendor := providertest.NewVendor(t)
	_, err := suite().Open(t, vendor.URL, providers.Options{}).Poll(t.Context(), mediagate.JobRef{JobID: "1"})
	if !mediagate.Is(err, mediagate.KindNotFound) || len(vendor.Requests()) != 0 {
		t.Errorf("Poll: %v after %d requests", err, len(vendor.Requests()))
	}
}

func FuzzDecode(f *testing.F) { providertest.Fuzz(f, suite()) }
