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

// argument is what a tool takes by a name.
type argument struct {
	name     string
	kind     string // of JSON
	required bool
	most     int // of an integer, which is at least 0
	says     string
}

const (
	kindText    = "string"
	kindInteger = "integer"
	kindObject  = "object"
)

func (a argument) schema() map[string]any {
	schema := map[string]any{"type": a.kind, "description": a.says}
	if a.kind == kindInteger {
		schema["minimum"], schema["maximum"] = 0, a.most
	}
	return schema
}

// check reads the value. The error names the argument and the rule that it breaks.
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

// object reads an object, or a text that holds one, as models often write it. Members that
// are null are left out: that is how models leave out what is optional.
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

// input are the arguments of a call, by name: text, int64 or an object's members.
type input map[string]any

func (in input) text(name string) string {
	text, _ := in[name].(string)
	return text
}

func (in input) number(name string) int64 {
	n, _ := in[name].(int64)
	return n
}

// fields are an object's members as they came, but files of tasks, as TASK or TASK#N, by
// their addresses. The error names the field.
func (in input) fields(name string) (map[string]any, error) {
	fields := map[string]any{}
	members, _ := in[name].(map[string]json.RawMessage)
	for name, member := range members {
		decoder := json.NewDecoder(bytes.NewReader(member))
		decoder.UseNumber()
		var value any
		if err := decoder.Decode(&value); err != nil {
			return nil, fmt.Errorf("%s is no JSON", name)
		}
		var err error
		if fields[name], err = withAddresses(name, value); err != nil {
			return nil, err
		}
	}
	return fields, nil
}

// namesFile reports a field that takes the address of a file, such as image_urls or
// first_frame_image. Others take a task's id as it is.
func namesFile(name string) bool {
	return strings.HasSuffix(name, "url") || strings.HasSuffix(name, "urls") || strings.HasSuffix(name, "image")
}

// withAddresses is the value of a field with addresses in place of TASK and TASK#N.
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

// read checks the arguments of a call. The SDK's own check would tell of Go's types.
func read(arguments []argument, raw json.RawMessage) (input, error) {
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
			return nil, fmt.Errorf("%q is no argument of the tool, which takes %s", name, strings.Join(names, ", "))
		}
	}
	return in, nil
}

// tool answers a call. What it returns as error is the text of the answer.
type tool func(ctx context.Context, call *sdk.CallToolRequest, in input) (*sdk.CallToolResult, error)

// add adds a tool to the server. begin is called when it begins to answer, and says how long
// it may go on.
func add(s *sdk.Server, begin Begin, t sdk.Tool, arguments []argument, answer tool) {
	properties, required := map[string]any{}, []string{}
	for _, a := range arguments {
		properties[a.name] = a.schema()
		if a.required {
			required = append(required, a.name)
		}
	}
	t.InputSchema = map[string]any{"type": kindObject, "properties": properties, "required": required, "additionalProperties": false}
	s.AddTool(&t, func(ctx context.Context, call *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		ctx, cancel := begin(ctx)
		defer cancel()
		in, err := read(arguments, call.Params.Arguments)
		var result *sdk.CallToolResult
		if err == nil {
			result, err = answer(ctx, call, in)
		}
		if err != nil {
			result = &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: err.Error()}}, IsError: true}
		}
		return result, nil
	})
}

// largestPicture is the most that upload takes, in bytes.
const largestPicture = 20 << 20

// readAll reads a picture that came within a call.
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
