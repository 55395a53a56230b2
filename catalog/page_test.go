package catalog

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/mediagate/mediagate"
)

// Page is the documentation of a model, from its file alone.
func (m *Model) Page() (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n", m.ID)
	fmt.Fprintf(&b, "%s\n\n", m.Description)
	facts, _ := m.Type.Facts()
	b.WriteString("Made from the model's file by `make generate`")
	if facts.Operation != "" {
		fmt.Fprintf(&b, "; the same is served at `/v1/models/%s/schema`", m.ID)
	}
	b.WriteString(".\n\n")
	fmt.Fprintf(&b, "| type | capabilities | aliases |\n|---|---|---|\n| %s | %s | %s |\n", m.Type, strings.Join(m.Tags, ", "), codes(m.Aliases, ","))
	for _, o := range m.operations {
		rules, err := o.rulesInWords()
		if err != nil {
			return "", fmt.Errorf("%s: %w", m.ID, err)
		}
		prices, err := o.pricesInWords()
		if err != nil {
			return "", fmt.Errorf("%s: %w", m.ID, err)
		}
		example, err := o.example()
		if err != nil {
			return "", fmt.Errorf("%s: %w", m.ID, err)
		}
		fmt.Fprintf(&b, "\n## POST %s\n\n%s", o.Endpoint, o.fieldTable())
		if len(rules) > 0 {
			fmt.Fprintf(&b, "\n### Rules\n\n- %s\n", strings.Join(rules, "\n- "))
		}
		save := ""
		if !facts.Task {
			save = "-o answer "
		}
		fmt.Fprintf(&b, "\n### Price\n\n%s\n### Example\n\n```sh run\ncurl -fsS %s\"$MEDIAGATE_URL%s\" -H \"Authorization: Bearer $MEDIAGATE_API_KEY\" -d '%s'\n```\n",
			prices, save, o.Endpoint, strings.ReplaceAll(example, "'", `'\''`))
	}
	if facts.Task {
		b.WriteString("\nThe answer names the task; [the API notes](../api.md) tell how to read it.\n")
	} else {
		b.WriteString("\nThe answer is the file itself; [the API notes](../api.md#speech) tell what becomes of one that breaks.\n")
	}
	return b.String(), nil
}

func codes(words []string, last string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = "`" + word + "`"
	}
	if last == "," {
		return strings.Join(quoted, ", ")
	}
	return list(quoted, last)
}

// expand is a schema and all that judge the same value, from the general to the
// particular. Of branches those count that state a type.
func expand(doc yaml.MapSlice, node any) layers {
	at := withRefs(doc, node, 0)
	all := slices.Clone(at)
	for _, layer := range at {
		for _, branch := range branchesOf(layer) {
			if more := expand(doc, branch); slices.ContainsFunc(more, func(l any) bool { return child(l, "type") != nil }) {
				all = append(all, more...)
			}
		}
	}
	return all
}

func branchesOf(node any) []any {
	var branches []any
	for _, key := range []string{"then", "else"} {
		if branch := child(node, key); branch != nil {
			branches = append(branches, branch)
		}
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		more, _ := child(node, key).([]any)
		branches = append(branches, more...)
	}
	return branches
}

// described is a field with all that the schema says of it.
type described struct {
	name     string
	nodes    []any
	required bool
}

// fieldsOf are the fields of an object, those of its branches too.
func fieldsOf(doc yaml.MapSlice, node any, certain bool, into []described) []described {
	for _, layer := range withRefs(doc, node, 0) {
		required := stringsOf(child(layer, "required"))
		fields, _ := child(layer, "properties").(yaml.MapSlice)
		for _, entry := range fields {
			if part, ok := entry.Value.(yaml.MapSlice); !ok || refusesAll(part) {
				continue
			}
			name := fmt.Sprint(entry.Key)
			i := slices.IndexFunc(into, func(f described) bool { return f.name == name })
			if i < 0 {
				into = append(into, described{name: name})
				i = len(into) - 1
			}
			into[i].nodes = append(into[i].nodes, entry.Value)
			into[i].required = into[i].required || certain && slices.Contains(required, name)
		}
		for _, branch := range branchesOf(layer) {
			into = fieldsOf(doc, branch, false, into)
		}
	}
	return into
}

// layers are the field's, without the branches that only narrow it.
func (f described) layers(doc yaml.MapSlice) layers {
	var all layers
	for i, node := range f.nodes {
		more := expand(doc, node)
		if i == 0 || slices.ContainsFunc(more, func(l any) bool { return child(l, "type") != nil }) {
			all = append(all, more...)
		}
	}
	return all
}

// say is what the field's own words have under a key.
func (f described) say(doc yaml.MapSlice, key string) any {
	for _, node := range f.nodes { // its own words before those of what it refers to
		if v := child(node, key); v != nil {
			return v
		}
	}
	for _, layer := range f.layers(doc) {
		if v := child(layer, key); v != nil {
			return v
		}
	}
	return nil
}

func (o *Operation) fieldTable() string {
	var b strings.Builder
	b.WriteString("| field | takes | default | group | what it is |\n|---|---|---|---|---|\n")
	doc := o.schema.doc
	var rows func(path string, node any)
	rows = func(path string, node any) {
		for _, f := range fieldsOf(doc, node, true, nil) {
			name := path + f.name
			at := f.layers(doc)
			takes := []string{takesText(doc, at)}
			if f.required {
				takes = append([]string{"**required**"}, takes...)
			}
			if unit, ok := f.say(doc, "x-unit").(string); ok && unit != "characters" {
				takes = append(takes, unit)
			}
			if media, ok := f.say(doc, "x-media").(yaml.MapSlice); ok {
				takes = append(takes, mediaText(media))
			}
			what := fmt.Sprintf("**%v.** %v", f.say(doc, "title"), f.say(doc, "description"))
			group, _ := f.say(doc, "x-group").(string)
			fallback := ""
			if v := f.say(doc, "default"); v != nil {
				fallback = fmt.Sprintf("`%v`", v)
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", name, strings.Join(takes, "; "), fallback, group, strings.ReplaceAll(what, "|", `\|`))
			rows(name+".", merged(at))
			for _, items := range itemsOf(at) {
				var fields yaml.MapSlice
				for _, layer := range expand(doc, items) {
					if child(layer, "x-value") == nil { // its text tells both forms
						fields = append(fields, yaml.MapItem{Key: "allOf", Value: []any{layer}})
					}
				}
				rows(name+"[].", onlyAllOf(fields))
			}
		}
	}
	rows("", doc)
	return b.String()
}

// merged is a schema of all layers, whose fields are theirs.
func merged(at layers) yaml.MapSlice {
	var fields yaml.MapSlice
	for _, layer := range at {
		if child(layer, "properties") != nil && child(layer, "x-value") == nil {
			fields = append(fields, yaml.MapItem{Key: "allOf", Value: []any{layer}})
		}
	}
	return onlyAllOf(fields)
}

func onlyAllOf(entries yaml.MapSlice) yaml.MapSlice {
	if len(entries) == 1 {
		node, _ := entries[0].Value.([]any)
		if only, ok := node[0].(yaml.MapSlice); ok {
			return only
		}
	}
	var all []any
	for _, entry := range entries {
		branches, _ := entry.Value.([]any)
		all = append(all, branches...)
	}
	return yaml.MapSlice{{Key: "allOf", Value: all}}
}

func itemsOf(at layers) []any {
	var all []any
	for _, layer := range at {
		if items := child(layer, "items"); items != nil && !isEmptySchema(items) {
			all = append(all, items)
		}
		first, _ := child(layer, "prefixItems").([]any)
		all = append(all, first...)
	}
	return all
}

// takesText says what values a field takes.
func takesText(doc yaml.MapSlice, at layers) string {
	r := ruleOf(at)
	text := strings.TrimPrefix(r.text(), "must be ")
	add := func(more string) {
		if !strings.Contains(text, more) {
			text += more
		}
	}
	for _, layer := range at {
		if field := child(layer, "x-value"); field != nil {
			add(fmt.Sprintf(", or an object that has it as `%v`", field))
		}
	}
	for _, items := range itemsOf(at) {
		within := expand(doc, items)
		item := ruleOf(within)
		if item.is("object") {
			add(", each an object")
			continue
		}
		add(", each " + strings.TrimPrefix(item.text(), "must be "))
		for _, layer := range within {
			if field := child(layer, "x-value"); field != nil {
				add(fmt.Sprintf(", or an object that has it as `%v`", field))
			}
		}
	}
	return text
}

// mediaText says what files a field takes.
func mediaText(media yaml.MapSlice) string {
	var parts []string
	say := func(format string, keys ...string) {
		var values []any
		for _, key := range keys {
			v := child(media, key)
			if v == nil {
				return
			}
			if words, ok := v.([]any); ok {
				v = list(stringsOf(words), "or")
			}
			values = append(values, v)
		}
		parts = append(parts, fmt.Sprintf(format, values...))
	}
	either := func(both, least, most, low, high string) {
		switch {
		case child(media, low) != nil && child(media, high) != nil:
			say(both, low, high)
		default:
			say(least, low)
			say(most, high)
		}
	}
	say("%v", "kind")
	say("%v", "formats")
	either("sides of %v to %v pixels", "sides of at least %v pixels", "sides of at most %v pixels", "min_side", "max_side")
	either("ratio %v to %v", "ratio at least %v", "ratio at most %v", "min_ratio", "max_ratio")
	either("%v to %v s", "at least %v s", "at most %v s", "min_seconds", "max_seconds")
	say("at most %v", "max_bytes")
	say("at least as long as `%v` asks for", "covers")
	switch n := child(media, "first"); {
	case n == nil:
	case fmt.Sprint(n) == "1":
		parts = append(parts, "only the first is looked at")
	default:
		say("only the first %v are looked at", "first")
	}
	return strings.Join(parts, ", ")
}

// rulesInWords are what no single field says.
func (o *Operation) rulesInWords() ([]string, error) {
	w := &ruleWriter{doc: o.schema.doc, told: map[string]bool{}}
	w.walk("", o.schema.doc, nil)
	if w.err != nil {
		return nil, w.err
	}
	for _, r := range o.ignored {
		if len(r.with) > 0 {
			w.add("%s %s ignored beside %s.", codes(r.fields, "and"), areOrIs(r.fields), codes(r.with, "or"))
		}
		for _, name := range slices.Sorted(maps.Keys(r.unless)) {
			w.add("%s %s ignored unless `%s` is `%v`.", codes(r.fields, "and"), areOrIs(r.fields), name, r.unless[name])
		}
	}
	for _, c := range o.checks {
		text, err := c.inWords()
		if err != nil {
			return nil, err
		}
		w.add("%s", text)
	}
	return w.rules, nil
}

func areOrIs(names []string) string {
	if len(names) == 1 {
		return "is"
	}
	return "are"
}

// inWords is the sentence of a check.
func (c namedCheck) inWords() (string, error) {
	var args struct {
		List, Total, Item, Text, Word, Field string
		Lists, Values                        []string
		With, Fields                         names
		Min, Max                             int
		MaxWith                              int `yaml:"max_with"`
	}
	if err := yaml.Unmarshal(c.args, &args); err != nil {
		return "", fmt.Errorf("%s: %w", c.name, err)
	}
	var texts []string
	switch c.name {
	case "shots":
		return fmt.Sprintf("The indexes of `%s` are 1 to n, once each; the durations add up to `%s`.", args.List, args.Total), nil
	case "together":
		text := fmt.Sprintf("%s hold at most %d items together", codes(args.Lists, "and"), args.Max)
		if len(args.With) > 0 {
			text += fmt.Sprintf(", %d when `%s` is given", args.MaxWith, args.With[0])
		}
		return text + ".", nil
	case "references":
		return fmt.Sprintf("Each `<<<%s_N>>>` in `%s` leads to an item of `%s`, N from 1.", args.Word, args.Text, args.List), nil
	case "needs":
		return fmt.Sprintf("`%s` is only possible together with %s.", args.Field, codes(args.With, "or")), nil
	case "excludes":
		return fmt.Sprintf("%s %s not possible together with %s.", codes(args.Fields, "and"), areOrIs(args.Fields), codes(args.With, "or")), nil
	case "distinct":
		return fmt.Sprintf("No two items of `%s` have the same `%s`.", args.List, args.Item), nil
	case "between":
		return fmt.Sprintf("`%s` is %d to %d.", args.Field, args.Min, args.Max), nil
	case "ascending":
		for i := 1; i < len(args.Fields); i++ {
			texts = append(texts, fmt.Sprintf("`%s` must be greater than `%s`", args.Fields[i], args.Fields[i-1]))
		}
		return strings.Join(texts, ", ") + ".", nil
	case "among":
		return fmt.Sprintf("`%s` is %s.", args.Field, codes(args.Values, "or")), nil
	case "plain":
		return fmt.Sprintf("%s: no `--` or em dash directly before a word, no `{` or `}`, and no whitespace other than space and newline before a dash.", codes(args.Fields, "and")), nil
	case "addresses":
		return fmt.Sprintf("%s: a URL within keeps the rules of media URLs.", codes(args.Fields, "and")), nil
	default:
		return "", fmt.Errorf("no words for the check %s", c.name)
	}
}

// ruleWriter finds the rules of a schema that hold on a condition.
type ruleWriter struct {
	doc   yaml.MapSlice
	rules []string
	told  map[string]bool // fields whose own text tells when they must be there
	err   error
}

func (w *ruleWriter) add(format string, args ...any) {
	if rule := fmt.Sprintf(format, args...); !slices.Contains(w.rules, rule) {
		w.rules = append(w.rules, rule)
	}
}

func (w *ruleWriter) walk(path string, node any, conditions []string) {
	if ref, ok := child(node, "$ref").(string); ok {
		target, err := resolve(w.doc, ref)
		if err != nil {
			w.err = err
			return
		}
		w.walk(path, target, conditions)
	}
	if child(node, "x-value") != nil { // the field tells both forms
		return
	}
	w.demands(path, node, conditions)
	fields, _ := child(node, "properties").(yaml.MapSlice)
	for _, entry := range fields {
		name := fmt.Sprintf("%s%v", path, entry.Key)
		words, told := child(entry.Value, "x-rule").(string)
		part, _ := entry.Value.(yaml.MapSlice)
		w.told[name] = w.told[name] || told
		switch refused := entry.Value == false || refusesAll(part); {
		case told && (refused || len(conditions) > 0 && child(part, "type") == nil):
			w.add("`%s` %s.", name, words)
			continue
		case refused && len(conditions) > 0 && !w.told[name]:
			w.add("`%s` is not possible when %s.", name, strings.Join(conditions, " and "))
			continue
		}
		w.walk(name+".", entry.Value, nil)
	}
	for _, items := range itemsOf(layers{node}) {
		w.walk(strings.TrimSuffix(path, ".")+"[].", items, nil)
	}
	all, _ := child(node, "allOf").([]any)
	for _, part := range all {
		w.walk(path, part, conditions)
	}
	if condition := child(node, "if"); condition != nil {
		for _, key := range []string{"then", "else"} {
			branch := child(node, key)
			if branch == nil {
				continue
			}
			if words, ok := conditionText(path, condition, key == "then"); ok {
				w.walk(path, branch, append(less(conditions, words), words))
			} else { // of the value's type: its fields are its fields
				w.walk(path, branch, conditions)
			}
		}
	}
}

// less are the conditions without those that say what a field is not, where the
// next one says what it is.
func less(conditions []string, next string) []string {
	field, _, is := strings.Cut(next, " is `")
	return slices.DeleteFunc(slices.Clone(conditions), func(c string) bool { return is && strings.HasPrefix(c, field+" is not ") })
}

// demands are the fields that must be there.
func (w *ruleWriter) demands(path string, node any, conditions []string) {
	if required := child(node, "required"); required != nil && len(conditions) > 0 {
		for _, name := range stringsOf(required) {
			words := child(child(child(node, "properties"), name), "x-rule")
			if words == nil && !w.told[path+name] {
				w.add("Where %s, `%s%s` has to be given.", strings.Join(conditions, " and "), path, name)
			}
		}
	}
	branches, _ := child(node, "anyOf").([]any)
	var names []string
	for _, branch := range branches {
		if required := child(branch, "required"); required != nil {
			names = append(names, stringsOf(required)...)
		}
	}
	if len(names) > 0 {
		w.add("Without %s there is nothing to make: give one or more of them.", codes(names, "or"))
	}
}

// conditionText says when a condition holds, or does not.
func conditionText(path string, node any, holds bool) (string, bool) {
	is, given := " is ", " is given"
	if !holds {
		is, given = " is not ", " is missing"
	}
	var parts []string
	fields, _ := child(node, "properties").(yaml.MapSlice)
	for _, entry := range fields {
		values, ok := child(entry.Value, "enum").([]any)
		if constant := child(entry.Value, "const"); constant != nil {
			values, ok = []any{constant}, true
		}
		if !ok {
			return "", false
		}
		parts = append(parts, fmt.Sprintf("`%s%v`%s%s", path, entry.Key, is, codes(stringsOf(values), "or")))
	}
	if len(parts) == 0 {
		if required := child(node, "required"); required != nil {
			for _, name := range stringsOf(required) {
				parts = append(parts, "`"+path+name+"`"+given)
			}
		}
	}
	branches, _ := child(node, "anyOf").([]any)
	var either []string
	for _, branch := range branches {
		if text, ok := conditionText(path, branch, holds); ok {
			either = append(either, text)
		}
	}
	if len(either) > 0 {
		word := "or"
		if !holds {
			word = "and"
		}
		parts = append(parts, list(either, word))
	}
	return strings.Join(parts, " and "), len(parts) > 0
}

// pricesInWords is the table of prices, and what counts.
func (o *Operation) pricesInWords() (string, error) {
	p, err := o.Pricing()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Charged by the %s", p.Unit)
	if len(p.Quantity) > 0 {
		fmt.Fprintf(&b, "; a quote counts %s", codes(p.Quantity, "×"))
	}
	if o.price.zero > 0 {
		fmt.Fprintf(&b, ", 0 as %d", o.price.zero)
	}
	for _, hold := range p.Holds {
		fmt.Fprintf(&b, ", ")
		if hold.Least > 0 {
			fmt.Fprintf(&b, "at least %d", hold.Least)
		} else {
			fmt.Fprintf(&b, "%d more", hold.More)
		}
		fmt.Fprintf(&b, " with `%s`", hold.Given)
		for _, name := range slices.Sorted(maps.Keys(hold.Where)) {
			fmt.Fprintf(&b, " whose `%s` is `%v`", name, hold.Where[name])
		}
	}
	b.WriteString(". Amounts are US dollars, unless the operator has set another currency.\n\n")
	by := o.price.table.by
	columns := append(slices.Clone(by), "price "+each(p.Unit))
	fmt.Fprintf(&b, "| %s |\n|%s\n", strings.Join(columns, " | "), strings.Repeat("---|", len(columns)))
	for _, row := range p.Rows {
		b.WriteString("|")
		for _, field := range by {
			fmt.Fprintf(&b, " `%v` |", row.When[field])
		}
		fmt.Fprintf(&b, " %s |\n", row.Charge.UnitPrice)
	}
	return b.String(), nil
}

// each is the unit with the article before it.
func each(unit mediagate.Unit) string {
	if strings.ContainsRune("aeiou", rune(unit[0])) {
		return "an " + string(unit)
	}
	return "a " + string(unit)
}

// oneOfSeveral are the fields that meet a demand for one or more of several,
// where neither the prompt nor what is required does.
func oneOfSeveral(doc yaml.MapSlice, fields []described) []string {
	branches, _ := child(doc, "anyOf").([]any)
	var first []string
	for _, branch := range branches {
		names := stringsOf(child(branch, "required"))
		missing := slices.ContainsFunc(names, func(name string) bool {
			return name != "prompt" && !slices.ContainsFunc(fields, func(f described) bool { return f.name == name && f.required })
		})
		if len(names) > 0 && !missing {
			return nil
		}
		if first == nil {
			first = names
		}
	}
	return first
}

// example is a request that needs nothing but what the schema shows: what is
// required and the prompt, by their examples, and what the output is to be, by
// its defaults.
func (o *Operation) example() (string, error) {
	var b strings.Builder
	b.WriteString("{")
	add := func(name string, value any) error {
		text, err := plainJSON(jsonValue(value))
		if err != nil {
			return err
		}
		if b.Len() > 1 {
			b.WriteString(",")
		}
		fmt.Fprintf(&b, "\n  %q: %s", name, text)
		return nil
	}
	if err := add("model", o.Model.ID); err != nil {
		return "", err
	}
	fields := fieldsOf(o.schema.doc, o.schema.doc, true, nil)
	either := oneOfSeveral(o.schema.doc, fields)
	for _, f := range fields {
		examples, _ := f.say(o.schema.doc, "examples").([]any)
		fallback := f.say(o.schema.doc, "default")
		var value any
		switch {
		case f.name == "model":
			continue
		case f.name == "prompt" || f.required || slices.Contains(either, f.name):
			if len(examples) == 0 {
				return "", fmt.Errorf("%s has no example", f.name)
			}
			value = examples[0]
		case fallback != nil && f.say(o.schema.doc, "x-group") == "output":
			value = fallback
		default:
			continue
		}
		if err := add(f.name, value); err != nil {
			return "", err
		}
	}
	b.WriteString("\n}")
	var body map[string]any
	decoder := json.NewDecoder(strings.NewReader(b.String()))
	decoder.UseNumber()
	if err := decoder.Decode(&body); err != nil {
		return "", fmt.Errorf("the example is no JSON: %s", b.String())
	}
	if _, err := o.Accept(body); err != nil {
		return "", fmt.Errorf("the example for %s is refused: %w", o.Endpoint, err)
	}
	return b.String(), nil
}
