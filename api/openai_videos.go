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

// OpenAI's videos: the same submits, tasks and files under the names that OpenAI's
// clients use. Nothing is judged, priced or stored in another way.

const referenceField = "input_reference"

// openAIOutline is what is looked at in a body of OpenAI's form.
func openAIOutline(c *catalog.Catalog) *catalog.Outline {
	o := c.Outline(videosPath)
	o.Fields["seconds"], o.Fields["size"] = &catalog.Outline{}, &catalog.Outline{}
	o.Fields[referenceField] = &catalog.Outline{Fields: map[string]*catalog.Outline{"image_url": {}, "file_id": {}}}
	return o
}

// handleOpenAIVideo takes a video in.
func (s *Server) handleOpenAIVideo(c *call) error {
	read := s.readOpenAIVideo
	if kind, _, err := mime.ParseMediaType(c.Request().Header.Get("Content-Type")); err == nil && strings.HasPrefix(kind, "multipart/") {
		read = s.readOpenAIForm
	}
	wait := preferredWait(c.Request().Header)
	t, replayed, err := s.takeIn(c, func(c *call) (order, error) {
		o, err := read(c)
		o.adoptable = c.adoptableFor(wait)
		return o, err
	})
	if err != nil {
		return err
	}
	switch may := c.needs(mediagate.ScopeRead) == nil; {
	case may && (replayed || wait > 0):
		seen, err := s.outcome(c, wait)
		if err == nil {
			if t = seen; wait > 0 {
				c.waited(wait)
			}
		} else if replayed { // a task that was just made is never told as a refusal: the client would make another
			return c.untold(err)
		}
	case replayed: // who may not read sees no more of it than was asked for
		if t, err = s.readTask(c, t.ID); err != nil {
			return c.untold(err)
		}
		t.Status, t.Progress = mediagate.StatusPending, 0
	}
	return s.answerVideo(c, &t)
}

// untold takes out of the answer what names the task that an error tells nothing of.
func (c *call) untold(err error) error {
	for _, name := range []string{"Location", shouldRetryHeader, replayedHeader} {
		c.Response().Header().Del(name)
	}
	return err
}

// needs refuses a key that lacks the scope, beside the route's own.
func (c *call) needs(scope mediagate.Scope) error {
	if slices.Contains(c.caller.key.Scopes, scope) {
		return nil
	}
	return errScope(scope)
}

// readOpenAIVideo reads a body of JSON.
func (s *Server) readOpenAIVideo(c *call) (order, error) {
	raw, body, err := s.readBody(c, c.models.outlines[openAIVideosPath])
	if err != nil {
		return order{}, err
	}
	o := order{
		endpoint: videosPath, body: body, size: len(raw), digest: sha256.Sum256(raw), translate: fromOpenAI(namesIn(raw)),
	}
	if body[referenceField] != nil {
		err = s.readReference(&o)
	}
	return o, err
}

// readReference puts the address of the reference in its place, where it is one within
// the body that which it will have.
func (s *Server) readReference(o *order) error {
	value, err := referenceURL(o.body[referenceField])
	o.body[referenceField] = value
	uri, _ := value.(string)
	if err != nil || !strings.HasPrefix(uri, "data:") {
		return err
	}
	o.size -= len(uri) // it is no part of what the model judges
	o.body[referenceField], err = s.refer(o, picture{field: referenceField, uri: uri})
	return err
}

// fromOpenAI translates a body in which the client wrote these fields.
func fromOpenAI(names []string) translation {
	return func(o *catalog.Operation, body map[string]any) (map[string]any, map[string]string, error) {
		return o.FromOpenAI(body, names)
	}
}

// referenceURL reads {image_url}, or the address alone.
func referenceURL(value any) (any, error) {
	fields, isObject := value.(map[string]any)
	switch {
	case !isObject:
		return value, nil
	case fields["file_id"] != nil:
		return nil, mediagate.Invalid(referenceField+".file_id", "%s.file_id names nothing here: give image_url, or the file itself in a form", referenceField)
	case fields["image_url"] == nil:
		return nil, mediagate.Invalid(referenceField+".image_url", "%s.image_url is required", referenceField)
	default:
		return fields["image_url"], nil
	}
}

// namesIn are the fields of a JSON object that was found correct, nulls left out.
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

// readOpenAIForm reads a form: its texts are fields of the body, its file the reference.
func (s *Server) readOpenAIForm(c *call) (order, error) {
	form, err := s.readParts(c, c.models.outlines[openAIVideosPath], referenceField)
	if err != nil {
		return order{}, err
	}
	o := form.order(videosPath)
	switch {
	case len(form.pictures) > 1, len(form.pictures) == 1 && o.body[referenceField] != nil:
		return order{}, mediagate.Invalid(referenceField, "%s must be one picture", referenceField)
	case len(form.pictures) == 1:
		o.body[referenceField], err = s.refer(&o, form.pictures[0])
	case o.body[referenceField] != nil:
		err = s.readReference(&o)
	}
	return o, err
}

var errNoVideo = &mediagate.Error{Kind: mediagate.KindNotFound, Message: "video not found", Param: "video_id"}

// pathVideo reads the video that the path names. Ids that are malformed, unknown,
// someone else's, or of another task than a video's are told apart in no way.
func (s *Server) pathVideo(c *call) (mediagate.Task, error) {
	id := c.Param("video_id")
	if !looksLike(id, taskPrefix) {
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

// videoOf is a task in OpenAI's words.
func (s *Server) videoOf(c *call, t *mediagate.Task) view.Video {
	var seconds, size string
	if m, ok := c.models.catalog.Model(t.Model); ok {
		if o, ok := m.Operation(videosPath); ok {
			seconds, size = o.InOpenAI(t.Params)
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

// handleOpenAIVideoFile answers with the video, or with the picture that stands for it.
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

// erasedVideo is the answer to an erasure.
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
