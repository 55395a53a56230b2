package catalog

import (
	"maps"
	"slices"
	"strings"
)

// prose collects what a client wrote in a canonical value, in the order of the schema: every text
// that is no file and no value of an enum. Where the schema has no further detail, everything is
// the client's own, including the names of fields.
func (s *shape) prose(v any, found []string) []string {
	switch v := v.(type) {
	case string:
		if blank(v) || s != nil && (s.media && isAddress(v) || v == s.constant || slices.Contains(s.enum, any(v))) {
			return found
		}
		return append(found, v)
	case map[string]any:
		if s != nil && s.properties != nil {
			for _, name := range s.names {
				if value, ok := v[name]; ok {
					found = s.properties[name].prose(value, found)
				}
			}
			return found
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			found = (*shape)(nil).prose(v[name], append(found, name))
		}
	case []any:
		var items *shape
		if s != nil {
			items = s.items
		}
		for _, item := range v {
			found = items.prose(item, found)
		}
	}
	return found
}

// isAddress reports whether the text has the form of a media address, rather than that of another
// branch of its field.
func isAddress(text string) bool {
	if strings.HasPrefix(text, "/v1/tasks/") {
		return true
	}
	scheme, _, ok := strings.Cut(text, ":")
	return ok && slices.ContainsFunc(
		[]string{"http", "https", "data"}, func(s string) bool { return strings.EqualFold(s, scheme) },
	)
}
