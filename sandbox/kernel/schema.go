package kernel

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// Schemas holds one vendor's JSON Schemas, by operation. A schema states which requests the
// vendor accepts. All others are refused.
type Schemas struct {
	compiled func() map[string]*jsonschema.Schema
}

// NewSchemas returns the schemas in the files schema/*.yaml. The first request compiles them. An
// invalid file panics, because the files are part of the program.
func NewSchemas(files fs.FS) *Schemas {
	return &Schemas{compiled: sync.OnceValue(func() map[string]*jsonschema.Schema {
		const base = "mem:///"
		c := jsonschema.NewCompiler()
		c.DefaultDraft(jsonschema.Draft2020)
		names := must(fs.Glob(files, "schema/*.yaml"))
		for _, name := range names {
			raw := must(yaml.YAMLToJSON(must(fs.ReadFile(files, name))))
			must(0, c.AddResource(base+name, must(jsonschema.UnmarshalJSON(bytes.NewReader(raw)))))
		}
		compiled := map[string]*jsonschema.Schema{}
		for _, name := range names {
			compiled[strings.TrimSuffix(path.Base(name), ".yaml")] = must(c.Compile(base + name))
		}
		return compiled
	})}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic("sandbox: schema: " + err.Error())
	}
	return value
}

// Violation is a rule of the vendor that a request breaks. Its text becomes part of the vendor's
// message.
type Violation struct {
	Field string // such as input.media[1].url; empty: the whole request
	Rule  string // keyword of the schema; empty: the rule is not in a schema
	text  string
}

// Error implements error.
func (v *Violation) Error() string {
	if v.Field == "" {
		return v.text
	}
	return v.Field + ": " + v.text
}

// NewViolation returns the violation of a rule that does not fit into a schema.
func NewViolation(field, format string, args ...any) error {
	return &Violation{Field: field, text: fmt.Sprintf(format, args...)}
}

// Body is the JSON object of a request. Its methods take the path of a field, such as
// settings.duration, and return the zero value if there is no such field. The schema has already
// checked the types.
type Body map[string]any

// ReadBody reads a request's body, which may have up to limit bytes.
func ReadBody(r *http.Request, limit int64) (Body, error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, errors.New("Content-Type must be application/json")
	}
	raw, err := io.ReadAll(io.LimitReader(r.Body, limit+1))
	if err != nil {
		return nil, errors.New("the body could not be read")
	}
	if int64(len(raw)) > limit {
		return nil, fmt.Errorf("the body is larger than %d bytes", limit)
	}
	if !utf8.Valid(raw) {
		return nil, errors.New("the body is not UTF-8")
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	body, object := value.(map[string]any)
	if err != nil || !object {
		return nil, errors.New("the body is not a JSON object")
	}
	return body, nil
}

func (b Body) at(path string) any {
	name, rest, deeper := strings.Cut(path, ".")
	if !deeper {
		return b[name]
	}
	inner, _ := b[name].(map[string]any)
	return Body(inner).at(rest)
}

// Text returns a string.
func (b Body) Text(path string) string {
	text, _ := b.at(path).(string)
	return text
}

// Number returns a number.
func (b Body) Number(path string) float64 {
	text, _ := b.at(path).(json.Number)
	n, _ := text.Float64()
	return n
}

// Int returns a whole number.
func (b Body) Int(path string) int { return int(b.Number(path)) }

// Flag returns a boolean, or the fallback if there is no such field.
func (b Body) Flag(path string, fallback bool) bool {
	if flag, ok := b.at(path).(bool); ok {
		return flag
	}
	return fallback
}

// List returns the objects of an array.
func (b Body) List(path string) (list []Body) {
	items, _ := b.at(path).([]any)
	for _, item := range items {
		object, _ := item.(map[string]any)
		list = append(list, object)
	}
	return list
}

// Texts returns the strings of an array.
func (b Body) Texts(path string) (list []string) {
	items, _ := b.at(path).([]any)
	for _, item := range items {
		text, _ := item.(string)
		list = append(list, text)
	}
	return list
}

// Check validates a body against the schema of an operation. Its error is a *Violation.
func (s *Schemas) Check(operation string, b Body) error {
	schema := s.compiled()[operation]
	if schema == nil {
		panic("sandbox: no schema of " + operation)
	}
	if verdict := new(jsonschema.ValidationError); errors.As(schema.Validate(map[string]any(b)), &verdict) {
		return firstViolation(verdict)
	}
	return nil
}

// Read reads a request's body and checks it against the schema of an operation.
func (s *Schemas) Read(r *http.Request, operation string, limit int64) (Body, error) {
	body, err := ReadBody(r, limit)
	if err == nil {
		err = s.Check(operation, body)
	}
	return body, err
}

// firstViolation returns the violation that a vendor reports. Unknown fields come first, then
// missing fields, then wrong values.
func firstViolation(verdict *jsonschema.ValidationError) *Violation {
	ranks := []string{"additionalProperties", "required"}
	rank := func(v *Violation) int {
		if at := slices.Index(ranks, v.Rule); at >= 0 {
			return at
		}
		return len(ranks)
	}
	return slices.MinFunc(violations(verdict), func(a, b *Violation) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(a.Field, b.Field), strings.Compare(a.Error(), b.Error()))
	})
}

// violations returns the violations at the leaves of a validation error.
func violations(verdict *jsonschema.ValidationError) []*Violation {
	var leaves []*Violation
	switch verdict.ErrorKind.(type) {
	case *kind.Contains, *kind.MinContains, *kind.MaxContains: // their causes are the items that do not match
	default:
		for _, cause := range verdict.Causes {
			leaves = append(leaves, violations(cause)...)
		}
	}
	if len(leaves) > 0 {
		return leaves
	}
	v := &Violation{}
	at := slices.Clone(verdict.InstanceLocation)
	if keyword := verdict.ErrorKind.KeywordPath(); len(keyword) > 0 {
		v.Rule = keyword[0]
	}
	switch k := verdict.ErrorKind.(type) {
	case *kind.Required:
		at, v.text = append(at, slices.Min(k.Missing)), "is required"
	case *kind.DependentRequired:
		at, v.Rule, v.text = append(at, slices.Min(k.Missing)), "required", "is required with "+k.Prop
	case *kind.AdditionalProperties:
		at, v.text = append(at, slices.Min(k.Properties)), "unknown field"
	case *kind.FalseSchema:
		v.Rule, v.text = "additionalProperties", "is not supported here"
	case *kind.Pattern: // leave out the value, which may be long
		v.text = "must match " + k.Want
	default:
		v.text = k.LocalizedString(message.NewPrinter(language.English))
	}
	for _, step := range at {
		switch _, err := strconv.Atoi(step); {
		case err == nil:
			v.Field += "[" + step + "]"
		case v.Field == "":
			v.Field = step
		default:
			v.Field += "." + step
		}
	}
	return []*Violation{v}
}

// IsLink reports whether the text is an http or https URL.
func IsLink(text string) bool {
	return strings.HasPrefix(text, "http://") || strings.HasPrefix(text, "https://")
}
