package storage

import (
	"reflect"
	"strings"
)

// statement is one that is written out together with what its parameters hold.
type statement struct {
	text strings.Builder
	args []any
}

// say writes pieces of text.
func (s *statement) say(pieces ...string) *statement {
	for _, piece := range pieces {
		s.text.WriteString(piece)
	}
	return s
}

// with writes text in which question marks stand for the values.
func (s *statement) with(text string, values ...any) *statement {
	for _, value := range values {
		before, after, _ := strings.Cut(text, "?")
		s.text.WriteString(before)
		s.arg(value)
		text = after
	}
	s.text.WriteString(text)
	return s
}

func (s *statement) arg(value any) {
	s.args = append(s.args, value)
	s.text.WriteByte('?')
}

// insert is an INSERT of the row by a SELECT. Instead of the value of a column that the statement itself makes stands
// the expression for it.
func insert[R any](table string, r R, made map[string]string) *statement {
	s := &statement{}
	c, v := columnsOf[R](), reflect.ValueOf(&r).Elem()
	s.say("INSERT INTO ", table, " (", c.text, ") SELECT ")
	for i, field := range c.fields {
		if i > 0 {
			s.say(", ")
		}
		if expression, ok := made[c.names[i]]; ok {
			s.say(expression)
		} else {
			s.arg(v.FieldByIndex(field).Interface())
		}
	}
	return s
}
