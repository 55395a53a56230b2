package app

import (
	"net"
	"net/netip"
	"runtime/debug"
	"strings"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api"
	"github.com/mediagate/mediagate/internal/outbound"
	"github.com/mediagate/mediagate/storage/blob"
	"github.com/mediagate/mediagate/task"
)

// openSite sets where uploads are served: below public_url or, without one, at the address where
// this process listens, which other machines may be unable to reach.
func (g *Gateway) openSite(listener net.Listener) error {
	base := g.Config.PublicURL
	switch {
	case base != "":
	case listener != nil:
		base = "http://" + reachable(listener.Addr().String())
	default:
		return nil
	}
	site, err := outbound.ParseSite(base)
	if err != nil {
		return mediagate.Errorf(mediagate.KindInvalid, "public_url: %w", err)
	}
	g.site = site
	return nil
}

// publicURL returns the setting in the spelling of browsers.
func (g *Gateway) publicURL() string {
	if g.Config.PublicURL == "" {
		return ""
	}
	return g.site.Origin()
}

// reachable replaces an unspecified address with the loopback.
func reachable(address string) string {
	host, port, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return address
}

// fileURL returns the link of an upload.
func (g *Gateway) fileURL(f mediagate.File) string { return g.site.URL(f.Key()) }

// fileOf returns the upload behind one of our links, even an expired one.
func (g *Gateway) fileOf(url string) (f mediagate.File, ok bool) {
	name, below := g.fileName(url)
	if !below {
		return mediagate.File{}, false
	}
	return mediagate.ParseFile(name)
}

func (g *Gateway) fileName(url string) (name string, ok bool) {
	path, ok := g.site.Path(url)
	if !ok {
		return "", false
	}
	return strings.CutPrefix(path, mediagate.FileFolder)
}

// taskPath returns the path of an address that is a path or lies below our public address. ours is
// false if the address is not below the path of tasks.
func (g *Gateway) taskPath(raw string) (path string, ours bool) {
	path, ours = strings.CutPrefix(raw, "/")
	if !ours {
		path, ours = g.site.Path(raw)
	}
	return "/" + path, ours && strings.HasPrefix(path, "v1/tasks/")
}

// taskFileOf returns the task's file behind one of our addresses.
func (g *Gateway) taskFileOf(url string) (taskID string, n int, ok bool) {
	path, ours := g.taskPath(url)
	if !ours || strings.ContainsAny(url, "?#") { // with a query or a fragment
		return "", 0, false
	}
	return mediagate.ParseTaskFile(path)
}

// checkMediaURL checks a media address in a request. Our own links are allowed even where other
// addresses are not. Any other address below the paths of uploads and tasks is refused.
func (g *Gateway) checkMediaURL(raw string) error {
	if _, ours := g.taskPath(raw); ours {
		if _, _, ok := g.taskFileOf(raw); !ok {
			return mediagate.Errorf(mediagate.KindInvalid,
				"a file of a task is /v1/tasks/{id}/files/{n} with n from 1, without a query or a fragment")
		}
		return nil
	}
	name, ours := g.fileName(raw)
	if !ours {
		return g.rules.CheckMediaURL(raw)
	}
	f, ok := mediagate.ParseFile(name)
	switch {
	case !ok:
		return mediagate.Errorf(mediagate.KindInvalid, "there is no such upload")
	case f.Expired(g.Store.Now()):
		return mediagate.Errorf(mediagate.KindInvalid, "the upload has expired")
	}
	return nil
}

// callbackURL returns the address at which an attempt's vendor may report changes of the job. It is
// empty without public_url and encryption_keys. An address that only our own network can reach is
// given only to vendors in that network, since other vendors might refuse a job with it.
func (g *Gateway) callbackURL(a task.Attempt) string {
	vendor, _ := g.channels.Channel(a.Channel)
	public := g.Config.PublicURL
	if public == "" && g.opts.LocalCallbacks {
		public = g.site.URL("")
	}
	token := g.hints.Token(a.TaskID, a.N)
	if public == "" || token == "" || isLocal(public) && !isLocal(vendor.BaseURL) {
		return ""
	}
	return g.site.URL(api.CallbackFolder + token)
}

// isLocal reports whether a URL can only lead into our own network.
func isLocal(raw string) bool {
	host, err := outbound.PrivateHost(raw)
	if err != nil || host == "" {
		return false
	}
	address, err := netip.ParseAddrPort(host)
	if err != nil {
		return true // a name that is not in the public DNS
	}
	ip := address.Addr().Unmap()
	return ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast() || ip.IsUnspecified()
}

// clientMemory returns the share of the memory for uploads in progress.
func clientMemory() int64 {
	return max(blob.MinMemory, min(debug.SetMemoryLimit(-1)/4, blob.DefaultClientMemory))
}
