package media

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/mediagate/mediagate"
)

// A path names a field of a request, such as subjects[1].image_urls[0].

// Decode decodes a stored request and keeps the text of its numbers.
func Decode(params json.RawMessage) (request any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(params))
	decoder.UseNumber()
	if err := decoder.Decode(&request); err != nil {
		return nil, incomplete(err)
	}
	return request, nil
}

// Encode encodes a decoded request.
func Encode(request any) (json.RawMessage, error) {
	text, err := json.Marshal(request)
	if err != nil {
		return nil, incomplete(err)
	}
	return text, nil
}

func incomplete(err error) error {
	return &mediagate.Error{
		Kind: mediagate.KindInternal, Message: "the stored request cannot be read or completed", Err: err,
	}
}

// FieldAt returns the value at a path of a decoded request, nil if there is none.
func FieldAt(in any, path string) any {
	for path != "" {
		if rest, ok := strings.CutPrefix(path, "["); ok {
			digits, rest, _ := strings.Cut(rest, "]")
			list, _ := in.([]any)
			i, err := strconv.Atoi(digits)
			if err != nil || i < 0 || i >= len(list) {
				return nil
			}
			in, path = list[i], strings.TrimPrefix(rest, ".")
			continue
		}
		end := strings.IndexAny(path, ".[")
		if end < 0 {
			end = len(path)
		}
		fields, _ := in.(map[string]any)
		in, path = fields[path[:end]], strings.TrimPrefix(path[end:], ".")
	}
	return in
}

// PathOf returns the first path of a decoded request that holds the text.
func PathOf(request any, text string) (path string, ok bool) { return pathOf(request, text, "") }

func pathOf(in any, text, path string) (string, bool) {
	switch v := in.(type) {
	case string:
		return path, v == text
	case []any:
		for i, item := range v {
			if found, ok := pathOf(item, text, path+"["+strconv.Itoa(i)+"]"); ok {
				return found, true
			}
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if found, ok := pathOf(v[name], text, strings.TrimPrefix(path+"."+name, ".")); ok {
				return found, true
			}
		}
	}
	return "", false
}

// SetFields sets fields of a decoded request by their paths and returns the request. It extends a
// list as far as a path needs, since several items may have come as uploads.
func SetFields(request any, values map[string]string) (any, error) {
	var err error
	for path, value := range values {
		if request, err = setField(request, path, value); err != nil {
			return nil, incomplete(err)
		}
	}
	return request, nil
}

// maxItems limits the length to which a path extends a list.
const maxItems = 1000

func setField(in any, path, value string) (any, error) {
	if path == "" {
		return value, nil
	}
	if rest, ok := strings.CutPrefix(path, "["); ok {
		digits, rest, ok := strings.Cut(rest, "]")
		index, err := strconv.Atoi(digits)
		list, isList := in.([]any)
		if !ok || err != nil || index < 0 || index >= maxItems || in != nil && !isList {
			return nil, fmt.Errorf("no item %q in the request", path)
		}
		for len(list) <= index {
			list = append(list, nil)
		}
		list[index], err = setField(list[index], strings.TrimPrefix(rest, "."), value)
		return list, err
	}
	end := strings.IndexAny(path, ".[")
	if end < 0 {
		end = len(path)
	}
	name, rest := path[:end], strings.TrimPrefix(path[end:], ".")
	fields, isObject := in.(map[string]any)
	if name == "" || in != nil && !isObject {
		return nil, fmt.Errorf("no field %q in the request", path)
	}
	if fields == nil {
		fields = map[string]any{}
	}
	var err error
	fields[name], err = setField(fields[name], rest, value)
	return fields, err
}

// EachText replaces each text of a decoded request with the result of change and returns the
// request.
func EachText(in any, change func(string) (string, error)) (out any, err error) {
	switch v := in.(type) {
	case string:
		return change(v)
	case []any:
		for i := range v {
			if v[i], err = EachText(v[i], change); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for name := range v {
			if v[name], err = EachText(v[name], change); err != nil {
				return nil, err
			}
		}
	}
	return in, nil
}
