package catalog_test

import (
	"fmt"
	"maps"
	"strings"
)

// joined merges several sets of cases.
func joined[V any](sets ...map[string]V) map[string]V {
	all := map[string]V{}
	for _, set := range sets {
		maps.Copy(all, set)
	}
	return all
}

// urlOf returns a media URL of n characters.
func urlOf(n int) string {
	const start = "https://media.example.com/"
	return `"` + start + strings.Repeat("a", n-len(start)) + `"`
}

// promptCases returns the cases of a required prompt, with or without a maximum length. Lengths
// count code points, not bytes or UTF-16 units.
func promptCases(bound int) map[string]fieldCase {
	cases := map[string]fieldCase{
		"prompt null":           {`"prompt":null`, "prompt", "is required"},
		"prompt empty":          {`"prompt":""`, "prompt", "is required"},
		"prompt of blanks":      {`"prompt":" \t\n"`, "prompt", "is required"},
		"prompt of wide blanks": {`"prompt":"\u3000\u3000"`, "prompt", "is required"},
		"prompt with a blank":   {`"prompt":"\u3000a"`, "", ""},
		"prompt of one":         {`"prompt":"a"`, "", ""},
		"prompt a number":       {`"prompt":5`, "prompt", "string"},
	}
	if bound == 0 {
		cases["prompt of any length"] = fieldCase{`"prompt":` + quoted("a", 30_000), "", ""}
		return cases
	}
	return joined(cases, lengthCases("prompt", fmt.Sprintf("1 to %d characters", bound), bound))
}

// integerCases returns values on both sides of an integer's bounds, and values of other types.
func integerCases(field string, low, high int64) map[string]fieldCase {
	rule := fmt.Sprintf("integer between %d and %d", low, high)
	return map[string]fieldCase{
		field + " too low":    {fmt.Sprintf(`%q:%d`, field, low-1), field, rule},
		field + " lowest":     {fmt.Sprintf(`%q:%d`, field, low), "", ""},
		field + " highest":    {fmt.Sprintf(`%q:%d`, field, high), "", ""},
		field + " too high":   {fmt.Sprintf(`%q:%d`, field, high+1), field, rule},
		field + " a fraction": {fmt.Sprintf(`%q:%d.5`, field, low), field, rule},
		field + " a text":     {fmt.Sprintf(`%q:"%d"`, field, low), field, "JSON number, not as a string"},
	}
}

// choiceCases returns the values of an enum, and one that is refused with the list of them.
func choiceCases(field, wrong string, values ...string) map[string]fieldCase {
	last := len(values) - 1
	rule := strings.Join(values[:last], ", ") + " or " + values[last]
	cases := map[string]fieldCase{field + " " + wrong: {fmt.Sprintf(`%q:%q`, field, wrong), field, rule}}
	for _, value := range values {
		cases[field+" "+value] = fieldCase{fmt.Sprintf(`%q:%q`, field, value), "", ""}
	}
	return cases
}

// switchCases returns the cases of a boolean.
func switchCases(field string) map[string]fieldCase {
	return map[string]fieldCase{
		field + " true":   {`"` + field + `":true`, "", ""},
		field + " false":  {`"` + field + `":false`, "", ""},
		field + " a text": {`"` + field + `":"true"`, field, "true or false"},
		field + " 1":      {`"` + field + `":1`, field, "true or false"},
	}
}

// lengthCases returns texts on both sides of a maximum length.
func lengthCases(field, rule string, bound int) map[string]fieldCase {
	cases := map[string]fieldCase{}
	for script, char := range map[string]string{"ASCII": "a", "CJK": "語", "emoji": "🦊"} {
		cases[fmt.Sprintf("%s of %d in %s", field, bound, script)] = fieldCase{`"` + field + `":` + quoted(char, bound), "", ""}
		cases[fmt.Sprintf("%s of %d in %s", field, bound+1, script)] = fieldCase{`"` + field + `":` + quoted(char, bound+1), field, rule}
	}
	return cases
}

// mediaCases returns the cases of a media URL. put writes the fields with a value at its place,
// which errors call param.
func mediaCases(param string, put func(value string) string) map[string]fieldCase {
	cases := map[string]fieldCase{}
	for name, tt := range map[string]struct{ value, rule string }{
		"https":          {`"https://media.example.com/a.png"`, ""},
		"http":           {`"http://media.example.com/a.png"`, ""},
		"HTTPS":          {`"HTTPS://media.example.com/a.png"`, ""},
		"public address": {`"http://8.8.8.8/a.png"`, ""},
		"of 2048":        {urlOf(2048), ""},
		"of 2049":        {urlOf(2049), "2048"},
		"null":           {`null`, "URL"},
		"empty":          {`""`, ""},
		"a number":       {`5`, "http or https URL of at most 2048 characters"},
		"a list":         {`["https://media.example.com/a.png"]`, "http or https URL of at most 2048 characters"},
		"relative":       {`"/a.png"`, "URL"},
		"ftp":            {`"ftp://media.example.com/a.png"`, ""},
		"file":           {`"file:///etc/passwd"`, ""},
		"data":           {`"data:image/png;base64,aGk="`, ""},
		"loopback":       {`"http://127.0.0.1/a.png"`, "is refused: "},
		"private":        {`"http://10.1.2.3/a.png"`, "is refused: "},
		"link-local":     {`"http://169.254.169.254/a"`, "is refused: "},
		"private, v6":    {`"http://[fd00::1]/a.png"`, "is refused: "},
	} {
		c := fieldCase{put(tt.value), param, tt.rule}
		switch name {
		case "https", "http", "HTTPS", "public address", "of 2048":
			c = fieldCase{fields: c.fields}
		case "null", "empty":
			if !strings.ContainsAny(param, "[.") { // a field of the body's own: absent
				c = fieldCase{fields: c.fields}
			}
		}
		cases[param+" "+name] = c
	}
	return cases
}

// listCases returns the cases of a list of media URLs, with the other fields that it needs.
func listCases(field, beside string) map[string]fieldCase {
	one := `"https://media.example.com/a.png"`
	return joined(
		mediaCases(field+"[0]", func(value string) string { return beside + `"` + field + `":[` + value + `]` }),
		map[string]fieldCase{
			field + " a text":         {beside + `"` + field + `":` + one, field, "array"},
			field + " an object":      {beside + `"` + field + `":{}`, field, "array"},
			field + " second wrong":   {beside + `"` + field + `":[` + one + `,"x"]`, field + "[1]", ""},
			field + " an object's":    {beside + `"` + field + `":[{"url":` + one + `}]`, field + "[0]", "URL"},
			field + " the same twice": {beside + `"` + field + `":[` + one + `,` + one + `]`, "", ""},
		})
}

// elementCases returns the cases of the subjects of a list.
func elementCases() map[string]fieldCase {
	subject := func(fields string) string { return `"element_list":[{` + fields + `}]` }
	text := func(field, value string) string {
		fields := map[string]string{"name": `"cat"`, "description": `"a cat"`, "element_input_urls": urls(2)}
		fields[field] = value
		return subject(fmt.Sprintf(`"name":%s,"description":%s,"element_input_urls":%s`, fields["name"], fields["description"], fields["element_input_urls"]))
	}
	first, named := named("cat", 2), "element_list[0]."
	cases := map[string]fieldCase{
		"element_list a text":     {`"element_list":"cat"`, "element_list", "array"},
		"four elements":           {`"element_list":` + elements(4), "element_list", "at most 3 items"},
		"an element as a text":    {`"element_list":["cat"]`, "element_list[0]", "must be an object"},
		"an element of both":      {subject(`"element_id":1,"name":"cat","description":"a cat","element_input_urls":` + urls(2)), named + "name", "absent where it is given"},
		"an id beside a name":     {subject(`"element_id":1,"name":"cat"`), named + "name", "absent where it is given"},
		"an id beside words":      {subject(`"element_id":1,"description":"a cat"`), named + "description", "absent where it is given"},
		"an id beside pictures":   {subject(`"element_id":1,"element_input_urls":` + urls(2)), named + "element_input_urls", "absent where it is given"},
		"an element of no name":   {subject(`"description":"a cat","element_input_urls":` + urls(2)), named + "name", "where element_id is missing"},
		"an element of no words":  {subject(`"name":"cat","element_input_urls":` + urls(2)), named + "description", "where element_id is missing"},
		"an element of no images": {subject(`"name":"cat","description":"a cat"`), named + "element_input_urls", "2 to 4 items"},
		"unknown element field":   {subject(`"element_id":1,"voice":{}`), "", ""},
		"element_id a text":       {subject(`"element_id":"1"`), named + "element_id", "JSON number"},
		"element_id 0":            {subject(`"element_id":0`), named + "element_id", "integer"},
		"element_id the largest":  {subject(`"element_id":9223372036854775807`), "", ""},
		"element_id beyond":       {subject(`"element_id":9223372036854775808`), named + "element_id", "integer"},
		"pictures a text":         {text("element_input_urls", `"https://media.example.com/1.png"`), named + "element_input_urls", "2 to 4 items"},
		"one picture":             {text("element_input_urls", urls(1)), named + "element_input_urls", "2 to 4 items"},
		"four pictures":           {text("element_input_urls", urls(4)), "", ""},
		"five pictures":           {text("element_input_urls", urls(5)), named + "element_input_urls", "2 to 4 items"},
		"a bad picture":           {text("element_input_urls", `["https://a.example.com","http://10.0.0.1/"]`), named + "element_input_urls[1]", ""},
		"a name twice":            {`"element_list":[` + first + `,{"element_id":1},` + first + `]`, "element_list[2].name", "must differ from element_list[0].name"},
		"a name twice but blanks": {`"element_list":[` + first + `,` + strings.Replace(first, "cat", " cat", 1) + `]`, "element_list[1].name", "must differ"},
		"a name in another case":  {`"element_list":[` + first + `,` + strings.Replace(first, "cat", "Cat", 1) + `]`, "", ""},
	}
	for _, field := range []string{"name", "description"} {
		maps.Copy(cases, map[string]fieldCase{
			"a subject's " + field + " of one":         {text(field, `"c"`), "", ""},
			"a subject's " + field + " empty":          {text(field, `""`), named + field, "not blank"},
			"a subject's " + field + " of blanks":      {text(field, `" \t"`), named + field, "not blank"},
			"a subject's " + field + " of wide blanks": {text(field, `" \u3000"`), named + field, "not blank"},
			"a subject's " + field + " a number":       {text(field, `1`), named + field, "string"},
		})
	}
	return cases
}
