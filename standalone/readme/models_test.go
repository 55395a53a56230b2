package readme_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mediagate/mediagate/catalog"
	"github.com/mediagate/mediagate/internal/npmtest"
	"github.com/mediagate/mediagate/sandbox/sample"
)

// TestModels runs the request of each model's page, and lists the models with clients of other
// vendors, all on one program.
func TestModels(t *testing.T) {
	t.Parallel()
	p := start(t)
	env := []string{"MEDIAGATE_URL=" + p.API, "MEDIAGATE_API_KEY=" + p.Key}
	var answer struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	p.call(t.Context(), t, http.MethodGet, "/v1/models", "", &answer)
	var ids []string
	for _, m := range answer.Data {
		ids = append(ids, m.ID)
	}
	if len(ids) < 10 {
		t.Fatalf("only the models %q", ids)
	}
	media := mediaServer(t)
	models, err := catalog.Load("")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := models.Pages(catalog.Readers{Currency: "USD"})
	if err != nil {
		t.Fatal(err)
	}
	delete(pages, "models/README.md")
	t.Run("group", func(t *testing.T) { // ends before the program does
		for name, page := range pages {
			t.Run(path.Base(name), func(t *testing.T) {
				t.Parallel()
				script := blocksOf(t, name, string(page), "sh run")[0]
				if strings.Contains(script, " -o answer ") {
					runSpeech(t, script, env)
					return
				}
				p.runExample(t, script, media, env)
			})
		}
		t.Run("node", func(t *testing.T) {
			t.Parallel()
			folder := npmtest.Install(t, "models", filepath.Join("testdata", "models"))
			for _, client := range []struct {
				script string
				line   func(id string) *regexp.Regexp
			}{
				{"openai.js", func(id string) *regexp.Regexp { return exactly(id + ` model \S+`) }},
				{"anthropic.js", func(id string) *regexp.Regexp { return exactly(id + ` model \d{4}-\d\d-\d\dT\S+`) }},
				{"genai.js", func(id string) *regexp.Regexp { return exactly(`models/` + id + ` \S.*`) }},
			} {
				t.Run(client.script, func(t *testing.T) {
					t.Parallel()
					out := string(npmtest.Run(t, folder, nil, env, "node", client.script))
					lines := strings.Split(strings.TrimSpace(out), "\n")
					if len(lines) != len(ids) {
						t.Errorf("%d lines for %d models", len(lines), len(ids))
					}
					for _, id := range ids {
						if want := client.line(regexp.QuoteMeta(id)); !slices.ContainsFunc(lines, want.MatchString) {
							t.Errorf("no line of %s in:\n%s", want, out)
						}
					}
				})
			}
		})
	})
}

func exactly(pattern string) *regexp.Regexp { return regexp.MustCompile("^" + pattern + "$") }

// documentedMedia matches the addresses of files in examples.
var documentedMedia = regexp.MustCompile(`https://(media\.)?example\.com/`)

// runExample runs the command of a page, with its media replaced by real files, and waits for
// the task's result.
func (p *place) runExample(t *testing.T, script, media string, env []string) {
	t.Helper()
	out := npmtest.Run(t, t.TempDir(), nil, env, "bash", "-euc", documentedMedia.ReplaceAllLiteralString(script, media))
	var submitted struct {
		Data []struct {
			TaskID string `json:"task_id"`
		} `json:"data"`
	}
	if err := json.Unmarshal(out, &submitted); err != nil || len(submitted.Data) != 1 {
		t.Fatalf("the command printed %s (%v)", out, err)
	}
	ended := p.task(t.Context(), t, submitted.Data[0].TaskID+"?wait=60")
	if ended.Status != "completed" {
		t.Fatalf("the task is %+v", ended)
	}
	var answer struct {
		Data struct {
			Result struct {
				Videos, Images, Audios []struct {
					URL []string `json:"url"`
				}
			} `json:"result"`
		} `json:"data"`
	}
	p.call(t.Context(), t, http.MethodGet, "/v1/tasks/"+ended.ID, "", &answer)
	files := slices.Concat(answer.Data.Result.Videos, answer.Data.Result.Images, answer.Data.Result.Audios)
	if len(files) == 0 {
		t.Errorf("the result is %+v", answer.Data.Result)
	}
	for _, file := range files {
		if len(file.URL) == 0 {
			t.Errorf("a file of the result has no link: %+v", answer.Data.Result)
		}
	}
}

// mediaServer serves a file of each kind under any name, and returns its address.
func mediaServer(t *testing.T) string {
	t.Helper()
	image := sample.Image(640, 360)
	video := sample.Video(sample.VideoSpec{Width: 640, Height: 360, Seconds: 5})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch path.Ext(r.URL.Path) {
		case ".png":
			_, _ = w.Write(image)
		case ".mp4":
			_, _ = w.Write(video)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL + "/"
}
