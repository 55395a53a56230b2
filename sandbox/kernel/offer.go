package kernel

import (
	"net"
	"net/http"
	"regexp"
	"strconv"
)

// What a directive can make of a job's media, though the job succeeds.
const (
	MediaNone      = "none"      // the answer names no link
	MediaEmpty     = "empty"     // the file has no bytes
	MediaPage      = "page"      // the file is a page of HTML
	MediaElsewhere = "elsewhere" // the download is redirected to another host
)

// links are those to jobs' files in an answer: the job, and what names the file.
var links = regexp.MustCompile(`"https?://[^"]*/(?:media/([^/"?]+)/([^"?]+)|v1beta/files/([0-9a-f-]{36})(-[0-9]+:download))[^"]*"`)

// number is that of a file of several, from 0, in its name or its path.
var number = regexp.MustCompile(`-([0-9]+)[.:][a-z0-9]+$`)

// Concerns reports that the directive is about the file of that name or path.
func (d Directive) Concerns(name string) bool {
	if d.Piece == 0 {
		return true
	}
	at := 0
	if m := number.FindStringSubmatch(name); m != nil {
		at, _ = strconv.Atoi(m[1])
	}
	return at == d.Piece-1
}

// named takes those links out of an answer that directives want unnamed.
func (s *Server) named(answer []byte) []byte {
	return links.ReplaceAllFunc(answer, func(link []byte) []byte {
		m := links.FindSubmatch(link)
		id, name := string(m[1]), string(m[2])
		if id == "" {
			id, name = string(m[3]), string(m[4])
		}
		j := s.store.find(id)
		if j == nil || j.Directive.Media != MediaNone || j.State(s.now()) != StateSucceeded || !j.Directive.Concerns(name) {
			return link
		}
		return []byte("null")
	})
}

// misplaced answers a download as the job's directive wants its media; it reports
// false where the directive leaves the file as it is.
func misplaced(w http.ResponseWriter, r *http.Request, j *Job, name, path string) bool {
	if !j.Directive.Concerns(path) {
		return false
	}
	switch j.Directive.Media {
	case MediaEmpty:
		w.WriteHeader(http.StatusOK)
	case MediaPage:
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte("<!doctype html><title>Sign in</title>")) // a caller that has gone needs no answer
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
