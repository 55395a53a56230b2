package catalog_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mediagate/mediagate/catalog"
)

// noted is a model whose fields say all that a reader needs.
var noted = strings.NewReplacer(
	"type: music", "type: image",
	"prompt: {type: string, minLength: 1, maxLength: 10}",
	`prompt: {title: Prompt, type: string, minLength: 1, maxLength: 10, description: What it shows., examples: [a cat], x-unit: characters}`,
	"size: {type", "size: {title: Size, description: How large it is., x-group: output, type",
	"draft: {type", "draft: {title: Draft, description: Whether it may be poor., type",
	"n: {type", "n: {title: Images, description: How many., examples: [1, 4], type",
	"      required: [prompt]", `        look: {title: Looks, description: Images to refer to., type: array, items: {$ref: "#/$defs/mediaItem"}, examples: [["https://example.com/1.png"]], x-media: {kind: image}}
        parts:
          title: Parts
          description: What it is made of.
          type: array
          examples: [[{at: "https://example.com/1.png"}]]
          items:
            type: object
            properties:
              at: {title: Address, description: Where it is., $ref: "#/$defs/mediaURL", examples: ["https://example.com/1.png"], x-media: {kind: image}}
      required: [prompt]`,
).Replace(whole)

// TestAnnotations checks that each field, nested ones too, has the annotations that a reader of a
// contract needs.
func TestAnnotations(t *testing.T) {
	t.Parallel()
	if _, err := catalog.LoadAlone(dir(t, map[string]string{"omega.yaml": noted})); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ old, new, want string }{
		"no title":              {"title: Prompt, ", "", "properties.prompt: title is missing"},
		"a blank title":         {"title: Prompt, ", "title: ' ', ", "properties.prompt: title is missing"},
		"no description":        {"description: How large it is., ", "", "properties.size: description is missing"},
		"no examples":           {"examples: [1, 4], ", "", "properties.n: examples are missing"},
		"no list of examples":   {"examples: [1, 4], ", "examples: 4, ", "got number, want array"},
		"an example that fails": {"examples: [1, 4], ", "examples: [1, 5], ", "properties.n.examples[1] breaks"},
		"a default that fails":  {"default: s}", "default: xl}", "properties.size.default breaks"},
		"an unknown unit":       {"x-unit: characters", "x-unit: letters", "properties.prompt: x-unit must be seconds, characters or pixels"},
		"a group of two words":  {"x-group: output", "x-group: the output", "properties.size: x-group must be one word"},
		"media of no kind":      {", x-media: {kind: image}}\n        parts", ", x-media: {}}\n        parts", "properties.look: x-media.kind must be"},
		"media of an odd kind":  {", x-media: {kind: image}}\n        parts", ", x-media: {kind: film}}\n        parts", "properties.look: x-media.kind must be"},
		"media that are not":    {", x-media: {kind: image}}\n        parts", "}\n        parts", "properties.look: x-media is missing"},
		"within a list":         {"title: Address, ", "", "properties.parts.items.properties.at: title is missing"},
		"media within a list":   {`"], x-media: {kind: image}}` + "\n      required", `"]}` + "\n      required", "properties.parts.items.properties.at: x-media is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(noted, tt.old, tt.new, 1)
			if text == noted {
				t.Fatal("nothing was replaced")
			}
			_, err := catalog.LoadAlone(dir(t, map[string]string{"omega.yaml": text}))
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "catalog: omega.yaml: operations[/v1/images/generations]: schema: ") {
				t.Errorf("%v, want %s", err, tt.want)
			}
		})
	}
}

// TestExamplesOfEachField checks that each example of a field is accepted together with the
// required fields, unless a rule says that it needs others.
func TestExamplesOfEachField(t *testing.T) {
	t.Parallel()
	needs := map[string]string{ // what else a field wants, by its name
		"last_frame_image": `"first_frame_image":"https://example.com/first.png"`,
		"audio_urls":       `"image_urls":["https://example.com/1.png"]`,
		"multi_prompt":     `"multi_shot":true,"shot_type":"customize"`,
	}
	for _, o := range operations(t) {
		properties, _ := parse(t, string(o.Schema()))["properties"].(map[string]any)
		for name, field := range properties {
			examples, _ := field.(map[string]any)["examples"].([]any)
			for _, example := range examples {
				text, err := json.Marshal(map[string]any{name: example})
				if err != nil {
					t.Fatal(err)
				}
				fields := strings.TrimSuffix(strings.TrimPrefix(string(text), "{"), "}")
				if more := needs[name]; more != "" {
					fields += "," + more
				}
				if name == "prompt" && strings.Contains(fields, "image_1") {
					fields += `,"image_urls":["https://example.com/1.png"]`
				}
				if _, err := o.Accept(parse(t, body(t, o.key, fields))); err != nil {
					t.Errorf("%s: %s: %v", o.key, fields, err)
				}
			}
		}
	}
}
