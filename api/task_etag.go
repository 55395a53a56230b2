package api

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/mediagate/mediagate"
)

// longestReuse bounds how long a client may keep using the links of an answer.
const longestReuse = 24 * time.Hour

// answerRead answers a read of a task with what render makes of the task's links, or with 304 if
// the client has that answer already. Only the client's own cache may keep the answer, and has to
// revalidate it each time ("no-cache"). With "no-store" the client could not keep the answer, and so
// could not use a 304.
func (s *Server) answerRead(
	c *call, t *mediagate.Task, query string, render func(links []mediagate.Link) any,
) error {
	links, err := s.links(c.ctx, t)
	if err != nil {
		return err
	}
	etag := s.taskETag(t, links, query)
	header := c.Response().Header()
	header.Set("Cache-Control", "private, no-cache")
	header.Set("Etag", etag)
	header.Set("X-Content-Type-Options", "nosniff")
	if c.has(etag) {
		return c.NoContent(http.StatusNotModified)
	}
	return c.json(http.StatusOK, render(links))
}

// taskETag returns the ETag of the answer to a read of a task. It is weak, since the links of two
// equal answers may end at different times. It depends on all that the answer shows: the task's
// version (D19), the query, the age of the links, the status of the task's sources, and the
// program and its settings. It also includes the status and the end, since a restored database
// assigns versions a second time.
func (s *Server) taskETag(t *mediagate.Task, links []mediagate.Link, query string) string {
	text := fmt.Appendf(nil, "%s %d %s %d %s %d",
		s.cfg.Version, s.cfg.CreditsPerUnit, query, t.Version, t.Status, t.EndedAt.UnixMicro())
	for _, source := range t.Sources {
		text = fmt.Appendf(text, " %s", source.Status)
	}
	for _, link := range links {
		text = fmt.Appendf(text, " %s", s.linkAge(link))
	}
	return etagOf(text)
}

// linkAge returns a part of the ETag that changes when a client has to get a newer link to a file.
//
//   - For a link that lives for all of link_ttl, the part stays the same for half of that, and for
//     a day at most. With a link_ttl of an hour, a client that got its link at 10:01 is told until
//     10:30 that nothing has changed. The link then still works for 31 minutes.
//   - A link that ends sooner ends with its file or with our credentials. For such a link, the
//     part stays the same as long as a new link would end in the same minute.
//   - For a file without a link, the part never changes.
func (s *Server) linkAge(link mediagate.Link) string {
	now := s.now()
	switch {
	case link.URL == "":
		return "none"
	// The 2 s make up for the fractions of a second that both times may lack.
	case link.ExpiresAt.Before(now.Add(s.cfg.LinkTTL - 2*time.Second)):
		return "until " + link.ExpiresAt.UTC().Format("2006-01-02T15:04")
	default:
		reuse := min(s.cfg.LinkTTL/2, longestReuse)
		return "since " + now.UTC().Truncate(reuse).Format(time.RFC3339Nano)
	}
}

// has reports whether the client has the answer with this ETag.
func (c *call) has(etag string) bool {
	strong := strings.TrimPrefix(etag, "W/")
	for _, line := range c.Request().Header.Values("If-None-Match") {
		for tag := range strings.SplitSeq(line, ",") {
			if tag = strings.TrimSpace(tag); tag == "*" || strings.TrimPrefix(tag, "W/") == strong {
				return true
			}
		}
	}
	return false
}
