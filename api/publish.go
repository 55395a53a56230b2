package api

import (
	"bytes"
	"compress/gzip"
	"strconv"
	"strings"
)

// published is a text that is the same for many, in the forms in which it is
// sent.
type published struct {
	plain, zipped []byte
	etag          string
}

func publish(text []byte) *published {
	p := &published{plain: text, etag: etagOf(text)}
	if len(text) > gzipAbove {
		var buf bytes.Buffer
		w := gzip.NewWriter(&buf)
		_, _ = w.Write(text) // into memory, which does not fail
		_ = w.Close()
		p.zipped = bytes.Clone(buf.Bytes())
	}
	return p
}

// publish sends the text, compressed where the client takes that, or says that
// the client has it.
func (c *call) publish(p *published) {
	header := c.Response().Header()
	header.Set("Content-Type", "application/json")
	header.Set("Cache-Control", "public, max-age=60")
	header.Set("Etag", p.etag)
	header.Add("Vary", "Accept-Encoding")
	text := p.plain
	if p.zipped != nil && takesGzip(c.Request().Header.Values("Accept-Encoding")) {
		header.Set("Content-Encoding", "gzip")
		text = p.zipped
	}
	c.serve(c.Response(), c.Request(), text)
}

// takesGzip reads Accept-Encoding: gzip by its name, unless its weight is 0.
func takesGzip(values []string) bool {
	for coding := range strings.SplitSeq(strings.Join(values, ","), ",") {
		name, weight, _ := strings.Cut(coding, ";")
		if !strings.EqualFold(strings.TrimSpace(name), "gzip") {
			continue
		}
		number, isWeight := strings.CutPrefix(strings.ToLower(strings.ReplaceAll(weight, " ", "")), "q=")
		q, err := strconv.ParseFloat(number, 64)
		return !isWeight || err == nil && q > 0
	}
	return false
}
