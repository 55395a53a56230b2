package api

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/gzhttp"

	"github.com/mediagate/mediagate"
)

// gzipAbove is the size above which answers are compressed.
const gzipAbove = 1 << 10

// packed compresses an answer with gzip if the client's Accept-Encoding asks for it.
var packed = func() func(http.Handler) http.HandlerFunc {
	wrap, err := gzhttp.NewWrapper(gzhttp.MinSize(gzipAbove+1), gzhttp.EnableZstd(false))
	if err != nil {
		panic(err) // impossible: all options are constants
	}
	return wrap
}()

// catalogVary lists the headers that the catalog's answers depend on.
const catalogVary = "Authorization, X-Api-Key, X-Goog-Api-Key, Anthropic-Version"

// cacheable answers with a large body that seldom changes. An ETag saves the client a body that
// it already has. The answer depends on the key, so only the client's own cache may keep it.
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
			header.Set("Content-Encoding", "gzip") // as for GET; else net/http would announce the uncompressed length
		}
		c.serve(w, r, text)
	})).ServeHTTP(c.Response(), c.Request())
	return nil
}

// etagOf returns the ETag of a text. It is weak, so that it holds for the compressed text too.
func etagOf(text []byte) string {
	sum := sha256.Sum256(text)
	return `W/"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
}

// serve sends the text, or 304 if the client has it.
func (c *call) serve(w http.ResponseWriter, r *http.Request, text []byte) {
	request := r.Clone(r.Context())
	for _, name := range []string{"Range", "If-Range", "If-Match", "If-Unmodified-Since"} {
		request.Header.Del(name) // answers are not served in parts
	}
	c.Response().Before(func() { c.Response().Header().Del("Accept-Ranges") })
	http.ServeContent(w, request, "", time.Time{}, bytes.NewReader(text))
}

// encodeTo appends the body as JSON and a newline. It does not escape the ampersands of links.
func encodeTo(buf *bytes.Buffer, body any) error {
	encoder := json.NewEncoder(buf)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(body); err != nil {
		return &mediagate.Error{Kind: mediagate.KindInternal, Message: "writing the answer", Err: err}
	}
	return nil
}

// encode returns the body as JSON, in the form of all answers.
func encode(body any) (json.RawMessage, error) {
	var buf bytes.Buffer
	err := encodeTo(&buf, body)
	return bytes.TrimRight(buf.Bytes(), "\n"), err
}

// published is a text that many clients read, ready in each form in which it is sent.
type published struct {
	plain, zipped []byte // zipped is nil if compression saves nothing
	etag          string
	format        string // its Content-Type
	caching       string // its Cache-Control
}

func publish(text []byte) *published {
	p := &published{plain: text, etag: etagOf(text), format: "application/json", caching: "public, max-age=60"}
	if len(text) > gzipAbove {
		var buf bytes.Buffer
		w := gzip.NewWriter(&buf)
		_, _ = w.Write(text) // into memory, which does not fail
		_ = w.Close()
		if buf.Len() < len(text) {
			p.zipped = bytes.Clone(buf.Bytes())
		}
	}
	return p
}

// publish sends the text, compressed if the client accepts that, or 304 if the client has it.
func (c *call) publish(p *published) {
	header := c.Response().Header()
	header.Set("Content-Type", p.format)
	header.Set("Cache-Control", p.caching)
	header.Set("Etag", p.etag)
	header.Add("Vary", "Accept-Encoding")
	text := p.plain
	if p.zipped != nil && takesGzip(c.Request().Header.Values("Accept-Encoding")) {
		header.Set("Content-Encoding", "gzip")
		text = p.zipped
	}
	c.serve(c.Response(), c.Request(), text)
}

// takesGzip reports whether Accept-Encoding names gzip with a weight above 0.
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

// cors sets the headers that let scripts in a browser read the answer. It reports whether the
// request is a preflight that it admitted. A preflight may ask for any headers, since only the key
// decides what a call may do.
func (s *Server) cors(c *call) bool {
	header, request := c.Response().Header(), c.Request()
	origin := request.Header.Get("Origin")
	methods := http.MethodGet
	if openToAll(request.URL.Path) {
		header.Set("Access-Control-Allow-Origin", "*")
	} else {
		if len(s.cfg.CORSOrigins) == 0 {
			return false
		}
		header.Add("Vary", "Origin")
		if origin == "" || (!slices.Contains(s.cfg.CORSOrigins, origin) && !slices.Contains(s.cfg.CORSOrigins, "*")) {
			return false
		}
		header.Set("Access-Control-Allow-Origin", origin)
		methods = "GET, POST, PATCH, DELETE"
	}
	header.Set("Access-Control-Expose-Headers", exposedHeaders)
	if request.Method != http.MethodOptions || origin == "" || request.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	header.Set("Access-Control-Allow-Methods", methods)
	header.Add("Vary", "Access-Control-Request-Headers")
	if asked := strings.Join(request.Header.Values("Access-Control-Request-Headers"), ", "); asked != "" {
		header.Set("Access-Control-Allow-Headers", asked)
	}
	header.Set("Access-Control-Max-Age", preflightAge)
	return true
}

// openToAll reports whether scripts of any origin may read the path, errors included. These paths
// are the balance of a token, and uploaded files, whose links are secret.
func openToAll(path string) bool {
	return path == "/v1/balance" || path == "/balance" || strings.HasPrefix(path, "/"+mediagate.FileFolder)
}

const (
	exposedHeaders = "Content-Disposition, Content-Range, ETag, Idempotency-Replayed, Link, Location, " +
		"Preference-Applied, RateLimit, RateLimit-Policy, Retry-After, X-Request-Id, X-Should-Retry"
	preflightAge = "600"
)
