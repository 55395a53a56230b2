package storage

import (
	"reflect"
	"strconv"
	"strings"
)

// statement is one that is written out together with what its parameters hold.
type statement struct {
	text     strings.Builder
	args     []any
	numbered bool // its parameters, as PostgreSQL has them; otherwise as GORM takes them
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
	if !s.numbered {
		s.text.WriteByte('?')
		return
	}
	s.text.WriteByte('$')
	s.text.WriteString(strconv.Itoa(len(s.args)))
}

// insert writes an INSERT of the row by a SELECT, to which the caller may add a
// FROM. Instead of the value of a column that the statement itself makes stands
// the expression for it.
func insert[R any](s *statement, table string, r R, made map[string]string) *statement {
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
