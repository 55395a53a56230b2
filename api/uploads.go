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
	uploadLimit   = 20 << 20            // of a picture or a sound, in bytes
	videoLimit    = 100 << 20           // the most that a model takes which bounds it
	formLimit     = uploadLimit + 1<<20 // of the whole body
	videoForm     = videoLimit + 1<<20
	formHead      = 64 << 10 // of what stands before a part's content
	formParts     = 100
	maxUploadName = 255 // characters that are kept of a name
)

const (
	uploadField   = "file"
	unnamedUpload = "upload"
)

// uploadKind is what a route takes.
type uploadKind struct {
	class mediainfo.Class
	limit int64 // of the file, in bytes
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

// file tells the type of a file that begins with head, and how it is passed on.
// Pictures lose all but their pixels; others stay as they are, and the bucket's side finds
// what is wrong with them.
func (k uploadKind) file(head []byte) (mimeType string, pass func(to io.Writer, from io.Reader) error, err error) {
	if k.class == mediainfo.ClassImage {
		format, ok := imagefile.Detect(head)
		pass = func(to io.Writer, from io.Reader) error {
			_, err := imagefile.Clean(to, from)
			return err
		}
		if !ok {
			err = pass(io.Discard, bytes.NewReader(head)) // which says why
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

// handleUpload takes a file in, while it arrives: nothing is stored unless
// the whole form is as it should be.
func (s *Server) handleUpload(c *call) (err error) {
	var result uploadResult
	c.uncounted(func() { result, err = s.takeUpload(c) })
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
	from := &uploading{arrival: s.arrival(c, s.cfg.Limits.Uploads, s.cfg.UploadWait, "the uploads under way")}
	if err := from.grow(fileWeight(0)); err != nil {
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

// uploading is the body of an upload on its way to the bucket.
type uploading struct {
	*arrival
	came int64
}

func (u *uploading) Read(b []byte) (int, error) {
	n, err := u.arrival.Read(b)
	u.came += int64(n)
	if noRoom := u.grow(fileWeight(u.came)); noRoom != nil {
		return 0, noRoom
	}
	return n, err
}

// fileWeight is what the bucket's side holds at most of an upload of which so many
// bytes came: twice that and a little, and no more than three parts of 5 MiB.
func fileWeight(came int64) int64 { return min(2*came+64<<10, 15<<20) }

// announced is how much an upload may turn out to be.
func (k uploadKind) announced(length int64) int64 {
	if length < 0 || length > k.limit {
		return k.limit
	}
	return length
}

// badFile says what is wrong with the file, in words that follow its name.
func badFile(format string, args ...any) error {
	return mediagate.Invalid(uploadField, uploadField+" "+format, args...)
}

// noForm says what a body is not that cannot be taken apart.
const noForm = "cannot be read: the body is no multipart/form-data with the boundary of its Content-Type, or ends before it is complete"

func (k uploadKind) tooLarge() error {
	return &mediagate.Error{Kind: mediagate.KindTooLarge, Param: uploadField, Message: fmt.Sprintf("file must be at most %d bytes", k.limit)}
}

// readForm goes over the parts of a form and stores the one that is the file.
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

// storeFile streams the file into the bucket. The bucket has the file's end only
// when the rest of the form has been read, so that it keeps nothing of a form
// that goes wrong.
func (s *Server) storeFile(c *call, f *form, part *multipart.Part) (uploadResult, error) {
	upload := uploadKinds[c.route.path]
	content := bufio.NewReader(&bounded{r: part, left: upload.limit, full: upload.tooLarge()})
	head, err := content.Peek(mediainfo.SniffLen)
	if err != nil && !errors.Is(err, io.EOF) {
		return uploadResult{}, formError(err)
	}
	mimeType, pass, err := upload.file(head)
	if err != nil {
		return uploadResult{}, formError(err)
	}
	file, ok := mediagate.NewFile(s.now(), mimeType)
	if !ok {
		return uploadResult{}, mediagate.Errorf(mediagate.KindInternal, "no name for a file of type %s", mimeType)
	}
	ctx, cancel := c.lasting(requestTimeout + c.route.time)
	defer cancel()
	cleaned, clean := io.Pipe()
	stored := make(chan storedFile, 1)
	go func() {
		stored <- s.putFile(ctx, file, cleaned, upload.announced(c.Request().ContentLength)+imagefile.MaxGrowth)
	}()
	size := &sized{to: clean}
	err = pass(size, content)
	if err == nil { // what was cut off counts as well
		_, err = io.Copy(io.Discard, content)
	}
	if err == nil {
		err = f.finish()
	}
	if err == nil { // or the bucket would keep it
		judging, judged := c.lasting(s.cfg.StoreTimeout)
		if err = s.again(judging, c); err == nil {
			err = s.countUpload(judging, c, size.n)
		}
		judged()
	}
	_ = clean.CloseWithError(err) // nil: the end of the file
	got := <-stored
	switch {
	case err != nil && !errors.Is(err, errNotStored):
		return uploadResult{}, formError(err)
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

// mayUpload refuses what would be refused in the end, before it is read. Files cost us, so
// an account leaves none that is suspended or never had any money.
func (s *Server) mayUpload(c *call) error {
	if err := c.caller.mayBegin(); err != nil {
		return err
	}
	a := c.caller.account
	if a.Available+a.Held+a.Spent <= 0 {
		a, err := s.cfg.Store.Account(c.ctx, a.ID) // what is known is of the last second
		if err != nil {
			return err
		}
		if a.Available+a.Held+a.Spent <= 0 {
			return &mediagate.Error{Kind: mediagate.KindPayment, Message: "an upload needs a balance, and the account has never had one"}
		}
	}
	return s.countUpload(c.ctx, c, 1)
}

// countUpload takes bytes of those that the account may upload in a day.
func (s *Server) countUpload(ctx context.Context, c *call, bytes int64) error {
	most := c.caller.account.Or(s.cfg.AccountDefaults).UploadsPerDay
	if most == nil {
		return nil
	}
	refusal := &mediagate.Error{
		Kind: mediagate.KindRateLimited, Message: fmt.Sprintf("too many requests: the account may upload %d bytes a day, its uploads_per_day", *most),
	}
	if bytes > *most { // waiting does not help
		return refusal
	}
	left, admitted, err := s.cfg.Store.TakeRates(ctx, []mediagate.RateLimit{{Of: c.tenant() + "/uploads", Bytes: bytes, PerDay: *most}})
	if err != nil || admitted {
		return err
	}
	refusal.RetryAfter = left[0].Next
	return refusal
}

// sized counts what is written.
type sized struct {
	to io.Writer
	n  int64
}

func (s *sized) Write(b []byte) (int, error) {
	n, err := s.to.Write(b)
	s.n += int64(n)
	return n, err
}

// storedFile is what came of storing a file.
type storedFile struct {
	bytes int64
	err   error
}

// errNotStored ends the reading of a file that the bucket does not take.
var errNotStored = errors.New("the file could not be stored")

// putFile stores a file as it comes out of the pipe, in a goroutine of its own,
// where a panic would end the process.
func (s *Server) putFile(ctx context.Context, file mediagate.File, cleaned *io.PipeReader, most int64) (got storedFile) {
	defer func() {
		if p := recover(); p != nil {
			got = storedFile{err: mediagate.Panicked(p)}
		}
		_ = cleaned.CloseWithError(errNotStored) // nobody reads on
	}()
	got.bytes, got.err = s.cfg.Files.PutFile(ctx, file, cleaned, most)
	return got
}

// formError words what is wrong with a form or the file in it.
func formError(err error) error {
	switch words, bad := errors.AsType[imagefile.Unusable](err); {
	case bad:
		return badFile("%s", words.Error())
	case errors.Is(err, io.ErrUnexpectedEOF):
		return badFile(noForm)
	}
	return err
}

// formName is the name of a part's field.
func formName(part *multipart.Part) string {
	kind, parameters := disposition(part)
	if kind != "form-data" {
		return ""
	}
	return parameters["name"]
}

// disposition reads what a part says of itself. Many clients write names as they
// are, without quotes, with blanks, in UTF-8: what cannot be read is read once more
// with quotes around each value.
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
		if !strings.HasSuffix(name, "*") { // which has an encoding of its own
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

// splitFields cuts a header at its semicolons, those within quotes aside.
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

// uploadName is the name that the client gave the file: the last element of its
// path, without what does not show.
func uploadName(part *multipart.Part) string {
	_, parameters := disposition(part)
	return cmp.Or(plainName(parameters["filename"]), unnamedUpload)
}

// plainName is the last element of a path that a client wrote, as a name that shows all
// that it is; empty where nothing is left.
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

// form is a multipart body, part by part.
type form struct {
	body  *formBody
	parts *multipart.Reader
	count int
	part  *multipart.Part
}

// next is the next part; io.EOF follows the last one. What is left of the part
// before is read over, and what stands before a part's content is bounded.
func (f *form) next() (*multipart.Part, error) {
	if f.part != nil {
		if _, err := io.Copy(io.Discard, f.part); err != nil {
			return nil, formError(err)
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
	case io.EOF: // of the closing boundary alone, see formBody
		return nil, io.EOF
	default:
		return nil, badFile(noForm)
	}
}

// finish reads the form to its end, behind the file.
func (f *form) finish() error {
	for {
		part, err := f.next()
		switch {
		case errors.Is(err, io.EOF):
			if _, err := io.Copy(io.Discard, f.body); !f.body.ended { // what follows the form is no part of it
				return err
			}
			return nil
		case err != nil:
			return err
		case formName(part) == uploadField:
			return badFile("is given twice, once is allowed")
		}
	}
}

var (
	errFormTooLarge = errors.New("the form is too large")
	errFormHead     = errors.New("what stands before a part is too long")
)

// formBody is the body of a form on its way: bounded, its own errors kept apart
// from what the parts make of them. Its end is one more line, and then an error:
// to multipart.Reader an end within a part's head is otherwise the same as the
// closing boundary.
type formBody struct {
	from   io.Reader
	left   int64
	head   int64 // how much more may be read before a part begins; -1: it has begun
	ended  bool
	line   string // that is still to come then
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
	p = p[:min(int64(len(p)), b.left+1)] // one more than allowed, to see the end
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
		err = nil // it will say so again
	case errors.Is(err, io.EOF):
		b.ended, b.line, err = true, "\r\n", nil
	default:
		b.broken = err
	}
	return n, err
}

// bounded ends a file that is larger than it may be.
type bounded struct {
	r    io.Reader
	left int64
	full error
}

func (b *bounded) Read(p []byte) (int, error) {
	p = p[:min(int64(len(p)), b.left+1)]
	n, err := b.r.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, b.full
	}
	return n, err
}
