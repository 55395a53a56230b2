package readme_test

import (
	"bytes"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/mediagate/mediagate/internal/npmtest"
)

// TestSpeechClients checks that OpenAI's own clients make speech through the gateway unchanged,
// and that they recognise its errors and broken answers.
func TestSpeechClients(t *testing.T) {
	t.Parallel()
	p := start(t)
	env := []string{"MEDIAGATE_URL=" + p.API, "MEDIAGATE_API_KEY=" + p.Key}
	t.Run("group", func(t *testing.T) { // ends before the program does
		t.Run("node", func(t *testing.T) {
			t.Parallel()
			folder := npmtest.Install(t, "speech", filepath.Join("testdata", "speech"))
			for script, want := range map[string][]string{
				"openai.js": {
					`whole audio/wav \d{5} RIFF`, `pieces audio/pcm 1033600 true`,
					`long 400 invalid_request_error BadRequestError`, `refused 422 invalid_request_error UnprocessableEntityError`,
					`failed 502 bad_gateway InternalServerError`, `broken (TypeError|Error)`,
				},
				"ai.js": {`audio audio/wav \d+ RIFF`, `long 400`},
			} {
				t.Run(script, func(t *testing.T) {
					t.Parallel()
					out := string(npmtest.Run(t, folder, nil, env, "node", script))
					lines := strings.Split(strings.TrimSpace(out), "\n")
					for _, line := range want {
						if !slices.ContainsFunc(lines, regexp.MustCompile("^"+line+"$").MatchString) {
							t.Errorf("no line of %s in:\n%s", line, out)
						}
					}
				})
			}
		})
		t.Run("openai-go", func(t *testing.T) {
			t.Parallel()
			client := openai.NewClient(option.WithAPIKey(p.Key), option.WithBaseURL(p.API+"/v1"), option.WithMaxRetries(0))
			answer, err := client.Audio.Speech.New(t.Context(), openai.AudioSpeechNewParams{
				Model: "eta-4o-mini-tts", Input: strings.Repeat("a", 45), Voice: openai.AudioSpeechNewParamsVoiceUnion{OfString: openai.String("coral")},
				ResponseFormat: openai.AudioSpeechNewParamsResponseFormatPCM,
			})
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			sound, err := io.ReadAll(answer.Body)
			if err != nil || len(sound) != 3*24000*2 || answer.Header.Get("Content-Type") != "audio/pcm" {
				t.Errorf("%d bytes of %s, %v", len(sound), answer.Header.Get("Content-Type"), err)
			}
			_, err = client.Audio.Speech.New(t.Context(), openai.AudioSpeechNewParams{
				Model: "eta-4o-mini-tts", Input: "[[sandbox: fail=moderation]]", Voice: openai.AudioSpeechNewParamsVoiceUnion{OfString: openai.String("coral")},
			})
			if e, ok := err.(*openai.Error); !ok || e.StatusCode != http.StatusUnprocessableEntity { //nolint:errorlint // as its users write it
				t.Errorf("%v", err)
			}
		})
	})
}

// runSpeech runs the command of a page whose answer is the sound itself.
func runSpeech(t *testing.T, script string, env []string) {
	t.Helper()
	out := npmtest.Run(t, t.TempDir(), nil, env, "bash", "-euc", script+"\nhead -c 2 answer\n")
	if !bytes.Equal(out, []byte("\xff\xfb")) {
		t.Errorf("the answer begins with %q", out)
	}
}
