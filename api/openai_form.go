package api

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/catalog"
	"github.com/mediagate/mediagate/media/imagefile"
)

// Forms of OpenAI's clients: a part of a form is a field of the body, or a piece of one.

// openAIForm is a form as the body that it stands for.
type openAIForm struct {
	body     map[string]any // without the pictures
	pictures []picture      // of the field that takes them, in the order of the form
	names    []string       // of the fields, pictures included
	digest   [sha256.Size]byte
	size     int // of the texts
}

// readParts reads a form whose pictures belong to one field. The outline says which texts
// may be JSON: those of fields that a model takes as a list or an object.
func (s *Server) readParts(c *call, keep *catalog.Outline, pictures string) (f openAIForm, err error) {
	_, parameters, _ := mime.ParseMediaType(c.Request().Header.Get("Content-Type"))
	var raw []byte
	c.uncounted(func() { raw, err = s.readLimited(c, min(c.route.bound, formLimit)) })
	if err == nil {
		err = s.again(c.ctx, c)
	}
	if err != nil {
		return openAIForm{}, err
	}
	parts, err := partsOf(raw, parameters["boundary"])
	if err != nil {
		return openAIForm{}, err
	}
	f.digest = digestOf(parts)
	var fields map[string]*formNode
	for _, part := range parts {
		path := fieldPath(part.name)
		if name := path[0]; !slices.Contains(f.names, name) {
			f.names = append(f.names, name)
		}
		if path[0] == pictures && (len(path) == 1 || isItem(path[1])) && part.isFile() {
			f.pictures = append(f.pictures, picture{field: pictures, part: part.content})
			continue
		}
		value, err := part.value(keep, path)
		if err != nil {
			return openAIForm{}, err
		}
		if !child(&fields, path[0]).put(path[1:], value) {
			return openAIForm{}, mediagate.Invalid(path[0], "%s is given in two ways that exclude each other", part.name)
		}
		f.size += len(part.content)
	}
	slices.Sort(f.names)
	f.body = map[string]any{}
	for name, field := range fields {
		f.body[name] = field.value()
	}
	return f, nil
}

// order is the submit that the form makes, without its pictures.
func (f openAIForm) order(endpoint string) order {
	return order{
		endpoint: endpoint, body: f.body, size: f.size, digest: f.digest,
		translate: func(o *catalog.Operation, body map[string]any) (map[string]any, map[string]string, error) {
			names := slices.DeleteFunc(slices.Clone(f.names), func(name string) bool { return name == formatField && endpoint == imagesPath })
			return o.FromOpenAI(o.FromForm(body), names)
		},
	}
}

// formPart is a part of a form.
type formPart struct {
	name    string
	content []byte
	named   bool // it has the name of a file
}

// partsOf are the parts of a form, in its order. Only the items of a list, a[], may have
// the same name.
func partsOf(raw []byte, boundary string) ([]formPart, error) {
	broken := mediagate.Errorf(mediagate.KindInvalid, "the form %s", noForm)
	form := multipart.NewReader(bytes.NewReader(raw), boundary)
	var parts []formPart
	seen := map[string]bool{}
	for range formParts {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			return parts, nil
		}
		if err != nil {
			return nil, broken
		}
		name := part.FormName()
		if name == "" || seen[name] && !strings.Contains(name, "[]") {
			return nil, mediagate.Invalid(name, "each part of the form has a name, and each name one part, but for the items of a list: name[]")
		}
		seen[name] = true
		content, err := io.ReadAll(part)
		if err != nil {
			return nil, broken
		}
		parts = append(parts, formPart{name: name, content: content, named: part.FileName() != ""})
	}
	return nil, mediagate.Errorf(mediagate.KindInvalid, "the form has more than %d parts", formParts)
}

// digestOf is that of what the parts of a form say. Clients draw the boundary anew each
// time: the same request is one whose parts say the same. Of the parts of one field the order
// counts, as it is that of a list.
func digestOf(parts []formPart) (digest [sha256.Size]byte) {
	sum := sha256.New()
	sorted := slices.SortedStableFunc(slices.Values(parts), func(a, b formPart) int { return cmp.Compare(fieldPath(a.name)[0], fieldPath(b.name)[0]) })
	for _, part := range sorted {
		for _, text := range [][]byte{[]byte(part.name), part.content} {
			_ = binary.Write(sum, binary.BigEndian, int64(len(text))) // a hash does not fail
			_, _ = sum.Write(text)
		}
	}
	sum.Sum(digest[:0])
	return digest
}

// isFile reports a part that holds a file, with a name or without one: then its bytes say
// so.
func (p formPart) isFile() bool {
	return p.named || p.isPicture() || !storable(string(p.content))
}

func (p formPart) isPicture() bool {
	_, ok := imagefile.Detect(p.content[:min(len(p.content), imagefile.SniffLen)])
	return ok
}

// value is the text of a part, or what it says in JSON where a list or an object may stand.
func (p formPart) value(keep *catalog.Outline, path []string) (any, error) {
	text := string(p.content)
	if p.isPicture() || p.named && !storable(text) {
		return nil, mediagate.Invalid(path[0], "%s takes no file", path[0]).Because(mediagate.ReasonWrongType)
	}
	if !storable(p.name) || !storable(text) {
		return nil, mediagate.Errorf(mediagate.KindInvalid, "a part of the form is not valid UTF-8, or holds U+0000")
	}
	keep = keep.Field(path[0])
	for _, step := range path[1:] {
		if isItem(step) {
			keep = keep.At(0)
		} else {
			keep = keep.Field(step)
		}
	}
	trimmed := strings.TrimSpace(text)
	if keep == nil || !keep.Whole && keep.Fields == nil && keep.Item == nil || !strings.HasPrefix(trimmed, "[") && !strings.HasPrefix(trimmed, "{") {
		return text, nil
	}
	if len(text) > bodyLimit {
		return nil, mediagate.Errorf(mediagate.KindTooLarge, "%s must be at most %d bytes", path[0], bodyLimit)
	}
	json := parser{decoder: jsontext.NewDecoder(bytes.NewBufferString(trimmed))}
	value, err := json.value(keep)
	if _, end := json.decoder.ReadToken(); err != nil || !errors.Is(end, io.EOF) {
		return nil, mediagate.Invalid(path[0], "%s is no acceptable JSON", p.name).Because(mediagate.ReasonInvalidJSON)
	}
	return value, nil
}

// fieldPath takes the name of a part apart: a[b][0] is the first item of b in a, and a[]
// the next item of a. A name of another form is a field's own.
func fieldPath(name string) []string {
	field, rest, nested := strings.Cut(name, "[")
	inner, closed := strings.CutSuffix(rest, "]")
	if !nested || !closed || field == "" {
		return []string{name}
	}
	steps := strings.Split(inner, "][")
	if len(steps) > maxDepth || strings.ContainsAny(strings.Join(steps, ""), "[]") {
		return []string{name}
	}
	return append([]string{field}, steps...)
}

// isItem reports a step that leads to an item of a list: the next one, or one by its place.
func isItem(step string) bool {
	_, err := strconv.ParseUint(step, 10, 16)
	return step == "" || err == nil
}

// formNode is a value that is put together from the parts of a form.
type formNode struct {
	whole  any                  // what a part says of it
	set    bool                 // a part says so
	fields map[string]*formNode // of an object
	items  map[int]*formNode    // of a list, by their places
	next   int                  // place of the next item
}

// put adds what a part says. It reports false where another part says something else of the
// same value.
func (n *formNode) put(path []string, value any) bool {
	if len(path) == 0 {
		fresh := !n.set && n.fields == nil && n.items == nil
		n.whole, n.set = value, true
		return fresh
	}
	step, rest := path[0], path[1:]
	switch {
	case n.set, isItem(step) && n.fields != nil, !isItem(step) && n.items != nil:
		return false
	case !isItem(step):
		return child(&n.fields, step).put(rest, value)
	}
	place, err := strconv.Atoi(step)
	if err != nil { // a[]: the next item, or one more value within the last, if that is an object
		place = n.next
		if last := n.items[place-1]; last != nil && last.fields != nil && last.takes(rest) {
			place--
		}
	}
	n.next = max(n.next, place+1)
	return child(&n.items, place).put(rest, value)
}

// takes reports whether the value has room for what the path names: a field that it lacks, or
// one more item of a list in it.
func (n *formNode) takes(path []string) bool {
	switch {
	case n == nil:
		return true
	case n.set, len(path) == 0:
		return false
	case isItem(path[0]):
		return n.items != nil && (path[0] == "" || n.items[placeOf(path[0])].takes(path[1:]))
	default:
		return n.fields != nil && n.fields[path[0]].takes(path[1:])
	}
}

// placeOf is the place that an item's step names.
func placeOf(step string) int {
	place, _ := strconv.Atoi(step)
	return place
}

// child is the node of a key, which it makes.
func child[K comparable](nodes *map[K]*formNode, key K) *formNode {
	if *nodes == nil {
		*nodes = map[K]*formNode{}
	}
	if (*nodes)[key] == nil {
		(*nodes)[key] = &formNode{}
	}
	return (*nodes)[key]
}

// value is the value as JSON would have it.
func (n *formNode) value() any {
	switch {
	case n.fields != nil:
		fields := make(map[string]any, len(n.fields))
		for name, field := range n.fields {
			fields[name] = field.value()
		}
		return fields
	case n.items != nil:
		items := make([]any, 0, len(n.items))
		for _, place := range slices.Sorted(maps.Keys(n.items)) {
			items = append(items, n.items[place].value())
		}
		return items
	default:
		return n.whole
	}
}
