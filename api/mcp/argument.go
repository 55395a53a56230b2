package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mediagate/mediagate/client"
)

// argument is a named argument of a tool.
type argument struct {
	name        string
	kind        string // the JSON type
	required    bool
	most        int // the maximum of an integer; the minimum is 0
	description string
}

const (
	kindText    = "string"
	kindInteger = "integer"
	kindObject  = "object"
)

func (a argument) schema() map[string]any {
	schema := map[string]any{"type": a.kind, "description": a.description}
	if a.kind == kindInteger {
		schema["minimum"], schema["maximum"] = 0, a.most
	}
	return schema
}

// check parses the value. Its error names the argument and the broken rule.
func (a argument) check(value json.RawMessage) (any, error) {
	switch a.kind {
	case kindInteger:
		var number json.Number
		n, err := int64(0), json.Unmarshal(value, &number)
		if err == nil {
			n, err = number.Int64()
		}
		if err != nil || value[0] == '"' || n < 0 || n > int64(a.most) {
			return nil, fmt.Errorf("%s must be a whole number from 0 to %d", a.name, a.most)
		}
		return n, nil
	case kindObject:
		fields, err := object(value)
		if err != nil {
			return nil, fmt.Errorf("%s must be an object", a.name)
		}
		return fields, nil
	default:
		var text string
		if json.Unmarshal(value, &text) != nil {
			return nil, fmt.Errorf("%s must be a string", a.name)
		}
		return text, nil
	}
}

var errNoObject = errors.New("no object")

// object parses an object, or a string that holds one, as models often send. It leaves out
// members that are null, since models use null for optional arguments.
func object(value json.RawMessage) (map[string]json.RawMessage, error) {
	var text string
	if json.Unmarshal(value, &text) == nil && text != "" {
		value = json.RawMessage(text)
	}
	if value = bytes.TrimSpace(value); len(value) == 0 || string(value) == "null" {
		return nil, nil
	}
	var members map[string]json.RawMessage
	if value[0] != '{' || json.Unmarshal(value, &members) != nil {
		return nil, errNoObject
	}
	for name, member := range members {
		if string(member) == "null" {
			delete(members, name)
		}
	}
	return members, nil
}

// input holds the parsed arguments of a call by name: strings, int64, or the members of an
// object.
type input map[string]any

func (in input) text(name string) string {
	text, _ := in[name].(string)
	return text
}

func (in input) number(name string) int64 {
	n, _ := in[name].(int64)
	return n
}

// fields returns the members of an object. In fields that take a file, it replaces TASK and TASK#N,
// which name a task's file, with the file's address. All other values stay as they came. Its error
// names the field.
func (in input) fields(name string) (map[string]any, error) {
	fields := map[string]any{}
	members, _ := in[name].(map[string]json.RawMessage)
	for name, member := range members {
		decoder := json.NewDecoder(bytes.NewReader(member))
		decoder.UseNumber()
		var value any
		if err := decoder.Decode(&value); err != nil {
			return nil, fmt.Errorf("%s is not valid JSON", name)
		}
		var err error
		if fields[name], err = withAddresses(name, value); err != nil {
			return nil, err
		}
	}
	return fields, nil
}

// namesFile reports whether the field takes the address of a file, such as image_urls or
// first_frame_image. In other fields a task id stays as it is.
func namesFile(name string) bool {
	return strings.HasSuffix(name, "url") || strings.HasSuffix(name, "urls") || strings.HasSuffix(name, "image")
}

// withAddresses returns the value of a field with file addresses in place of TASK and TASK#N.
func withAddresses(name string, value any) (any, error) {
	var err error
	switch v := value.(type) {
	case string:
		if namesFile(name) {
			if value, err = client.ParseFile(v); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
	case []any:
		for i := range v {
			if v[i], err = withAddresses(name, v[i]); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for member := range v {
			if v[member], err = withAddresses(member, v[member]); err != nil {
				return nil, err
			}
		}
	}
	return value, nil
}

// readArguments parses the arguments of a call, since the SDK's own check would report Go types.
func readArguments(arguments []argument, raw json.RawMessage) (input, error) {
	members, err := object(raw)
	if err != nil {
		return nil, errors.New("the arguments must be an object")
	}
	in := input{}
	var names []string
	for _, a := range arguments {
		names = append(names, a.name)
		value, ok := members[a.name]
		if !ok && a.required {
			return nil, fmt.Errorf("%s is required", a.name)
		}
		if !ok {
			continue
		}
		if in[a.name], err = a.check(value); err != nil {
			return nil, err
		}
		if a.required && in[a.name] == "" {
			return nil, fmt.Errorf("%s must not be empty", a.name)
		}
	}
	for name := range members {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("%q is not an argument of this tool; its arguments are: %s", name, strings.Join(names, ", "))
		}
	}
	return in, nil
}

// tool answers a call. The caller sees the text of its error as the answer.
type tool func(ctx context.Context, call *sdk.CallToolRequest, in input) (*sdk.CallToolResult, error)

// add adds a tool to the server. It calls begin when the tool begins to answer.
func add(s *sdk.Server, begin Begin, t sdk.Tool, arguments []argument, call tool) {
	properties, required := map[string]any{}, []string{}
	for _, a := range arguments {
		properties[a.name] = a.schema()
		if a.required {
			required = append(required, a.name)
		}
	}
	t.InputSchema = map[string]any{
		"type": kindObject, "properties": properties, "required": required, "additionalProperties": false,
	}
	s.AddTool(&t, func(ctx context.Context, request *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		ctx, cancel := begin(ctx)
		defer cancel()
		in, err := readArguments(arguments, request.Params.Arguments)
		var result *sdk.CallToolResult
		if err == nil {
			result, err = call(ctx, request, in)
		}
		if err != nil {
			result = &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: err.Error()}}, IsError: true}
		}
		return result, nil
	})
}

// largestPicture bounds the pictures that upload takes, in bytes.
const largestPicture = 20 << 20

// readAll reads the picture in a call.
func readAll(data io.Reader) (io.Reader, error) {
	picture, err := io.ReadAll(io.LimitReader(data, largestPicture+1))
	switch {
	case err != nil:
		return nil, errors.New("data is not valid base64")
	case len(picture) > largestPicture:
		return nil, fmt.Errorf("data must be a picture of at most %d bytes", largestPicture)
	}
	return bytes.NewReader(picture), nil
}
