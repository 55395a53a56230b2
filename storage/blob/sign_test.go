package blob

import (
	"context"
	"errors"
	"net/url"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 999_000_000, time.UTC)

func openTest(t *testing.T, change func(*Config)) *Store {
	t.Helper()
	c := Config{
		Endpoint: "https://s3.example.com", Region: "eu-west-1", Bucket: "media",
		AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "secret", PathStyle: true,
		Now: func() time.Time { return noon },
	}
	if change != nil {
		change(&c)
	}
	s, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func TestSignLifetime(t *testing.T) {
	t.Parallel()
	start := noon.Truncate(time.Second)
	for name, test := range map[string]struct {
		ttl     time.Duration
		expires time.Time // of the credentials; zero: never
		want    time.Duration
	}{
		"as asked":                       {time.Hour, time.Time{}, time.Hour},
		"seven days":                     {MaxLink, time.Time{}, MaxLink},
		"a second over seven days":       {MaxLink + time.Second, time.Time{}, MaxLink},
		"fractions are cut":              {1500 * time.Millisecond, time.Time{}, time.Second},
		"credentials outlive it":         {time.Hour, start.Add(time.Hour + time.Second), time.Hour},
		"credentials end with it":        {time.Hour, start.Add(time.Hour), time.Hour},
		"credentials end before it":      {time.Hour, start.Add(time.Hour - time.Second), time.Hour - time.Second},
		"credentials end between ticks":  {time.Hour, start.Add(90*time.Second + time.Millisecond), 90 * time.Second},
		"credentials end in a second":    {time.Hour, start.Add(time.Second), time.Second},
		"credentials end within it":      {time.Hour, start.Add(999 * time.Millisecond), 0},
		"credentials have ended already": {time.Hour, start.Add(-time.Minute), 0},
		"no time at all":                 {0, time.Time{}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openTest(t, nil)
			s.creds = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
				return aws.Credentials{
					AccessKeyID: "ASIAEXAMPLE", SecretAccessKey: "secret", SessionToken: "token",
					CanExpire: !test.expires.IsZero(), Expires: test.expires,
				}, nil
			})
			link, err := s.Sign(t.Context(), mediagate.Result{Key: "results/t/1/0"}, test.ttl)
			if test.want == 0 {
				if !mediagate.Is(err, mediagate.KindUnavailable) {
					t.Fatalf("got %v, want an error of kind unavailable", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := link.ExpiresAt.Sub(start); got != test.want {
				t.Errorf("ExpiresAt is %s from the start, want %s", got, test.want)
			}
			// What the link itself says is what counts.
			u, err := url.Parse(link.URL)
			if err != nil {
				t.Fatal(err)
			}
			date, err := time.Parse("20060102T150405Z", u.Query().Get("X-Amz-Date"))
			if err != nil {
				t.Fatal(err)
			}
			life, err := time.ParseDuration(u.Query().Get("X-Amz-Expires") + "s")
			if err != nil {
				t.Fatal(err)
			}
			if got := date.Add(life); !got.Equal(link.ExpiresAt) {
				t.Errorf("the link ends at %s, ExpiresAt is %s", got, link.ExpiresAt)
			}
			if got := u.Query().Get("X-Amz-Security-Token"); got != "token" {
				t.Errorf("the token of temporary credentials is %q", got)
			}
		})
	}
}

func TestSignAddress(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"path style":        {nil, "https://s3.example.com/media/results/t/1/0"},
		"below a path":      {func(c *Config) { c.Endpoint = "http://s3.example.com:7070/store/" }, "http://s3.example.com:7070/store/media/results/t/1/0"},
		"capitals":          {func(c *Config) { c.PublicEndpoint = "HTTPS://Media.Example.COM/" }, "https://media.example.com/media/results/t/1/0"},
		"capitals, inside":  {func(c *Config) { c.Endpoint = "http://S3.Example.com:9000" }, "http://s3.example.com:9000/media/results/t/1/0"},
		"the scheme's port": {func(c *Config) { c.PublicEndpoint = "https://media.example.com:443" }, "https://media.example.com/media/results/t/1/0"},
		"another's port":    {func(c *Config) { c.PublicEndpoint = "http://[2001:DB8::1]:443" }, "http://[2001:db8::1]:443/media/results/t/1/0"},
		"an empty port":     {func(c *Config) { c.PublicEndpoint = "https://media.example.com:" }, "https://media.example.com/media/results/t/1/0"},
		"beyond ASCII":      {func(c *Config) { c.PublicEndpoint = "https://Médias.example.com" }, "https://xn--mdias-bsa.example.com/media/results/t/1/0"},
		"host style":        {func(c *Config) { c.PathStyle = false }, "https://media.s3.example.com/results/t/1/0"},
		"the public one":    {func(c *Config) { c.Endpoint, c.PathStyle = "", false }, "https://media.s3.eu-west-1.amazonaws.com/results/t/1/0"},
		"no region: a home": {func(c *Config) { c.Endpoint, c.Region, c.PathStyle = "", "", false }, "https://media.s3.us-east-1.amazonaws.com/results/t/1/0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openTest(t, test.change)
			link, err := s.Sign(t.Context(), mediagate.Result{Key: "results/t/1/0"}, time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			u, err := url.Parse(link.URL)
			if err != nil {
				t.Fatal(err)
			}
			u.RawQuery = ""
			if diff := cmp.Diff(test.want, u.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got := s.Origin(); got != u.Scheme+"://"+u.Host {
				t.Errorf("the origin is %s", got)
			}
		})
	}
}

func TestSignWithoutCredentials(t *testing.T) {
	t.Parallel()
	s := openTest(t, nil)
	away := errors.New("no role")
	s.creds = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return aws.Credentials{}, away })
	_, err := s.Sign(t.Context(), mediagate.Result{Key: "k"}, time.Hour)
	if !errors.Is(err, away) || !mediagate.Is(err, mediagate.KindUnavailable) {
		t.Errorf("got %v", err)
	}
}
