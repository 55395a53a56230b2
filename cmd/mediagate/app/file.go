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

// openSite says where uploads are served: below public_url. Without one that is
// where this process listens, which others may not reach.
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

// publicURL is the setting as browsers spell it.
func (g *Gateway) publicURL() string {
	if g.Config.PublicURL == "" {
		return ""
	}
	return g.site.Origin()
}

// reachable replaces every address by the loopback.
func reachable(address string) string {
	host, port, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return address
}

// fileURL is the link of an upload.
func (g *Gateway) fileURL(f mediagate.File) string { return g.site.URL(f.Key()) }

// fileOf is the upload behind a link of ours, whether it works or not.
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

// taskPath is where an address leads that is a path, or below our public address; ours is
// false for any that is not of a task.
func (g *Gateway) taskPath(raw string) (path string, ours bool) {
	path, ours = strings.CutPrefix(raw, "/")
	if !ours {
		path, ours = g.site.Path(raw)
	}
	return "/" + path, ours && strings.HasPrefix(path, "v1/tasks/")
}

// taskFileOf is the file of a task behind an address of ours.
func (g *Gateway) taskFileOf(url string) (taskID string, n int, ok bool) {
	path, ours := g.taskPath(url)
	if !ours || strings.ContainsAny(url, "?#") { // with a query or a fragment
		return "", 0, false
	}
	return mediagate.ParseTaskFile(path)
}

// checkMediaURL judges an address that a request names. A link of ours may be
// where no other may lead; whatever else is where uploads and tasks are is refused.
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

// callbackURL is where the vendor of an attempt may tell that its job has changed, or
// empty: without public_url and encryption_keys there is none. An address that only our
// own network can reach is for vendors in it: others might refuse the job for it.
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

// isLocal says of a URL that it leads nowhere but into our own network.
func isLocal(raw string) bool {
	host, err := outbound.PrivateHost(raw)
	if err != nil || host == "" {
		return false
	}
	address, err := netip.ParseAddrPort(host)
	if err != nil {
		return true // a name that is none of the public DNS
	}
	ip := address.Addr().Unmap()
	return ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast() || ip.IsUnspecified()
}

// clientMemory is the share of the memory that uploads on their way may have.
func clientMemory() int64 {
	return max(blob.MinMemory, min(debug.SetMemoryLimit(-1)/4, blob.DefaultClientMemory))
}
