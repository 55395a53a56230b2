package api

import (
	"bytes"
	"crypto/sha256"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/catalog"
	"github.com/mediagate/mediagate/task/view"
)

// These routes serve OpenAI's video clients: the same submits, tasks and files, under OpenAI's names.
// They are validated, priced and stored like all others.

const referenceField = "input_reference"

// openAIFieldMask selects the fields of a body in OpenAI's form.
func openAIFieldMask(c *catalog.Catalog) *catalog.FieldMask {
	mask := c.FieldMask(videosPath)
	mask.Fields["seconds"] = &catalog.FieldMask{}
	mask.Fields["size"] = &catalog.FieldMask{}
	mask.Fields[referenceField] = &catalog.FieldMask{Fields: map[string]*catalog.FieldMask{"image_url": {}, "file_id": {}}}
	return mask
}

// handleOpenAIVideo accepts a video submit.
func (s *Server) handleOpenAIVideo(c *call) error {
	read := s.readOpenAIVideo
	if kind, _, err := mime.ParseMediaType(c.Request().Header.Get("Content-Type")); err == nil &&
		strings.HasPrefix(kind, "multipart/") {
		read = s.readOpenAIForm
	}
	wait := preferredWait(c.Request().Header)
	t, replayed, err := s.acceptSubmit(c, func(c *call) (submitRequest, error) {
		o, err := read(c)
		o.adoptionWait = c.adoptionWaitFor(wait)
		return o, err
	})
	if err != nil {
		return err
	}
	switch mayRead := c.requireScope(mediagate.ScopeRead) == nil; {
	case mayRead && (replayed || wait > 0):
		// If a new task cannot be read, the answer is the task as it was made: after an error the
		// client would submit it again.
		seen, err := s.awaitOutcome(c, wait)
		if err == nil {
			if t = seen; wait > 0 {
				c.noteWait(wait)
			}
		} else if replayed {
			return c.dropTaskHeaders(err)
		}
	case replayed: // a key without the scope read sees only what it submitted
		if t, err = s.readTask(c, t.ID); err != nil {
			return c.dropTaskHeaders(err)
		}
		t.Status, t.Progress = mediagate.StatusPending, 0
	}
	return s.answerVideo(c, &t)
}

// dropTaskHeaders removes the headers that name the task from an error's answer, and returns the
// error.
func (c *call) dropTaskHeaders(err error) error {
	for _, name := range []string{"Location", shouldRetryHeader, replayedHeader} {
		c.Response().Header().Del(name)
	}
	return err
}

// requireScope refuses a key without the scope, in addition to the route's own.
func (c *call) requireScope(scope mediagate.Scope) error {
	if slices.Contains(c.caller.key.Scopes, scope) {
		return nil
	}
	return errScope(scope)
}

// readOpenAIVideo reads a JSON body.
func (s *Server) readOpenAIVideo(c *call) (submitRequest, error) {
	raw, body, err := s.readBody(c, c.models.fieldMasks[openAIVideosPath])
	if err != nil {
		return submitRequest{}, err
	}
	o := submitRequest{
		endpoint: videosPath, body: body, size: len(raw), digest: sha256.Sum256(raw), translate: fromOpenAI(namesIn(raw)),
	}
	if body[referenceField] != nil {
		err = s.readReference(&o)
	}
	return o, err
}

// readReference replaces the reference in the body with its address. A picture within the body
// gets the address that it will have as an upload.
func (s *Server) readReference(o *submitRequest) error {
	value, err := referenceURL(o.body[referenceField])
	o.body[referenceField] = value
	uri, _ := value.(string)
	if err != nil || !strings.HasPrefix(uri, "data:") {
		return err
	}
	o.size -= len(uri) // the model's limit does not count it
	o.body[referenceField], err = s.attach(o, picture{field: referenceField, uri: uri})
	return err
}

// fromOpenAI returns the translation of a body in which the client wrote these fields.
func fromOpenAI(names []string) translation {
	return func(o *catalog.Operation, body map[string]any) (map[string]any, map[string]string, error) {
		return o.FromOpenAI(body, names)
	}
}

// referenceURL reads {image_url}, or the bare address.
func referenceURL(value any) (any, error) {
	fields, isObject := value.(map[string]any)
	switch {
	case !isObject:
		return value, nil
	case fields["file_id"] != nil:
		return nil, mediagate.Invalid(
			referenceField+".file_id", "%s.file_id is not supported: send image_url, or the file itself in a form",
			referenceField,
		)
	case fields["image_url"] == nil:
		return nil, mediagate.Invalid(referenceField+".image_url", "%s.image_url is required", referenceField)
	default:
		return fields["image_url"], nil
	}
}

// namesIn returns the field names of a JSON object that was parsed before, without those that are
// null.
func namesIn(raw []byte) []string {
	var names []string
	decoder := jsontext.NewDecoder(bytes.NewReader(raw))
	if _, err := decoder.ReadToken(); err != nil {
		return nil
	}
	for decoder.PeekKind() == '"' {
		name, err := decoder.ReadToken()
		if err != nil {
			return names
		}
		text, null := name.String(), decoder.PeekKind() == 'n'
		if !null {
			names = append(names, text)
		}
		if decoder.SkipValue() != nil {
			return names
		}
	}
	return names
}

// readOpenAIForm reads a form: its texts are fields of the body, its file is the reference.
func (s *Server) readOpenAIForm(c *call) (submitRequest, error) {
	form, err := s.readParts(c, c.models.fieldMasks[openAIVideosPath], referenceField)
	if err != nil {
		return submitRequest{}, err
	}
	o := form.submitRequest(videosPath)
	switch {
	case len(form.pictures) > 1, len(form.pictures) == 1 && o.body[referenceField] != nil:
		return submitRequest{}, mediagate.Invalid(referenceField, "%s must be one picture", referenceField)
	case len(form.pictures) == 1:
		o.body[referenceField], err = s.attach(&o, form.pictures[0])
	case o.body[referenceField] != nil:
		err = s.readReference(&o)
	}
	return o, err
}

var errNoVideo = &mediagate.Error{Kind: mediagate.KindNotFound, Message: "video not found", Param: "video_id"}

// pathVideo reads the video in the path. Malformed and unknown ids, other accounts' tasks and
// tasks that are no video all get the same answer.
func (s *Server) pathVideo(c *call) (mediagate.Task, error) {
	id := c.Param("video_id")
	if !isID(id, taskPrefix) {
		return mediagate.Task{}, errNoVideo
	}
	c.taskID = id
	t, err := s.cfg.Store.Task(c.ctx, c.caller.key.AccountID, id)
	if mediagate.Is(err, mediagate.KindNotFound) || err == nil && t.Type != mediagate.TypeVideo {
		return mediagate.Task{}, errNoVideo
	}
	return t, err
}

func (s *Server) answerVideo(c *call, t *mediagate.Task) error {
	return c.linked(http.StatusOK, s.videoOf(c, t))
}

// videoOf shows a task in OpenAI's terms.
func (s *Server) videoOf(c *call, t *mediagate.Task) view.Video {
	var seconds, size string
	if m, ok := c.models.catalog.Model(t.Model); ok {
		if o, ok := m.Operation(videosPath); ok {
			seconds, size = o.ToOpenAI(t.Params)
		}
	}
	return view.VideoOf(t, seconds, size, s.cfg.Keep.FilesUntil(t))
}

func (s *Server) handleOpenAIVideoState(c *call) error {
	t, err := s.pathVideo(c)
	if err != nil {
		return err
	}
	return s.answerVideo(c, &t)
}

func (s *Server) handleOpenAIVideos(c *call) error {
	q := c.query()
	f := mediagate.TaskFilter{AccountID: c.caller.key.AccountID, Type: mediagate.TypeVideo}
	order, err := oneOfQuery(q, "order", "asc", "desc")
	if err != nil {
		return err
	}
	f.OldestFirst = order == "asc"
	if err := readPage(q, &f); err != nil {
		return err
	}
	tasks, more, err := s.cfg.Store.Tasks(c.ctx, f)
	if err != nil {
		return notFoundAs(err, errAfter)
	}
	page, err := listTasks(tasks, more, func(t *mediagate.Task) (view.Video, error) { return s.videoOf(c, t), nil })
	if err != nil {
		return err
	}
	return c.linked(http.StatusOK, page)
}

// handleOpenAIVideoFile answers with the video, or with its cover picture.
func (s *Server) handleOpenAIVideoFile(c *call) error {
	variant, err := oneOfQuery(c.query(), "variant", "video", "thumbnail")
	if err != nil {
		return err
	}
	t, err := s.pathVideo(c)
	if err != nil {
		return err
	}
	find := (*mediagate.Task).File
	if variant == "thumbnail" {
		find = view.Cover
	}
	file, ok := find(&t, 1)
	if !ok {
		return errNoResult
	}
	return s.answerFile(c, &t, file, "")
}

// erasedVideo is the answer to the deletion of a video.
type erasedVideo struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Deleted bool   `json:"deleted"`
}

func (s *Server) handleOpenAIVideoErasure(c *call) error {
	t, err := s.pathVideo(c)
	if err != nil {
		return err
	}
	if err := s.erase(c, t.ID); err != nil {
		return err
	}
	return c.ok(erasedVideo{t.ID, "video.deleted", true})
}
