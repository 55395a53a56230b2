package kernel

import (
	"net"
	"net/http"
	"regexp"
	"strconv"
)

// The values of the directive media. The job succeeds with each of them.
const (
	MediaNone      = "none"      // the answer names no link
	MediaEmpty     = "empty"     // the file has no bytes
	MediaPage      = "page"      // the file is a page of HTML
	MediaElsewhere = "elsewhere" // the download is redirected to another host
)

// links matches the links to jobs' files in an answer. Its groups are the job's id and the name
// of the file.
var links = regexp.MustCompile(`"https?://[^"]*/(?:media/([^/"?]+)/([^"?]+)|v1beta/files/([0-9a-f-]{36})(-[0-9]+:download))[^"]*"`)

// number matches the number of a file in its name or path. Numbers start at 0.
var number = regexp.MustCompile(`-([0-9]+)[.:][a-z0-9]+$`)

// AppliesTo reports whether the directive applies to the file with this name or path.
func (d Directive) AppliesTo(name string) bool {
	if d.Piece == 0 {
		return true
	}
	at := 0
	if m := number.FindStringSubmatch(name); m != nil {
		at, _ = strconv.Atoi(m[1])
	}
	return at == d.Piece-1
}

// removeLinks replaces the links in an answer by null if their jobs' directives say media=none.
func (s *Server) removeLinks(answer []byte) []byte {
	return links.ReplaceAllFunc(answer, func(link []byte) []byte {
		m := links.FindSubmatch(link)
		id, name := string(m[1]), string(m[2])
		if id == "" {
			id, name = string(m[3]), string(m[4])
		}
		j := s.store.find(id)
		if j == nil || j.Directive.Media != MediaNone || j.State(s.now()) != StateSucceeded || !j.Directive.AppliesTo(name) {
			return link
		}
		return []byte("null")
	})
}

// serveOtherMedia answers a download if the directive media asks for another file. Otherwise it
// returns false and answers nothing.
func serveOtherMedia(w http.ResponseWriter, r *http.Request, j *Job, name, path string) bool {
	if !j.Directive.AppliesTo(path) {
		return false
	}
	switch j.Directive.Media {
	case MediaEmpty:
		w.WriteHeader(http.StatusOK)
	case MediaPage:
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte("<!doctype html><title>Sign in</title>")) // fails only if the caller has left
	case MediaElsewhere:
		host, port, err := net.SplitHostPort(r.Host)
		if err != nil || r.FormValue("moved") != "" {
			return false
		}
		other := "localhost"
		if host == other {
			other = "127.0.0.1"
		}
		http.Redirect(w, r, "http://"+net.JoinHostPort(other, port)+j.Link(name)+"?moved=1", http.StatusFound) //nolint:gosec // the sandbox's own loopback address by its other name
	default:
		return false
	}
	return true
}
