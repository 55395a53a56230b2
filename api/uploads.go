package api

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"
	"unicode"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/media/imagefile"
	"github.com/mediagate/mediagate/media/mediainfo"
)

// The bounds of an upload.
const (
	uploadLimit   = 20 << 20            // for a picture or a sound, in bytes
	videoLimit    = 100 << 20           // the largest bound of any model
	formLimit     = uploadLimit + 1<<20 // for the whole body
	videoForm     = videoLimit + 1<<20
	formHead      = 64 << 10 // for the bytes before a part's content
	formParts     = 100
	maxUploadName = 255 // in characters
)

const (
	uploadField   = "file"
	unnamedUpload = "upload"
)

// uploadKind says what an upload route accepts.
type uploadKind struct {
	class mediainfo.Class
	limit int64 // for the file, in bytes
}

const (
	uploadImages = "/v1/uploads/images"
	uploadVideos = "/v1/uploads/videos"
	uploadAudios = "/v1/uploads/audios"
)

var uploadKinds = map[string]uploadKind{
	uploadImages: {mediainfo.ClassImage, uploadLimit},
	uploadVideos: {mediainfo.ClassVideo, videoLimit},
	uploadAudios: {mediainfo.ClassAudio, uploadLimit},
}

// detect returns the media type of a file that begins with head, and the function that copies it.
// Pictures are stripped of all but their pixels. Sounds and films are copied as they are, and
// PutFile checks them.
func (k uploadKind) detect(head []byte) (mimeType string, pass func(to io.Writer, from io.Reader) error, err error) {
	if k.class == mediainfo.ClassImage {
		format, ok := imagefile.Detect(head)
		pass = func(to io.Writer, from io.Reader) error {
			_, err := imagefile.Clean(to, from)
			return err
		}
		if !ok {
			err = pass(io.Discard, bytes.NewReader(head)) // Clean says why
		}
		return string(format), pass, err
	}
	format, _, ok := mediainfo.Detect(head)
	if !ok || format.Class != k.class {
		return "", nil, badFile("must be one of %s, by its content", strings.Join(mediainfo.Words(k.class), ", "))
	}
	return format.MIME, func(to io.Writer, from io.Reader) error {
		_, err := io.Copy(to, from)
		return err
	}, nil
}

// uploadResult is the answer to an upload.
type uploadResult struct {
	URL         string `json:"url"`
	Filename    string `json:"filename"`
	ContentType string `json:"content_type"`
	Bytes       int64  `json:"bytes"`
	CreatedAt   int64  `json:"created_at"`
}

// handleUpload stores a file while it arrives. It keeps nothing unless the whole form is valid.
func (s *Server) handleUpload(c *call) (err error) {
	var result uploadResult
	c.withoutTimeout(func() { result, err = s.takeUpload(c) })
	if err != nil {
		return err
	}
	return c.linked(http.StatusOK, result)
}

func (s *Server) takeUpload(c *call) (uploadResult, error) {
	r := c.Request()
	kind, parameters, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	boundary := parameters["boundary"]
	if err != nil || kind != "multipart/form-data" || boundary == "" {
		return uploadResult{}, badFile("is missing: the Content-Type must be multipart/form-data with a boundary")
	}
	upload := uploadKinds[c.route.path]
	if r.ContentLength > c.route.bound {
		return uploadResult{}, upload.tooLarge()
	}
	if err := s.mayUpload(c); err != nil {
		return uploadResult{}, err
	}
	from := &uploadBody{arrival: s.arrival(c, s.cfg.Limits.Uploads, s.cfg.UploadWait, "uploads in progress")}
	if err := from.grow(uploadMemory(0)); err != nil {
		return uploadResult{}, err
	}
	c.begun = true
	body := &formBody{from: from, left: c.route.bound}
	f := &form{body: body, parts: multipart.NewReader(body, boundary)}
	result, err := s.readForm(c, f)
	if broken := body.broken; broken != nil {
		if errors.Is(broken, errFormTooLarge) {
			return uploadResult{}, upload.tooLarge()
		}
		if noRoom, ok := errors.AsType[*mediagate.Error](broken); ok {
			return uploadResult{}, noRoom
		}
		c.giveUpBody()
		err := brokenBody(broken)
		if e, ok := errors.AsType[*mediagate.Error](err); ok {
			e.Param = uploadField
		}
		return uploadResult{}, err
	}
	if err == nil {
		c.read = true
	}
	return result, err
}

// uploadBody is the body of an upload on its way to the bucket.
type uploadBody struct {
	*arrival
	came int64
}

func (u *uploadBody) Read(b []byte) (int, error) {
	n, err := u.arrival.Read(b)
	u.came += int64(n)
	if noRoom := u.grow(uploadMemory(u.came)); noRoom != nil {
		return 0, noRoom
	}
	return n, err
}

// uploadMemory returns the most memory that the bucket's client holds for an upload. came is how
// many bytes have arrived. The client holds up to twice as much plus 64 KiB, but at most three
// parts of 5 MiB.
func uploadMemory(came int64) int64 { return min(2*came+64<<10, 15<<20) }

// maxBytes bounds the upload's size by the announced length of its body.
func (k uploadKind) maxBytes(length int64) int64 {
	if length < 0 || length > k.limit {
		return k.limit
	}
	return length
}

// badFile is an error of the file. The format continues a sentence that begins with "file".
func badFile(format string, args ...any) error {
	return mediagate.Invalid(uploadField, uploadField+" "+format, args...)
}

// malformedForm says what is wrong with a body that cannot be parsed as a form.
const malformedForm = "cannot be read: the body is not multipart/form-data with the boundary of its Content-Type, " +
	"or it is incomplete"

func (k uploadKind) tooLarge() error {
	return &mediagate.Error{
		Kind: mediagate.KindTooLarge, Param: uploadField, Message: fmt.Sprintf("file must be at most %d bytes", k.limit),
	}
}

// readForm goes through the parts of a form and stores the one that is the file.
func (s *Server) readForm(c *call, f *form) (result uploadResult, err error) {
	for {
		part, err := f.next()
		switch {
		case errors.Is(err, io.EOF):
			return result, badFile("is missing: the form has no such part")
		case err != nil:
			return result, err
		case formName(part) == uploadField:
			return s.storeFile(c, f, part)
		}
	}
}

// storeFile streams the file into the bucket. The bucket sees the file's end only after the rest
// of the form was read, so it keeps nothing of an invalid form.
func (s *Server) storeFile(c *call, f *form, part *multipart.Part) (uploadResult, error) {
	upload := uploadKinds[c.route.path]
	content := bufio.NewReader(&boundedReader{r: part, left: upload.limit, full: upload.tooLarge()})
	head, err := content.Peek(mediainfo.SniffLen)
	if err != nil && !errors.Is(err, io.EOF) {
		return uploadResult{}, asFormError(err)
	}
	mimeType, pass, err := upload.detect(head)
	if err != nil {
		return uploadResult{}, asFormError(err)
	}
	file, ok := mediagate.NewFile(s.now(), mimeType)
	if !ok {
		return uploadResult{}, mediagate.Errorf(mediagate.KindInternal, "no name for a file of type %s", mimeType)
	}
	ctx, cancel := c.detachedContext(requestTimeout + c.route.time)
	defer cancel()
	cleaned, clean := io.Pipe()
	stored := make(chan storedFile, 1)
	go func() {
		stored <- s.putFile(ctx, file, cleaned, upload.maxBytes(c.Request().ContentLength)+imagefile.MaxGrowth)
	}()
	size := &countingWriter{to: clean}
	err = pass(size, content)
	if err == nil { // bytes behind the picture's end count too
		_, err = io.Copy(io.Discard, content)
	}
	if err == nil {
		err = f.finish()
	}
	if err == nil { // checked before the bucket sees the end and keeps the file
		checkCtx, cancelCheck := c.detachedContext(s.cfg.StoreTimeout)
		if err = s.reauthorize(checkCtx, c); err == nil {
			err = s.countUpload(checkCtx, c, size.n)
		}
		cancelCheck()
	}
	_ = clean.CloseWithError(err) // nil ends the file
	got := <-stored
	switch {
	case err != nil && !errors.Is(err, errNotStored):
		return uploadResult{}, asFormError(err)
	case mediagate.Is(got.err, mediagate.KindInvalid):
		return uploadResult{}, badFile("is refused: %s", domainError(got.err).Message)
	case got.err != nil:
		return uploadResult{}, &mediagate.Error{Kind: mediagate.KindInternal, Message: "storing an upload", Err: got.err}
	}
	return uploadResult{
		URL: s.cfg.FileURL(file), Filename: uploadName(part), ContentType: file.MimeType(),
		Bytes: got.bytes, CreatedAt: file.CreatedAt.Unix(),
	}, nil
}

// mayUpload refuses an upload before its body is read, if it would be refused in the end anyway.
// Files cost money, so an account that is suspended, or never had any money, may store none.
func (s *Server) mayUpload(c *call) error {
	if err := c.caller.mayBegin(); err != nil {
		return err
	}
	a := c.caller.account
	if a.Available+a.Held+a.Spent <= 0 {
		a, err := s.cfg.Store.Account(c.ctx, a.ID) // the cached account may be a second old
		if err != nil {
			return err
		}
		if a.Available+a.Held+a.Spent <= 0 {
			return &mediagate.Error{
				Kind: mediagate.KindPayment, Message: "an upload needs a balance, and the account has never had one",
			}
		}
	}
	return s.countUpload(c.ctx, c, 1)
}

// countUpload takes bytes from those that the account may upload in a day.
func (s *Server) countUpload(ctx context.Context, c *call, bytes int64) error {
	most := c.caller.account.Or(s.cfg.AccountDefaults).UploadsPerDay
	if most == nil {
		return nil
	}
	refusal := &mediagate.Error{
		Kind:    mediagate.KindRateLimited,
		Message: fmt.Sprintf("too many requests: the account may upload %d bytes a day, its uploads_per_day", *most),
	}
	if bytes > *most { // no wait would help
		return refusal
	}
	left, admitted, err := s.cfg.Store.TakeRates(
		ctx, []mediagate.RateLimit{{Of: c.tenant() + "/uploads", Bytes: bytes, PerDay: *most}},
	)
	if err != nil || admitted {
		return err
	}
	refusal.RetryAfter = left[0].Next
	return refusal
}

// countingWriter counts the bytes that it writes.
type countingWriter struct {
	to io.Writer
	n  int64
}

func (s *countingWriter) Write(b []byte) (int, error) {
	n, err := s.to.Write(b)
	s.n += int64(n)
	return n, err
}

// storedFile is the result of storing a file.
type storedFile struct {
	bytes int64
	err   error
}

// errNotStored stops the reading of a file that the bucket refused.
var errNotStored = errors.New("the file could not be stored")

// putFile stores a file as it comes out of the pipe. It runs in its own goroutine, where a panic
// would end the process.
func (s *Server) putFile(
	ctx context.Context, file mediagate.File, cleaned *io.PipeReader, most int64,
) (got storedFile) {
	defer func() {
		if p := recover(); p != nil {
			got = storedFile{err: mediagate.Panicked(p)}
		}
		_ = cleaned.CloseWithError(errNotStored) // stops the writer
	}()
	got.bytes, got.err = s.cfg.Files.PutFile(ctx, file, cleaned, most)
	return got
}

// asFormError turns an error of a form, or of the file in it, into the client's error.
func asFormError(err error) error {
	switch words, bad := errors.AsType[imagefile.Unusable](err); {
	case bad:
		return badFile("%s", words.Error())
	case errors.Is(err, io.ErrUnexpectedEOF):
		return badFile(malformedForm)
	}
	return err
}

// formName returns the field name of a part.
func formName(part *multipart.Part) string {
	kind, parameters := disposition(part)
	if kind != "form-data" {
		return ""
	}
	return parameters["name"]
}

// disposition parses the Content-Disposition of a part. Many clients write names without quotes,
// with blanks or in UTF-8. If the header cannot be parsed, disposition puts quotes around each
// value and tries again.
func disposition(part *multipart.Part) (kind string, parameters map[string]string) {
	header := part.Header.Get("Content-Disposition")
	if kind, parameters, err := mime.ParseMediaType(header); err == nil {
		return kind, parameters
	}
	fields := splitFields(header)
	var quoted strings.Builder
	quoted.WriteString(fields[0])
	seen := map[string]bool{}
	for _, field := range fields[1:] {
		name, value, ok := strings.Cut(field, "=")
		name, value = strings.ToLower(strings.TrimSpace(name)), strings.TrimSpace(value)
		if !ok || seen[name] {
			continue
		}
		seen[name] = true
		if !strings.HasSuffix(name, "*") { // name* has its own encoding
			if len(value) >= 2 && value[0] == '"' && value[len(value)-1] == '"' {
				value = value[1 : len(value)-1]
			}
			value = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value) + `"`
		}
		quoted.WriteString("; " + name + "=" + value)
	}
	kind, parameters, _ = mime.ParseMediaType(quoted.String())
	return kind, parameters
}

// splitFields splits a header at the semicolons outside of quotes.
func splitFields(header string) []string {
	quoted := false
	var fields []string
	start := 0
	for i := range len(header) {
		switch {
		case header[i] == '"' && (i == 0 || header[i-1] != '\\'):
			quoted = !quoted
		case header[i] == ';' && !quoted:
			fields, start = append(fields, header[start:i]), i+1
		}
	}
	return append(fields, header[start:])
}

// uploadName returns the client's name for the file: the last element of its path, in visible
// characters.
func uploadName(part *multipart.Part) string {
	_, parameters := disposition(part)
	return cmp.Or(plainName(parameters["filename"]), unnamedUpload)
}

// plainName returns the last element of a client's path without invisible characters, or "" if
// nothing is left.
func plainName(name string) string {
	name = strings.ToValidUTF8(name, "")
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	name = strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return -1
		}
		return r
	}, name))
	if text := []rune(name); len(text) > maxUploadName {
		name = string(text[:maxUploadName])
	}
	if strings.Trim(name, ".") == "" {
		return ""
	}
	return name
}

// form is a multipart body, read part by part.
type form struct {
	body  *formBody
	parts *multipart.Reader
	count int
	part  *multipart.Part
}

// next returns the next part, and io.EOF after the last one. It skips the rest of the previous
// part, and limits the bytes before a part's content.
func (f *form) next() (*multipart.Part, error) {
	if f.part != nil {
		if _, err := io.Copy(io.Discard, f.part); err != nil {
			return nil, asFormError(err)
		}
	}
	if f.count++; f.count > formParts {
		return nil, badFile("cannot be read: the form has more than %d parts", formParts)
	}
	f.body.head = formHead
	part, err := f.parts.NextRawPart()
	f.body.head = -1
	switch err {
	case nil:
		f.part = part
		return part, nil
	case io.EOF: // only after the closing boundary, see formBody
		return nil, io.EOF
	default:
		return nil, badFile(malformedForm)
	}
}

// finish reads the form to its end, after the file.
func (f *form) finish() error {
	for {
		part, err := f.next()
		switch {
		case errors.Is(err, io.EOF):
			if _, err := io.Copy(io.Discard, f.body); !f.body.ended { // skips what follows the form
				return err
			}
			return nil
		case err != nil:
			return err
		case formName(part) == uploadField:
			return badFile("is given twice, but is allowed once")
		}
	}
}

var (
	errFormTooLarge = errors.New("the form is too large")
	errFormHead     = errors.New("too many bytes before a part")
)

// formBody is the bounded body of a form while it arrives. It keeps its own errors apart from
// those that multipart.Reader makes of them. At its end it delivers one more line and then
// io.ErrUnexpectedEOF: otherwise multipart.Reader could not tell an end within a part's header
// from the closing boundary.
type formBody struct {
	from   io.Reader
	left   int64
	head   int64 // how many bytes may still come before a part begins; -1 once it has begun
	ended  bool
	line   string // what is left of the extra line
	broken error
}

func (b *formBody) Read(p []byte) (int, error) {
	switch {
	case b.broken != nil:
		return 0, b.broken
	case b.ended && b.line == "":
		return 0, io.ErrUnexpectedEOF
	case b.ended:
		n := copy(p, b.line)
		b.line = b.line[n:]
		return n, nil
	case b.head == 0:
		return 0, errFormHead
	}
	if b.head > 0 {
		p = p[:min(int64(len(p)), b.head)]
	}
	p = p[:min(int64(len(p)), b.left+1)] // one byte more than allowed, to see the end
	n, err := b.from.Read(p)
	b.left -= int64(n)
	if b.head > 0 {
		b.head -= int64(n)
	}
	if b.left < 0 {
		b.broken = errFormTooLarge
		return 0, b.broken
	}
	switch {
	case err == nil:
	case errors.Is(err, io.EOF) && n > 0:
		err = nil // the next read returns it again
	case errors.Is(err, io.EOF):
		b.ended, b.line, err = true, "\r\n", nil
	default:
		b.broken = err
	}
	return n, err
}

// boundedReader reads at most left bytes. If there are more, it fails with the error full.
type boundedReader struct {
	r    io.Reader
	left int64
	full error
}

func (b *boundedReader) Read(p []byte) (int, error) {
	p = p[:min(int64(len(p)), b.left+1)]
	n, err := b.r.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, b.full
	}
	return n, err
}
