package openapi

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Map is a JSON object that keeps its order.
type Map[T any] []Entry[T]

// Entry is a member of a Map.
type Entry[T any] struct {
	Name  string
	Value T
}

// Get returns a member.
func (m Map[T]) Get(name string) (value T, ok bool) {
	for _, e := range m {
		if e.Name == name {
			return e.Value, true
		}
	}
	return value, false
}

// Set adds or replaces a member.
func (m *Map[T]) Set(name string, value T) {
	for i := range *m {
		if (*m)[i].Name == name {
			(*m)[i].Value = value
			return
		}
	}
	*m = append(*m, Entry[T]{name, value})
}

// MarshalJSON writes the members in their order.
func (m Map[T]) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, e := range m {
		if i > 0 {
			b = append(b, ',')
		}
		name, err := Marshal(e.Name)
		if err != nil {
			return nil, err
		}
		value, err := Marshal(e.Value)
		if err != nil {
			return nil, err
		}
		b = append(append(append(b, name...), ':'), value...)
	}
	return append(b, '}'), nil
}

// Marshal is json.Marshal without escaping for HTML.
func Marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(buf.Bytes(), "\n"), nil
}

// Edit returns the object with the member at the end of the path replaced by what f makes of it.
// f gets nil if there is no such member. The objects on the path must exist.
func Edit(
	object json.RawMessage, f func(member json.RawMessage) (any, error), path ...string,
) (json.RawMessage, error) {
	if len(path) == 0 {
		value, err := f(object)
		if err != nil {
			return nil, err
		}
		return Marshal(value)
	}
	all, err := Members(object)
	if err != nil {
		return nil, fmt.Errorf("openapi: there is no %s: %w", path[0], err)
	}
	old, _ := all.Get(path[0])
	member, err := Edit(old, f, path[1:]...)
	if err != nil {
		return nil, err
	}
	all.Set(path[0], member)
	return Marshal(all)
}
