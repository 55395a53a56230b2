package app

import (
	"net"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
)

// Links of uploads lie below public_url, else where the API listens; they are
// known again in any spelling of the host, and nothing else is taken for one.
func TestLinksOfUploads(t *testing.T) {
	t.Parallel()
	f, ok := mediagate.NewFile(time.Unix(1772366400, 0), "image/png")
	if !ok {
		t.Fatal("no name")
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	for public, want := range map[string]string{
		"https://API.example.com/gw/": "https://api.example.com/gw/files/" + f.Name(),
		"":                            "http://127.0.0.1:" + port + "/files/" + f.Name(),
	} {
		g := &Gateway{Config: Config{PublicURL: public}}
		if err := g.openSite(listener); err != nil {
			t.Fatal(err)
		}
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
	if err := worker.openSite(nil); err != nil {
		t.Fatal(err)
	}
	if _, ok := worker.fileOf("https://api.example.com/files/" + f.Name()); ok {
		t.Error("a process that knows no address of ours knows a link")
	}
}

// The address that clients are told is the setting, without what is nobody's
// business, and none where it is not set: others may not reach where we listen.
func TestPublicURL(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	for public, want := range map[string]string{
		"":                             "",
		"https://API.example.com":      "https://api.example.com",
		"https://api.example.com/gw/":  "https://api.example.com/gw",
		"https://api.example.com:8443": "https://api.example.com:8443",
	} {
		g := &Gateway{Config: Config{PublicURL: public}}
		if err := g.openSite(listener); err != nil {
			t.Fatal(err)
		}
		if got := g.publicURL(); got != want {
			t.Errorf("of %q: %q, want %q", public, got, want)
		}
	}
}
