package api

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/catalog"
	"github.com/mediagate/mediagate/view"
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
	t, replayed, err := s.takeIn(c, read)
	if err != nil {
		return err
	}
	wait := preferredWait(c.Request().Header)
	switch may := c.needs(mediagate.ScopeRead) == nil; {
	case may && (replayed || wait > 0):
		seen, err := s.outcome(c, wait)
		if err == nil {
			if t = seen; wait > 0 {
				c.waited(wait)
			}
		} else if replayed { // a task that was just made is never told as a refusal: the client would make another
			return err
		}
	case replayed: // who may not read sees no more of it than was asked for
		if t, err = s.readTask(c, t.ID); err != nil {
			return err
		}
		t.Status, t.Progress = mediagate.StatusPending, 0
	}
	return s.answerVideo(c, &t)
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
	return s.refer(o, picture{field: referenceField, uri: uri})
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
func (s *Server) readOpenAIForm(c *call) (o order, err error) {
	_, parameters, _ := mime.ParseMediaType(c.Request().Header.Get("Content-Type"))
	var raw []byte
	c.uncounted(func() { raw, err = s.readLimited(c, min(c.route.bound, formLimit)) })
	if err == nil {
		err = s.again(c.ctx, c)
	}
	if err != nil {
		return order{}, err
	}
	parts, err := partsOf(raw, parameters["boundary"])
	if err != nil {
		return order{}, err
	}
	names := slices.Sorted(maps.Keys(parts))
	o = order{endpoint: videosPath, body: map[string]any{}, digest: digestOf(parts), translate: fromOpenAI(names)}
	for _, name := range names {
		part := parts[name]
		switch {
		case name == referenceField && part.file:
			if err := s.refer(&o, picture{field: name, part: part.content}); err != nil {
				return order{}, err
			}
			continue
		case !storable(name) || !storable(string(part.content)):
			return order{}, mediagate.Errorf(mediagate.KindInvalid, "a part of the form is not valid UTF-8, or holds U+0000")
		case part.inside != "":
			o.body[name] = map[string]any{part.inside: string(part.content)}
		default:
			o.body[name] = string(part.content)
		}
		o.size += len(part.content)
	}
	if o.reference == nil && o.body[referenceField] != nil {
		err = s.readReference(&o)
	}
	return o, err
}

// formPart is a part of a form.
type formPart struct {
	content []byte
	inside  string // the field of an object that it is, empty for none
	file    bool
}

// partsOf are the parts of a form, by their names.
func partsOf(raw []byte, boundary string) (map[string]formPart, error) {
	broken := mediagate.Errorf(mediagate.KindInvalid, "the form %s", noForm)
	form, parts := multipart.NewReader(bytes.NewReader(raw), boundary), map[string]formPart{}
	for range formParts {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			return parts, nil
		}
		if err != nil {
			return nil, broken
		}
		name, inside := partName(part.FormName())
		if _, twice := parts[name]; twice || name == "" {
			return nil, mediagate.Invalid(name, "each part of the form has a name, and each name one part")
		}
		content, err := io.ReadAll(part)
		if err != nil {
			return nil, broken
		}
		parts[name] = formPart{content: content, inside: inside, file: part.FileName() != ""}
	}
	return nil, mediagate.Errorf(mediagate.KindInvalid, "the form has more than %d parts", formParts)
}

// partName takes the name of a part apart that is a field of an object, as OpenAI's
// clients write it: input_reference[image_url].
func partName(name string) (field, inside string) {
	field, inside, nested := strings.Cut(name, "[")
	if inside, closed := strings.CutSuffix(inside, "]"); nested && closed && field == referenceField {
		return field, inside
	}
	return name, ""
}

// digestOf is that of what the parts of a form say. Clients draw the boundary anew each
// time: the same request is one whose parts say the same.
func digestOf(parts map[string]formPart) (digest [sha256.Size]byte) {
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		for _, text := range [][]byte{[]byte(name), []byte(parts[name].inside), parts[name].content} {
			_ = binary.Write(sum, binary.BigEndian, int64(len(text))) // a hash does not fail
			_, _ = sum.Write(text)
		}
	}
	sum.Sum(digest[:0])
	return digest
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

// videoList is a page of videos.
type videoList struct {
	Object  string       `json:"object"`
	Data    []view.Video `json:"data"`
	FirstID *string      `json:"first_id"`
	LastID  *string      `json:"last_id"`
	HasMore bool         `json:"has_more"`
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
		return maskAfter(err)
	}
	page := videoList{Object: "list", Data: make([]view.Video, 0, len(tasks)), HasMore: more}
	for i := range tasks {
		page.Data = append(page.Data, s.videoOf(c, &tasks[i]))
	}
	if len(tasks) > 0 {
		page.FirstID, page.LastID = &tasks[0].ID, &tasks[len(tasks)-1].ID
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
	find := view.File
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
