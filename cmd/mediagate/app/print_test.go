package app_test

import (
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate/cmd/mediagate/app"
)

func TestPrintRedacts(t *testing.T) {
	t.Parallel()
	c, err := load(t, whole, nil, nil)
	must(t, err)
	text, err := c.Print()
	must(t, err)
	for _, secret := range []string{"hunter2", "very-secret", "0123456789abcdef", "MDEyMzQ1", "00000000"} {
		if strings.Contains(text, secret) {
			t.Errorf("%q is printed:\n%s", secret, text)
		}
	}
	for _, part := range []string{"bucket: results", "db.example.com", "task_timeout: 2h0m0s", "max_age: 10m0s", "name: kling-a", "account: acme-main", "- kling-old"} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not printed:\n%s", part, text)
		}
	}
}

// TestFiles checks that the models of catalog_dir are named with the channels that serve them.
func TestFiles(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"alpha-v3.yaml": "id: alpha-v3\n", "beta-q3.yaml": "id: beta-q3\n"})
	c := app.Config{CatalogDir: dir, Channels: []app.Channel{
		{Name: "vidu-b", Provider: "vidu"}, {Name: "vidu-a", Provider: "vidu"}, {Name: "kling-a", Provider: "kling", Models: []string{"alpha-video-o1"}},
	}}
	const want = "# model alpha-v3: no channel serves it; its providers: dashscope, kling\n" +
		"# model beta-q3: ok, served by vidu-a, vidu-b\n"
	if got := c.Files(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestPrintRedactsURLs checks that no secret is printed, in any spelling.
func TestPrintRedactsURLs(t *testing.T) {
	t.Parallel()
	const none = "(redacted)"
	for in, want := range map[string]string{
		"postgres://gate:hunter2@db/gate":                                  "postgres://" + none + "@db/gate",
		"postgres://hunter2@db/gate":                                       "postgres://" + none + "@db/gate",
		"postgres://db/gate?user=gate&password=hunter2&sslmode=require":    "postgres://db/gate?user=gate&password=" + none + "&sslmode=require",
		"postgres://db/gate?pass%77ord=hunter2":                            "postgres://db/gate?pass%77ord=" + none,
		"postgres://db/gate?SSLPassword=hunter2":                           "postgres://db/gate?SSLPassword=" + none,
		"postgres://db/gate?a=b;password=hunter2":                          "postgres://db/gate?" + none,
		"postgres:///gate?host=/run/pg&password=hunter2":                   "postgres:///gate?host=/run/pg&password=" + none,
		"postgres://gate:12/hunter2@db/gate":                               none,
		"postgres://gate:12?hunter2@db/gate":                               none,
		"postgres://gate:12#hunter2@db/gate":                               none,
		"postgres://gate:hun#ter2@db/gate":                                 none,
		"postgres://db/gate password=hunter2":                              none,
		"host=db password=hunter2":                                         none,
		"host=db password=hunter2 options=a://b":                           none,
		"hunter2":                                                          none,
		"none":                                                             "none",
		"postgres:hunter2":                                                 none,
		"https://s3.example.com/prefix?region=eu":                          "https://s3.example.com/prefix?region=eu",
		"https://me:hunter2@s3.example.com":                                "https://" + none + "@s3.example.com",
		"https://s3.example.com?X-Amz-Signature=hunter2&api_key=hunter2#x": none,
	} {
		t.Run(in, func(t *testing.T) {
			t.Parallel()
			c := app.Config{
				DatabaseURL: in, PublicURL: in, S3: app.S3{Endpoint: in, PublicEndpoint: in}, Channels: []app.Channel{{BaseURL: in, Proxy: in}},
				Outbound: app.Outbound{Proxy: in},
			}
			text, err := c.Print()
			must(t, err)
			if strings.Contains(text, "hunter2") || strings.Contains(text, "ter2") {
				t.Errorf("a secret is printed:\n%s", text)
			}
			var got struct {
				DatabaseURL string `yaml:"database_url"`
				PublicURL   string `yaml:"public_url"`
				S3          struct {
					Endpoint       string `yaml:"endpoint"`
					PublicEndpoint string `yaml:"public_endpoint"`
				} `yaml:"s3"`
				Channels []struct {
					BaseURL string `yaml:"base_url"`
					Proxy   string `yaml:"proxy"`
				} `yaml:"channels"`
				Outbound struct {
					Proxy string `yaml:"proxy"`
				} `yaml:"outbound"`
			}
			must(t, yaml.Unmarshal([]byte(text), &got))
			places := []string{got.DatabaseURL, got.PublicURL, got.S3.Endpoint, got.S3.PublicEndpoint, got.Channels[0].BaseURL, got.Channels[0].Proxy, got.Outbound.Proxy}
			if diff := cmp.Diff([]string{want, want, want, want, want, want, want}, places); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
