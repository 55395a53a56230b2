package api

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"time"

	"github.com/klauspost/compress/gzhttp"

	"github.com/mediagate/mediagate"
)

// gzipAbove is the size up to which answers are not worth packing.
const gzipAbove = 1 << 10

// packed gives an answer gzip's coding where the client asks for it, by the
// weights of its Accept-Encoding.
var packed = func() func(http.Handler) http.HandlerFunc {
	wrap, err := gzhttp.NewWrapper(gzhttp.MinSize(gzipAbove+1), gzhttp.EnableZstd(false))
	if err != nil {
		panic(err) // of constants
	}
	return wrap
}()

// catalogVary are the headers that decide what a catalog's answer holds.
const catalogVary = "Authorization, X-Api-Key, X-Goog-Api-Key, Anthropic-Version"

// cacheable answers with what changes seldom and is large: with an ETag, which
// spares whoever has it the body, and packed where the client can unpack. It is
// the caller's alone, since it depends on the key.
func (c *call) cacheable(body any) error {
	text, err := encode(body)
	if err != nil {
		return err
	}
	text = append(text, '\n')
	header := c.Response().Header()
	header.Set("Content-Type", "application/json")
	header.Set("Cache-Control", "private, max-age=60")
	header.Set("Etag", etagOf(text))
	header.Add("Vary", catalogVary)
	packed(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead && len(text) > gzipAbove && takesGzip(r.Header.Values("Accept-Encoding")) {
			header.Set("Content-Encoding", "gzip") // as GET has it; without it the length would be the plain one's
		}
		c.serve(w, r, text)
	})).ServeHTTP(c.Response(), c.Request())
	return nil
}

// etagOf names a text. It is weak: the same whether packed or not.
func etagOf(text []byte) string {
	sum := sha256.Sum256(text)
	return `W/"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
}

// serve sends the text, or says that the client has it.
func (c *call) serve(w http.ResponseWriter, r *http.Request, text []byte) {
	request := r.Clone(r.Context())
	for _, name := range []string{"Range", "If-Range", "If-Match", "If-Unmodified-Since"} {
		request.Header.Del(name) // an answer is whole
	}
	c.Response().Before(func() { c.Response().Header().Del("Accept-Ranges") })
	http.ServeContent(w, request, "", time.Time{}, bytes.NewReader(text))
}

// encode writes JSON as all answers are written.
func encode(body any) (json.RawMessage, error) {
	var buf bytes.Buffer
	encoder := json.NewEncoder(&buf)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(body); err != nil {
		return nil, &mediagate.Error{Kind: mediagate.KindInternal, Message: "writing the answer", Err: err}
	}
	return bytes.TrimRight(buf.Bytes(), "\n"), nil
}
