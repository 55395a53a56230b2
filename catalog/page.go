package catalog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template"

	"github.com/goccy/go-yaml"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/catalog/price"
)

// Readers are those for whom pages are made.
type Readers struct {
	Currency string
	Factor   price.Factor        // of their prices
	Allowed  func(m *Model) bool // which models they may use; nil for all
}

// Pages returns the documentation of the models in Markdown, by file name: a page for each model,
// such as models/alpha-v3.md, and models/README.md, which lists them.
func (c *Catalog) Pages(r Readers) (map[string][]byte, error) {
	models := slices.DeleteFunc(c.Models(), func(m *Model) bool { return r.Allowed != nil && !r.Allowed(m) })
	pages := map[string][]byte{}
	var index bytes.Buffer
	if err := indexPage.Execute(&index, models); err != nil {
		return nil, err
	}
	pages["models/README.md"] = index.Bytes()
	for _, m := range models {
		if m.ID != m.Canonical {
			continue
		}
		page, err := m.page(r)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.ID, err)
		}
		pages["models/"+m.ID+".md"] = page
	}
	return pages, nil
}

var indexPage = template.Must(template.New("index").Funcs(pageFuncs).Parse(`# Models

A page for each: its fields and prices, and a request that works. ` + "`GET /v1/models?expand=parameters`" + ` serves the
same to programs.

| model | capabilities | what it makes |
|---|---|---|
{{range .}}| [{{.ID}}]({{.Canonical}}.md) | {{join .Tags}} | {{if eq .ID .Canonical}}{{cell .Description}}
{{- else}}the same as {{code .Canonical}}{{end}} |
{{end}}`))

// page returns the page of one model.
func (m *Model) page(r Readers) ([]byte, error) {
	data := pageData{Model: m, Currency: r.Currency}
	facts, _ := m.Type.Facts()
	data.MakesTask = facts.Task
	for _, o := range m.operations {
		pricing, err := o.Pricing()
		if err != nil {
			return nil, err
		}
		for i := range pricing.Rows {
			charge := &pricing.Rows[i].Charge
			charge.UnitPrice = r.Factor.Price(charge.UnitPrice)
		}
		shown := pageOperation{
			Operation: o, Fields: o.schema.shape.pageFields(""), Pricing: pricing, PricedBy: o.price.table.by,
		}
		if example := o.Example(); example != nil {
			var indented bytes.Buffer
			if err := json.Indent(&indented, example, "", "  "); err != nil {
				return nil, err
			}
			shown.Example = indented.String()
		}
		data.Operations = append(data.Operations, shown)
	}
	var page bytes.Buffer
	err := modelPage.Execute(&page, data)
	return page.Bytes(), err
}

// pageData is what modelPage shows.
type pageData struct {
	*Model
	Currency   string
	MakesTask  bool
	Operations []pageOperation
}

type pageOperation struct {
	*Operation
	Fields   []pageField
	Pricing  Pricing
	PricedBy []string // the fields that decide the price
	Example  string   // a request body; empty if the schema has too few examples
}

// pageField is a row of the table of fields.
type pageField struct {
	Path     string // such as multi_prompt[].index
	Takes    string
	Default  string // empty for none
	Title    string
	About    string
	Required bool
}

var pageFuncs = template.FuncMap{
	"join": func(words []string) string { return strings.Join(words, ", ") },
	"code": func(word any) string { return cell(fmt.Sprintf("`%v`", word)) },
	"codes": func(words []string, separator string) string {
		return "`" + strings.Join(words, "`"+separator+"`") + "`"
	},
	"cell":  cell,
	"quote": func(text string) string { return strings.ReplaceAll(text, "'", `'\''`) },
	"where": func(h Hold) string {
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(h.Where)) {
			parts = append(parts, fmt.Sprintf(" whose `%s` is `%v`", name, h.Where[name]))
		}
		return strings.Join(parts, " and")
	},
	"each": func(unit mediagate.Unit) string {
		if strings.ContainsRune("aeiou", rune(unit[0])) {
			return "an " + string(unit)
		}
		return "a " + string(unit)
	},
}

// cell writes a text as a cell of a table, which ends at a | or at a new line.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "\r", " ", "\n", " ").Replace(text)
}

var modelPage = template.Must(template.New("model").Funcs(pageFuncs).Parse(`# {{.ID}}

{{.Description}}

| type | capabilities | aliases |
|---|---|---|
| {{.Type}} | {{join .Tags}} | {{with .Aliases}}{{codes . ", "}}{{end}} |

{{if .MakesTask}}` + "`GET /v1/models/{{.ID}}/schema`" + ` serves the same to programs, with the rules between fields.
{{end}}{{range .Operations}}
## POST {{.Endpoint}}

| field | takes | default | what it is |
|---|---|---|---|
{{range .Fields}}| {{code .Path}} | {{if .Required}}**required**; {{end}}{{cell .Takes}} |
{{- with .Default}} {{code .}}{{end}} | **{{cell .Title}}.** {{cell .About}} |
{{end}}
### Price

Charged by the {{.Pricing.Unit}}
{{- with .Pricing.Quantity}}; a quote counts {{codes . " × "}}{{end}}
{{- with .Pricing.Zero}}, 0 as {{.}}{{end}}
{{- range .Pricing.Holds}}, {{if .Least}}at least {{.Least}}{{else}}{{.More}} more{{end}} with {{code .Given}}{{where .}}
{{- end}}. Amounts are in {{$.Currency}}; ` + "`POST /v1/quote`" + ` returns the price for your key.

| {{range .PricedBy}}{{.}} | {{end}}price {{each .Pricing.Unit}} |
|{{range .PricedBy}}---|{{end}}---|
{{$by := .PricedBy}}{{range $row := .Pricing.Rows}}|{{range $by}} {{code (index $row.When .)}} |{{end}} {{.Charge.UnitPrice}} |
{{end}}
{{- if .Example}}
### Example

` + "```sh run" + `
curl -fsS {{if not $.MakesTask}}-o answer {{end}}"$MEDIAGATE_URL{{.Endpoint}}" -H "Authorization: Bearer $MEDIAGATE_API_KEY" -d '
{{- quote .Example}}'
` + "```" + `
{{end}}{{end}}
{{if .MakesTask}}The answer names the task; [the API notes](../api.md) tell how to read it.
{{- else}}The answer is the file itself; [the API notes](../api.md#speech) tell what becomes of one that breaks.{{end}}
`))

// pageFields lists the fields of an object, each followed by the fields within it. A field in
// which an object stands for a value (x-value) has no rows for the object's fields.
func (s *shape) pageFields(path string) []pageField {
	var fields []pageField
	for _, name := range s.names {
		field := s.properties[name]
		if field.never {
			continue
		}
		row := pageField{
			Path: path + name, Takes: field.takesText(), Title: field.notes.title, About: field.notes.description,
			Required: s.demanded[name],
		}
		if field.hasFallback {
			row.Default = fmt.Sprint(field.fallback)
			switch field.fallback.(type) {
			case []any, map[string]any:
				text, err := json.Marshal(field.fallback)
				if err == nil {
					row.Default = string(text)
				}
			}
		}
		fields = append(fields, row)
		if field.standsFor == "" {
			fields = append(fields, field.pageFields(row.Path+".")...)
		}
		if field.items != nil && field.items.standsFor == "" {
			fields = append(fields, field.items.pageFields(row.Path+"[].")...)
		}
	}
	return fields
}

// takesText says what values the field takes, for example "an integer between 3 and 15; seconds".
func (s *shape) takesText() string {
	text := s.valueText()
	if s.items != nil && len(s.items.kinds) > 0 {
		text += ", each " + s.items.valueText()
	}
	if unit := s.notes.unit; unit != nil && *unit != "characters" { // the text names characters
		text += "; " + *unit
	}
	if s.notes.media != nil {
		text += "; " + s.notes.media.text()
	}
	return text
}

// valueText says what the value itself must be.
func (s *shape) valueText() string {
	if s.standsFor != "" {
		return fmt.Sprintf("%s, or an object that has it as `%s`", s.properties[s.standsFor].valueText(), s.standsFor)
	}
	r := rule{
		types: s.types, enum: s.enum, constant: s.constant, minimum: s.minimum, maximum: s.maximum,
		minLength: s.minLength, maxLength: s.maxLength, maxItems: s.maxItems,
	}
	if s.media {
		r.format = formatMediaURL
	}
	return strings.TrimPrefix(r.text(), "must be ")
}

// text says which files the rule accepts, for example "image, sides of at least 300 pixels".
func (r *mediaRule) text() string {
	b := r.bounds
	parts := []string{b.Kind}
	add := func(holds bool, format string, args ...any) {
		if holds {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	none := mediagate.Ratio{}
	add(len(b.Formats) > 0, "%s", list(b.Formats, "or"))
	add(b.MinSide > 0, "sides of at least %d pixels", b.MinSide)
	add(b.MaxSide > 0, "sides of at most %d pixels", b.MaxSide)
	add(b.MinRatio != none, "ratio at least %v", b.MinRatio)
	add(b.MaxRatio != none, "ratio at most %v", b.MaxRatio)
	add(b.MinSeconds > 0, "at least %v s", b.MinSeconds)
	add(b.MaxSeconds > 0, "at most %v s", b.MaxSeconds)
	add(b.MaxBytes > 0, "at most %d bytes", b.MaxBytes)
	add(r.covers != "", "at least as long as `%s` asks for", r.covers)
	add(r.first > 0, "only the first %d are checked", r.first)
	return strings.Join(parts, ", ")
}

// Example returns a small request body that the operation accepts. It has the required fields, the
// first alternative where one of several is required, and the prompt, each with its example. It
// is nil if the schema has no such example.
func (o *Operation) Example() json.RawMessage {
	doc := o.schema.doc
	required, _ := child(doc, "required").([]any)
	if either, _ := child(doc, "anyOf").([]any); len(either) > 0 {
		more, _ := child(either[0], "required").([]any)
		required = slices.Concat(required, more)
	}
	var body yaml.MapSlice
	for _, field := range append(slices.Clone(required), "prompt") {
		name := fmt.Sprint(field)
		property := child(child(doc, "properties"), name)
		if property == nil || indexOf(body, name) >= 0 {
			continue
		}
		value := exampleOf(property)
		if value == nil {
			return nil
		}
		body = append(body, yaml.MapItem{Key: name, Value: value})
	}
	text, err := appendJSON(nil, body)
	if err != nil {
		return nil
	}
	params, _ := jsonValue(body).(map[string]any)
	if _, err := o.Accept(params); err != nil {
		return nil
	}
	return text
}

// exampleOf returns a value for the field, or nil if its schema has none.
func exampleOf(property any) any {
	if v := child(property, "const"); v != nil {
		return v
	}
	if examples, _ := child(property, "examples").([]any); len(examples) > 0 {
		return examples[0]
	}
	if v := child(property, "default"); v != nil {
		return v
	}
	if values, _ := child(property, "enum").([]any); len(values) > 0 {
		return values[0]
	}
	return nil
}
