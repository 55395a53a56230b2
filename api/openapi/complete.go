package openapi

import (
	"encoding/json"
	"fmt"
	"regexp"
)

// componentRef matches the references to components.
var componentRef = regexp.MustCompile(`"\$ref":\s*"#/components/(\w+)/([^"]+)"`)

// Complete finds the components that a document refers to but lacks, and copies them from another
// document.
func Complete(doc, from json.RawMessage) (json.RawMessage, error) {
	ours, err := componentsOf(doc)
	if err != nil {
		return nil, err
	}
	theirs, err := componentsOf(from)
	if err != nil {
		return nil, err
	}
	for open := []json.RawMessage{doc}; len(open) > 0; open = open[1:] {
		for _, ref := range componentRef.FindAllSubmatch(open[0], -1) {
			kind, name := string(ref[1]), string(ref[2])
			have, _ := ours.Get(kind)
			if _, ok := have.Get(name); ok {
				continue
			}
			all, _ := theirs.Get(kind)
			component, ok := all.Get(name)
			if !ok {
				return nil, fmt.Errorf("openapi: neither document has components.%s.%s", kind, name)
			}
			have.Set(name, component)
			ours.Set(kind, have)
			open = append(open, component)
		}
	}
	return Edit(doc, func(json.RawMessage) (any, error) { return ours, nil }, "components")
}

// componentsOf returns the components of a document, by kind and name.
func componentsOf(doc json.RawMessage) (kinds Map[Map[json.RawMessage]], err error) {
	top, err := Members(doc)
	if err != nil {
		return nil, err
	}
	components, _ := top.Get("components")
	all, err := Members(components)
	if err != nil {
		return nil, err
	}
	for _, kind := range all {
		named, err := Members(kind.Value)
		if err != nil {
			return nil, err
		}
		kinds.Set(kind.Name, named)
	}
	return kinds, nil
}
