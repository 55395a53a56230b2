package app

import (
	"bytes"
	"net"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/channel"
	"github.com/mediagate/mediagate/internal/hint"
	"github.com/mediagate/mediagate/internal/outbound"
	"github.com/mediagate/mediagate/task"
)

// TestLinksOfUploads checks that links of uploads are below public_url, or below the API's
// address without one. They are recognized in any spelling of the host, and no other link is.
func TestLinksOfUploads(t *testing.T) {
	t.Parallel()
	f, ok := mediagate.NewFile(time.Unix(1772366400, 0), "image/png")
	if !ok {
		t.Fatal("no name")
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", ":0")
	must(t, err)
	defer listener.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	for public, want := range map[string]string{
		"https://API.example.com/": "https://api.example.com/files/" + f.Name(),
		"":                         "http://127.0.0.1:" + port + "/files/" + f.Name(),
	} {
		g := &Gateway{Config: Config{PublicURL: public}}
		must(t, g.openSite(listener))
		link := g.fileURL(f)
		if link != want {
			t.Errorf("below %q: %s, want %s", public, link, want)
		}
		if got, ok := g.fileOf(link + "?x=1"); !ok || got != f {
			t.Errorf("%s is not known again", link)
		}
		for _, other := range []string{
			link + "/..", link + "/../results", link[:len(link)-len(f.Name())] + "../" + f.Key(), "http://evil.example.com/files/" + f.Name(), link + "x",
		} {
			if _, ok := g.fileOf(other); ok {
				t.Errorf("%s is taken for an upload", other)
			}
		}
	}
	worker := &Gateway{}
	must(t, worker.openSite(nil))
	if _, ok := worker.fileOf("https://api.example.com/files/" + f.Name()); ok {
		t.Error("a process that knows no address of ours knows a link")
	}
}

// TestCallbackURL checks that vendors get a callback address below public_url, or none. A private
// one is only for vendors in our own network.
func TestCallbackURL(t *testing.T) {
	t.Parallel()
	keys, err := hint.NewKeys([][]byte{bytes.Repeat([]byte{1}, 32)})
	must(t, err)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	here := "http://" + listener.Addr().String() + "/"
	for name, test := range map[string]struct {
		public, vendor string
		local, keyless bool
		want           string // before the token; empty: no address
	}{
		"public":                       {public: "https://api.example.com/", want: "https://api.example.com/"},
		"public, vendor here":          {public: "https://api.example.com", vendor: "http://127.0.0.1:9900/kling", want: "https://api.example.com/"},
		"a public address":             {public: "http://203.0.114.5:8080", want: "http://203.0.114.5:8080/"},
		"none":                         {vendor: "http://127.0.0.1:9900/kling"},
		"none, vendor elsewhere":       {},
		"local, vendor elsewhere":      {public: "http://localhost:8080"},
		"private, vendor elsewhere":    {public: "http://10.1.2.3", vendor: "https://203.0.114.5"},
		"local, vendor here":           {public: "http://localhost:8080", vendor: "http://127.0.0.1:9900/kling", want: "http://localhost:8080/"},
		"a name of ours, vendor there": {public: "http://gateway:8080", vendor: "http://sandbox.internal", want: "http://gateway:8080/"},
		"standalone":                   {local: true, vendor: "http://127.0.0.1:9900/kling", want: here},
		"standalone, vendor elsewhere": {local: true},
		"standalone, but public":       {local: true, public: "https://api.example.com", want: "https://api.example.com/"},
		"without keys":                 {public: "https://api.example.com", keyless: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := &Gateway{
				Config: Config{PublicURL: test.public}, opts: Options{LocalCallbacks: test.local}, hints: keys,
				channels: channel.NewConfigured([]channel.Channel{{Channel: mediagate.Channel{Name: "a", BaseURL: test.vendor}}}),
			}
			if test.keyless {
				g.hints = hint.Keys{}
			}
			must(t, g.openSite(listener))
			want := test.want
			if want != "" {
				want += "callbacks/" + keys.Token("task_1", 2)
			}
			if got := g.callbackURL(task.Attempt{TaskID: "task_1", Sending: task.Sending{N: 2, Channel: "a"}}); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

// TestPublicURL checks that clients see public_url without its private parts, and no address if
// it is not set: others may not reach our listener.
func TestPublicURL(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	for public, want := range map[string]string{
		"":                             "",
		"https://API.example.com":      "https://api.example.com",
		"https://api.example.com/":     "https://api.example.com",
		"https://api.example.com:8443": "https://api.example.com:8443",
	} {
		g := &Gateway{Config: Config{PublicURL: public}}
		must(t, g.openSite(listener))
		if got := g.publicURL(); got != want {
			t.Errorf("of %q: %q, want %q", public, got, want)
		}
	}
}

// TestTaskAddresses checks that a task's file is named exactly by its path or by its address
// below public_url.
func TestTaskAddresses(t *testing.T) {
	t.Parallel()
	site, err := outbound.ParseSite("https://API.example.com:443")
	must(t, err)
	g := &Gateway{site: site}
	const id = "task_01JZZZZZZZZZZZZZZZZZZZZZZZ"
	const file = "/v1/tasks/" + id + "/files/3"
	for _, address := range []string{file, "https://api.example.com" + file, "HTTPS://api.example.com:443" + file} {
		if got, n, ok := g.taskFileOf(address); got != id || n != 3 || !ok || g.checkMediaURL(address) != nil {
			t.Errorf("%s is file %d of %q, %v", address, n, got, g.checkMediaURL(address))
		}
	}
	for _, address := range []string{
		"/v1/tasks/" + id + "/files/0", "/v1/tasks/" + id + "/files/03", "/v1/tasks/" + id + "/files/-1", "/v1/tasks/" + id + "/files/",
		"/v1/tasks/" + id, "/v1/tasks/../tasks/" + id + "/files/3", file + "/..", file + "?stream=true", file + "#x", file + "?",
		"https://api.example.com" + file + "?x=1", "https://api.example.com" + file + "#x", "https://me@api.example.com" + file,
		"https://api.example.com" + file + "?" + file, "https://api.example.com" + file + "#" + file,
		"https://api.example.com/v1/tasks/" + id + "/files/%33", "/v1/tasks//files/3", "/v1/videos", "/",
	} {
		if _, _, ok := g.taskFileOf(address); ok || g.checkMediaURL(address) == nil {
			t.Errorf("%s is taken", address)
		}
	}
	for _, address := range []string{"https://other.example.com" + file, "http://api.example.com" + file, "https://api.example.com:8443" + file} {
		if _, _, ok := g.taskFileOf(address); ok || g.checkMediaURL(address) != nil {
			t.Errorf("%s is no ordinary address: %v", address, g.checkMediaURL(address))
		}
	}
}
