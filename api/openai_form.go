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

// OpenAI's clients may send forms. Each part of a form is a field of the body, or a piece of one:
// the parts a[b][0] and a[b][1] make the list b in the object a.

// openAIForm is a form, converted to the body that the same request would have in JSON.
type openAIForm struct {
	body     map[string]any // without the pictures
	pictures []picture      // in the order of the form
	names    []string       // the names of all fields, pictures included
	digest   [sha256.Size]byte
	size     int // of the texts, in bytes
}

// readParts reads a form whose pictures all belong to one field. The mask says which texts may be
// JSON: those of fields that a model takes as a list or an object.
func (s *Server) readParts(c *call, mask *catalog.FieldMask, pictures string) (f openAIForm, err error) {
	_, parameters, _ := mime.ParseMediaType(c.Request().Header.Get("Content-Type"))
	var raw []byte
	c.withoutTimeout(func() { raw, err = s.readLimited(c, min(c.route.bound, formLimit)) })
	if err == nil {
		err = s.reauthorize(c.ctx, c)
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
		value, err := part.value(mask, path)
		if err != nil {
			return openAIForm{}, err
		}
		if !child(&fields, path[0]).put(path[1:], value) {
			return openAIForm{}, mediagate.Invalid(
				path[0], "%s is given both as a whole and in parts: send one of them", part.name,
			)
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

// submitRequest returns the submit that the form makes, without its pictures.
func (f openAIForm) submitRequest(endpoint string) submitRequest {
	return submitRequest{
		endpoint: endpoint, body: f.body, size: f.size, digest: f.digest,
		translate: func(o *catalog.Operation, body map[string]any) (map[string]any, map[string]string, error) {
			names := slices.DeleteFunc(
				slices.Clone(f.names), func(name string) bool { return name == formatField && endpoint == imagesPath },
			)
			return o.FromOpenAI(o.FromForm(body), names)
		},
	}
}

// formPart is one part of a form: a text or a file.
type formPart struct {
	name    string
	content []byte
	named   bool // it has a file name
}

// partsOf splits a form into its parts. Only the items of a list, a[], may share a name.
func partsOf(raw []byte, boundary string) ([]formPart, error) {
	broken := mediagate.Errorf(mediagate.KindInvalid, "the form %s", malformedForm)
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
			return nil, mediagate.Invalid(
				name, "each part of the form must have a name of its own; only the items of a list, name[], share one",
			)
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

// digestOf returns the digest of a form's parts. Clients choose a new boundary each time, so two
// forms are the same request if their parts are the same. The order of parts counts only within a
// field, where it is the order of a list.
func digestOf(parts []formPart) (digest [sha256.Size]byte) {
	sum := sha256.New()
	sorted := slices.SortedStableFunc(
		slices.Values(parts), func(a, b formPart) int { return cmp.Compare(fieldPath(a.name)[0], fieldPath(b.name)[0]) },
	)
	for _, part := range sorted {
		for _, text := range [][]byte{[]byte(part.name), part.content} {
			_ = binary.Write(sum, binary.BigEndian, int64(len(text))) // a hash does not fail
			_, _ = sum.Write(text)
		}
	}
	sum.Sum(digest[:0])
	return digest
}

// isFile reports whether the part is a file: it has a file name, or its bytes are those of a picture
// or cannot be stored as a text.
func (p formPart) isFile() bool {
	return p.named || p.isPicture() || !storable(string(p.content))
}

func (p formPart) isPicture() bool {
	_, ok := imagefile.Detect(p.content[:min(len(p.content), imagefile.SniffLen)])
	return ok
}

// value returns the text of a part, or the parsed JSON if a list or an object may stand there.
func (p formPart) value(mask *catalog.FieldMask, path []string) (any, error) {
	text := string(p.content)
	if p.isPicture() || p.named && !storable(text) {
		return nil, mediagate.Invalid(path[0], "%s takes no file", path[0]).Because(mediagate.ReasonWrongType)
	}
	if !storable(p.name) || !storable(text) {
		return nil, mediagate.Errorf(mediagate.KindInvalid, "a part of the form is not valid UTF-8, or holds U+0000")
	}
	mask = mask.Field(path[0])
	for _, step := range path[1:] {
		if isItem(step) {
			mask = mask.At(0)
		} else {
			mask = mask.Field(step)
		}
	}
	trimmed := strings.TrimSpace(text)
	mayNest := mask != nil && (mask.Whole || mask.Fields != nil || mask.Item != nil)
	if !mayNest || !strings.HasPrefix(trimmed, "[") && !strings.HasPrefix(trimmed, "{") {
		return text, nil
	}
	if len(text) > bodyLimit {
		return nil, mediagate.Errorf(mediagate.KindTooLarge, "%s must be at most %d bytes", path[0], bodyLimit)
	}
	json := parser{decoder: jsontext.NewDecoder(bytes.NewBufferString(trimmed))}
	value, err := json.value(mask)
	if _, end := json.decoder.ReadToken(); err != nil || !errors.Is(end, io.EOF) {
		return nil, mediagate.Invalid(path[0], "%s is not valid JSON", p.name).Because(mediagate.ReasonInvalidJSON)
	}
	return value, nil
}

// fieldPath splits the name of a part: a[b][0] is the first item of b in a, and a[] the next item
// of a. A name of another form is a field's own name.
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

// isItem reports whether a step leads to an item of a list: to the next one, or to one by its
// index.
func isItem(step string) bool {
	_, err := strconv.ParseUint(step, 10, 16)
	return step == "" || err == nil
}

// formNode is a value that is assembled from the parts of a form.
type formNode struct {
	whole  any                  // the value, if one part has all of it
	set    bool                 // whole is set
	fields map[string]*formNode // if it is an object
	items  map[int]*formNode    // if it is a list, by index
	next   int                  // index of the next item
}

// put adds the value of a part. It reports false if another part contradicts it.
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
	if err != nil { // a[]: the next item, or the last one if it is an object that lacks the value
		place = n.next
		if last := n.items[place-1]; last != nil && last.fields != nil && last.takes(rest) {
			place--
		}
	}
	n.next = max(n.next, place+1)
	return child(&n.items, place).put(rest, value)
}

// takes reports whether the value has room at the path: the object lacks the field, or the list
// can get one more item.
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

// placeOf returns the index in an item's step.
func placeOf(step string) int {
	place, _ := strconv.Atoi(step)
	return place
}

// child returns the node of a key, and creates it if necessary.
func child[K comparable](nodes *map[K]*formNode, key K) *formNode {
	if *nodes == nil {
		*nodes = map[K]*formNode{}
	}
	if (*nodes)[key] == nil {
		(*nodes)[key] = &formNode{}
	}
	return (*nodes)[key]
}

// value returns the value as parsed JSON would be.
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
