package api

import (
	"bufio"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/catalog"
	"github.com/mediagate/mediagate/task/view"
)

// OpenAI's clients submit an image and expect the picture itself as the answer.

const (
	formatField = "response_format"
	formatURL   = "url"
	formatBytes = "b64_json"

	pictureField = "image" // the field for the pictures to edit

	asyncPreference = "respond-async"

	// pictureWait is how long a submit in OpenAI's form waits for its pictures.
	pictureWait = 120 * time.Second
)

// handleImages accepts an image submit. If the body is in OpenAI's form, it waits and answers
// with the pictures.
func (s *Server) handleImages(c *call) error { return s.answerImages(c, s.readImages) }

// handleImageEdits accepts a form with pictures to edit, and answers like handleImages.
func (s *Server) handleImageEdits(c *call) error { return s.answerImages(c, s.readImageEdits) }

// answerImages reads a submit with the function read, and makes its task. It answers with pictures
// in the format that read returns. If that format is empty, or if the client prefers it
// (Prefer: respond-async), the answer is an acknowledgement.
func (s *Server) answerImages(c *call, read func(*call) (submitRequest, string, error)) error {
	format := ""
	_, async := preference(c.Request().Header, asyncPreference)
	_, _, err := s.acceptSubmit(c, func(c *call) (o submitRequest, err error) {
		o, format, err = read(c)
		if format != "" && !async {
			o.adoptionWait = c.adoptionWaitFor(pictureWait)
		}
		return o, err
	})
	if err != nil {
		return err
	}
	if async && format != "" {
		c.Response().Header().Set(appliedHeader, asyncPreference)
	}
	if async || format == "" {
		return s.acknowledge(c)
	}
	header := c.Response().Header()
	header.Set(shouldRetryHeader, "false") // a retry would make another task
	t, err := s.awaitOutcome(c, pictureWait)
	if err == nil {
		if err := pictureFailure(&t); err != nil {
			if !isServerFault(err) { // clients do not retry these
				return c.dropTaskHeaders(err)
			}
			return err
		}
		err = s.answerPictures(c, &t, format)
	}
	if err != nil && !errors.Is(err, errCut) {
		return &mediagate.Error{
			Kind: mediagate.KindTimeout, Err: err,
			Message: fmt.Sprintf(
				"task %s was accepted, but its pictures cannot be read now: ask for it with GET /v1/tasks/%s", c.taskID, c.taskID,
			),
		}
	}
	return err
}

// readImages reads a body. If it is in OpenAI's form, format says whether the answer holds links to
// the pictures or the pictures themselves.
func (s *Server) readImages(c *call) (o submitRequest, format string, err error) {
	raw, body, err := s.readBody(c, c.models.fieldMasks[imagesPath])
	if err != nil {
		return submitRequest{}, "", err
	}
	o = submitRequest{endpoint: imagesPath, body: body, size: len(raw), digest: sha256.Sum256(raw)}
	size, _ := body["size"].(string)
	if asked := body[formatField]; (asked == nil || asked == "") && !catalog.Pixels(size) && !fromOpenAISDK(c.Request()) {
		delete(body, formatField)
		o.strict, err = c.strictNames(raw)
		return o, "", err
	}
	names := slices.DeleteFunc(namesIn(raw), func(name string) bool { return name == formatField })
	o.translate = fromOpenAI(names)
	format, err = takeFormat(body)
	if err == nil {
		err = c.requireScope(mediagate.ScopeRead)
	}
	return o, format, err
}

// readImageEdits reads a form with pictures to edit, which is always in OpenAI's form.
func (s *Server) readImageEdits(c *call) (o submitRequest, format string, err error) {
	form, err := s.readParts(c, c.models.fieldMasks[imagesPath], pictureField)
	if err != nil {
		return submitRequest{}, "", err
	}
	o = form.submitRequest(imagesPath)
	var pictures []any
	for _, p := range form.pictures {
		address, err := s.attach(&o, p)
		if err != nil {
			return submitRequest{}, "", err
		}
		pictures = append(pictures, address)
	}
	if len(pictures) == 0 || o.body[pictureField] != nil {
		return submitRequest{}, "", mediagate.Invalid(
			pictureField, "%s is required: one picture or more, as files", pictureField,
		).Because(mediagate.ReasonRequired)
	}
	o.body[pictureField] = pictures
	format, err = takeFormat(o.body)
	if err == nil {
		err = c.requireScope(mediagate.ScopeRead)
	}
	return o, format, err
}

// fromOpenAISDK reports whether one of OpenAI's SDKs sent the request. They cannot read an
// acknowledgement.
func fromOpenAISDK(r *http.Request) bool {
	return r.Header.Get("X-Stainless-Lang") != "" || strings.HasPrefix(r.UserAgent(), "OpenAI/")
}

// takeFormat removes response_format from a body in OpenAI's form and returns its value.
func takeFormat(body map[string]any) (format string, err error) {
	asked := body[formatField]
	delete(body, formatField)
	switch asked {
	case nil, "", formatURL:
		return formatURL, nil
	case formatBytes:
		return formatBytes, nil
	default:
		return "", mediagate.Invalid(
			formatField, "%s must be %s or %s", formatField, formatURL, formatBytes,
		).Because(mediagate.ReasonNotOneOf)
	}
}

// pictureFailure returns nil if the task is completed, and otherwise the error that says why it has
// no pictures.
func pictureFailure(t *mediagate.Task) error {
	switch {
	case t.Status == mediagate.StatusCompleted:
		return nil
	case t.Status == mediagate.StatusCancelled:
		return mediagate.Errorf(mediagate.KindFailed, "task %s was cancelled", t.ID)
	case !t.Status.Terminal():
		return mediagate.Errorf(
			mediagate.KindTimeout, "task %[1]s has not ended within %[2]d s and goes on: ask for it with GET /v1/tasks/%[1]s",
			t.ID, int(pictureWait/time.Second),
		)
	}
	failure := view.Of(t, 1, nil).Error
	kind := mediagate.KindFailed
	switch failure.Code {
	case mediagate.CodeContentPolicy:
		kind = mediagate.KindModerated
	case mediagate.CodeInvalidParameters, mediagate.CodeImageProcessing:
		kind = mediagate.KindInvalid
	default:
	}
	return mediagate.Errorf(kind, "task %s failed, %s: %s", t.ID, failure.Code, failure.Message)
}

// openAIPictures is the answer in OpenAI's form.
type openAIPictures struct {
	Created int64             `json:"created"`
	Data    []openAIPictureAt `json:"data"`
}

type openAIPictureAt struct {
	URL string `json:"url"`
}

func (s *Server) answerPictures(c *call, t *mediagate.Task, format string) error {
	if format == formatBytes {
		return s.sendPictures(c, t)
	}
	v, err := s.view(c.ctx, t)
	if err != nil {
		return err
	}
	answer := openAIPictures{Created: v.Completed}
	for _, item := range v.Result.Images {
		for _, url := range item.URL {
			answer.Data = append(answer.Data, openAIPictureAt{url})
		}
	}
	if len(answer.Data) == 0 {
		return errNoResult
	}
	return c.linked(http.StatusOK, answer)
}

// sendPictures answers with the pictures themselves. It streams them from the bucket and holds
// none in memory.
func (s *Server) sendPictures(c *call, t *mediagate.Task) error {
	ctx, cancel := c.detachedContext(fileTime)
	defer cancel()
	var pictures []io.Reader
	for n := 1; ; n++ {
		file, ok := t.File(n)
		if !ok {
			break
		}
		picture, err := s.cfg.Files.OpenAt(ctx, file.Key, 0)
		if err != nil {
			return err
		}
		defer func() { _ = picture.Close() }()
		pictures = append(pictures, picture)
	}
	header := c.Response().Header()
	header.Set("Content-Type", "application/json")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	out := bufio.NewWriter(c.paced(fileTime))
	_, _ = fmt.Fprintf(out, `{"created":%d,"data":[`, t.EndedAt.Unix()) // Flush reports any failed write
	for i, picture := range pictures {
		if i > 0 {
			_ = out.WriteByte(',')
		}
		_, _ = out.WriteString(`{"b64_json":"`)
		encoder := base64.NewEncoder(base64.StdEncoding, out)
		if _, err := io.Copy(encoder, picture); err != nil {
			if _, left := out.Write(nil); left != nil { // the client broke off, not the bucket
				return fmt.Errorf("%w: %w", errCut, err)
			}
			return err // the answer ends here, as broken JSON: after a cut connection OpenAI's clients would submit again
		}
		_ = encoder.Close()
		_, _ = out.WriteString(`"}`)
	}
	_, _ = out.WriteString("]}\n")
	if err := out.Flush(); err != nil {
		return fmt.Errorf("%w: %w", errCut, err)
	}
	return nil
}
