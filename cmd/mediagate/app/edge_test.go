package app

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/internal/outbound"
	"github.com/mediagate/mediagate/task"
)

// What makes up a signed link, and must not be logged.
const (
	linkHost   = "files.vendor.example.com"
	linkPath   = "tenant-7151/clip-4242.mp4"
	linkSecret = "c0ffee5ec2e7"
	linkQuery  = "Expires=1893456000&Signature=" + linkSecret
	signedLink = "http://" + linkHost + "/" + linkPath + "?" + linkQuery
)

// vendorServer answers one request, and closes the connection when it returns.
type vendorServer func(conn net.Conn)

// says answers with these bytes.
func says(text string) vendorServer {
	return func(conn net.Conn) { _, _ = io.WriteString(conn, text) }
}

func status(code int) vendorServer {
	return says(fmt.Sprintf("HTTP/1.1 %d %s\r\nContent-Length: 0\r\n\r\n", code, http.StatusText(code)))
}

func redirect(to string) vendorServer {
	return says("HTTP/1.1 302 Found\r\nLocation: " + to + "\r\nContent-Length: 0\r\n\r\n")
}

// silent keeps the connection open until the other side gives up.
func silent(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }

// addressBook resolves the vendor's host to a public address, and no other.
type addressBook struct{}

func (addressBook) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	if host != linkHost {
		return nil, &net.DNSError{Err: "no such host", Name: host + "/" + linkPath, IsNotFound: true}
	}
	return []netip.Addr{netip.MustParseAddr("93.184.215.14")}, nil
}

// resetConn fails after so many bytes, as a connection that is reset.
type resetConn struct {
	net.Conn
	left int
}

func (c *resetConn) Read(p []byte) (int, error) {
	if c.left == 0 {
		return 0, &net.OpError{Op: "read", Net: "tcp", Addr: linkAddr{}, Err: syscall.ECONNRESET}
	}
	n, err := c.Conn.Read(p[:min(len(p), c.left)])
	c.left -= n
	return n, err
}

// linkAddr is an address that gives the link away.
type linkAddr struct{}

func (linkAddr) Network() string { return "tcp" }
func (linkAddr) String() string  { return signedLink }

// logBuffer takes lines from several goroutines.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestFetchFailuresKeepLinksOutOfTheLog checks that no failure of a download logs the link or the
// target of a redirect.
func TestFetchFailuresKeepLinksOutOfTheLog(t *testing.T) {
	t.Parallel()
	certified := httptest.NewTLSServer(http.NotFoundHandler())
	certificate := certified.TLS.Certificates[0]
	certified.Close()
	half := "HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\nContent-Length: 4000\r\n\r\n" + strings.Repeat("x", 2000)

	type failure struct {
		link   string // empty: the signed one
		server vendorServer
		dial   error
		reset  int // bytes of the answer after which the connection is reset
		want   mediagate.Kind
	}
	cases := map[string]failure{
		"refused connection": {dial: &net.OpError{Op: "dial", Net: "tcp", Addr: linkAddr{}, Err: syscall.ECONNREFUSED}, want: mediagate.KindTransient},
		"no route":           {dial: &net.OpError{Op: "dial", Net: "tcp", Addr: linkAddr{}, Err: syscall.EHOSTUNREACH}, want: mediagate.KindTransient},
		"no such host":       {link: strings.Replace(signedLink, linkHost, "gone."+linkHost, 1), want: mediagate.KindTransient},
		"no TLS":             {link: strings.Replace(signedLink, "http:", "https:", 1), server: says("HTTP/1.1 400 Bad Request\r\n\r\n"), want: mediagate.KindTransient},
		"a certificate of nobody": {link: strings.Replace(signedLink, "http:", "https:", 1), server: func(conn net.Conn) {
			_ = tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{certificate}}).Handshake()
		}, want: mediagate.KindTransient},
		"no answer in time":                 {server: silent, want: mediagate.KindTransient},
		"reset before the answer":           {server: says(half), reset: 1, want: mediagate.KindTransient},
		"reset in the middle":               {server: says(half), reset: 1000, want: mediagate.KindTransient},
		"cut off":                           {server: says(half), want: mediagate.KindTransient},
		"stalled":                           {server: func(conn net.Conn) { _, _ = io.WriteString(conn, half); silent(conn) }, want: mediagate.KindTransient},
		"chunks that are none":              {server: says("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n" + linkPath), want: mediagate.KindTransient},
		"an answer that is no HTTP":         {server: says("+OK " + signedLink + "\r\n\r\n"), want: mediagate.KindTransient},
		"redirects without end":             {server: redirect(signedLink), want: mediagate.KindInvalid},
		"a redirect to a forbidden address": {server: redirect("http://10.0.0.1/" + linkPath + "?" + linkQuery), want: mediagate.KindInvalid},
		"a redirect to nobody":              {server: redirect("http://gone." + linkHost + "/" + linkPath + "?" + linkQuery), want: mediagate.KindTransient},
		"a redirect to no URL":              {server: redirect("http://[::1/" + linkPath + "?" + linkQuery), want: mediagate.KindTransient},
		"a redirect of another scheme":      {server: redirect("ftp://" + linkHost + "/" + linkPath + "?" + linkQuery), want: mediagate.KindInvalid},
		"a redirect without a target":       {server: status(http.StatusFound), want: mediagate.KindTransient},
		"no URL":                            {link: "http://" + linkHost + ":port/" + linkPath + "?" + linkQuery, want: mediagate.KindInvalid},
		"no URL at all":                     {link: "http://" + linkHost + "/%zz" + linkPath + "?" + linkQuery, want: mediagate.KindInvalid},
		"another scheme":                    {link: strings.Replace(signedLink, "http:", "ftp:", 1), want: mediagate.KindInvalid},
		"a forbidden address":               {link: strings.Replace(signedLink, linkHost, "10.0.0.1", 1), want: mediagate.KindInvalid},
	}
	for _, code := range []int{204, 206, 304, 400, 401, 402, 403, 404, 410, 416, 429, 500, 502, 503, 504} {
		kind := mediagate.KindTransient
		if slices.Contains([]int{401, 403, 404, 410}, code) {
			kind = mediagate.KindGone
		}
		cases[fmt.Sprintf("status %d", code)] = failure{server: status(code), want: kind}
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				link := c.link
				if link == "" {
					link = signedLink
				}
				rules := outbound.Rules{Resolver: addressBook{}, Dial: func(context.Context, string, string) (net.Conn, error) {
					if c.dial != nil {
						return nil, c.dial
					}
					near, far := net.Pipe()
					go func() {
						defer far.Close()
						if !strings.HasPrefix(link, "https:") {
							if _, err := http.ReadRequest(bufio.NewReader(far)); err != nil {
								return
							}
						}
						c.server(far)
					}()
					if c.reset > 0 {
						return &resetConn{Conn: near, left: c.reset}, nil
					}
					return near, nil
				}}
				logged := &logBuffer{}
				err := mirrorFrom(t, link, fetcher{rules: rules}, slog.New(slog.NewJSONHandler(logged, &slog.HandlerOptions{Level: slog.LevelDebug})))
				if err == nil {
					t.Fatal("the fetch succeeds")
				}
				if got := activities.FromTemporal(err).Kind; got != c.want {
					t.Errorf("the error is of kind %s, want %s: %v", got, c.want, err)
				}
				for place, text := range map[string]string{"log": logged.String(), "error": err.Error()} {
					for _, secret := range []string{linkSecret, "Signature", "Expires", linkPath, "clip-4242", linkHost, "10.0.0.1"} {
						if strings.Contains(text, secret) {
							t.Errorf("the %s shows %q:\n%s", place, secret, text)
						}
					}
				}
			})
		})
	}
}

// mirrorFrom copies the file behind the link, with all that logs logging there.
func mirrorFrom(t *testing.T, link string, f activities.Fetcher, logger *slog.Logger) error {
	t.Helper()
	w := activitytest.New(t, time.Now)
	w.Activities.Fetcher, w.Activities.Logger = f, logger
	w.Store.Add(w.NewVideo())
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(logger))
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivity(w.Activities)
	args := activities.StepArgs{TaskID: activitytest.TaskID, Step: task.Step{Kind: task.Submit, N: 1, Provider: activitytest.AsyncProvider}}
	if _, err := env.ExecuteActivity(w.Activities.SubmitJob, args); err != nil {
		t.Fatal(err)
	}
	ended := task.VendorEnded{N: 1, Outcome: mediagate.Outcome{Succeeded: true, Media: []mediagate.Media{{URL: link}}}}
	changed, err := w.Store.Change(t.Context(), activitytest.TaskID, ended)
	if err != nil || changed.Step.Kind != task.Mirror {
		t.Fatalf("the next step is %s: %v", changed.Step.Kind, err)
	}
	_, err = env.ExecuteActivity(w.Activities.MirrorResult, activities.StepArgs{TaskID: activitytest.TaskID, Step: changed.Step})
	return err
}

// TestFetchFromTheChannelsOwnHost checks that a result is downloaded from a private address only
// if base_url itself is private, from its port. A public name, or another port, needs a setting.
func TestFetchFromTheChannelsOwnHost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		base, link string
		allow      []netip.Prefix
		follows    bool
	}{
		"an address":                     {"http://10.1.2.3:8080", "http://10.1.2.3:8080/a.mp4", nil, true},
		"another port of it":             {"http://10.1.2.3:8080", "http://10.1.2.3:5432/a.mp4", nil, false},
		"the default port":               {"http://10.1.2.3", "http://10.1.2.3/a.mp4", nil, true},
		"a private name":                 {"http://kling.internal:8080", "http://kling.internal:8080/a.mp4", nil, true},
		"another port of a private name": {"http://kling.internal:8080", "http://kling.internal:9090/a.mp4", nil, false},
		"another private name":           {"http://kling.internal:8080", "http://db.internal:8080/a.mp4", nil, false},
		"a public name":                  {"http://api.vendor.com:8080", "http://api.vendor.com:8080/a.mp4", nil, false},
		"a public name, by setting":      {"http://api.vendor.com:8080", "http://api.vendor.com:8080/a.mp4", []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ways, err := Config{Channels: []Channel{{Name: "a", BaseURL: c.base}}}.ways()
			must(t, err)
			dialled := false
			rules := outbound.Rules{Allow: c.allow, Resolver: inner{}, Dial: func(context.Context, string, string) (net.Conn, error) {
				dialled = true
				return nil, errors.New("nobody is there")
			}}
			_, _, err = fetcher{rules, ways}.FetchResult(t.Context(), c.link, "a")
			if want := map[bool]mediagate.Kind{true: mediagate.KindTransient, false: mediagate.KindInvalid}[c.follows]; dialled != c.follows || !mediagate.Is(err, want) {
				t.Errorf("dialled %v, %v, want %v", dialled, err, c.follows)
			}
		})
	}
}

// TestProxyOfDownloads checks that results and redirected downloads use the proxy of their
// channel, or the common one. Media of clients use none.
func TestProxyOfDownloads(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	asked := map[string]int{}
	proxy := func(name string) string {
		server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			asked[name]++
		}))
		t.Cleanup(server.Close)
		return server.URL
	}
	ways, err := Config{
		Outbound: Outbound{Proxy: proxy("all")},
		Channels: []Channel{{Name: "plain"}, {Name: "own", Proxy: proxy("own")}, {Name: "direct", Proxy: "none"}},
	}.ways()
	must(t, err)
	f := fetcher{ways: ways, rules: outbound.Rules{Resolver: addressBook{}, Dial: func(context.Context, string, string) (net.Conn, error) {
		mu.Lock()
		defer mu.Unlock()
		asked["nobody"]++
		return nil, errors.New("not connected")
	}}}
	link := "http://" + linkHost + "/a.mp4"
	for channel, want := range map[string]string{"plain": "all", "own": "own", "direct": "nobody", "": "all"} {
		_, _, _ = f.FetchResult(t.Context(), link, channel)
		_, _, _ = f.follow(channel)(t.Context(), link, 3)
		if diff := cmp.Diff(map[string]int{want: 2}, asked); diff != "" {
			t.Errorf("%q asked (-want +got):\n%s", channel, diff)
		}
		clear(asked)
	}
	_, _, _ = f.FetchMedia(t.Context(), link)
	if diff := cmp.Diff(map[string]int{"nobody": 1}, asked); diff != "" {
		t.Errorf("a client's media asked (-want +got):\n%s", diff)
	}
}

// inner resolves all names to one private address.
type inner struct{}

func (inner) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr("10.1.2.3")}, nil
}

// TestFollow checks that a redirected download is opened without credentials and follows the
// remaining redirects, to addresses that the rules allow.
func TestFollow(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n, _ := strconv.Atoi(r.URL.Path[1:]); n > 0 {
			http.Redirect(w, r, fmt.Sprintf("/%d", n-1), http.StatusFound)
			return
		}
		_, _ = io.WriteString(w, "a video")
	}))
	t.Cleanup(server.Close)
	allowed := fetcher{rules: outbound.Rules{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}}
	for name, c := range map[string]struct {
		from      fetcher
		leads     int
		redirects int
		ok        bool
	}{
		"to the file": {allowed, 0, 0, true}, "once more": {allowed, 1, 1, true}, "five times": {allowed, 5, 5, true},
		"too often": {allowed, 1, 0, false}, "still too often": {allowed, 3, 2, false}, "to a private address": {fetcher{}, 0, 5, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file, _, err := c.from.follow("")(t.Context(), fmt.Sprintf("%s/%d", server.URL, c.leads), c.redirects)
			if !c.ok {
				if !mediagate.Is(err, mediagate.KindInvalid) {
					t.Errorf("%v, want a refusal", err)
				}
				return
			}
			must(t, err)
			defer file.Close()
			if got, err := io.ReadAll(file); err != nil || string(got) != "a video" {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}
