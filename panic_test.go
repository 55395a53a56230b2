package mediagate_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/mediagate/mediagate"
)

func TestPanickedHidesValues(t *testing.T) {
	t.Parallel()
	type account struct{ key string }
	var none map[string]int
	for name, test := range map[string]struct {
		cause func()
		want  string
	}{
		"a text":           {func() { panic("hunter2") }, "internal: panic: with a string\n"},
		"an error":         {func() { panic(errors.New("hunter2")) }, "internal: panic: with a *errors.errorString\n"},
		"a struct":         {func() { panic(account{"hunter2"}) }, "internal: panic: with a mediagate_test.account\n"},
		"a pointer":        {func() { panic(&account{"hunter2"}) }, "internal: panic: with a *mediagate_test.account\n"},
		"of the runtime":   {func() { none["hunter2"] = 1 }, "internal: panic: assignment to entry in nil map\n"},
		"a wrong type":     {func() { _ = any(account{"hunter2"}).(error) }, "internal: panic: interface conversion: "},
		"nothing at all":   {func() { panic(nil) }, "internal: panic: panic called with nil argument"},
		"an index too far": {func() { _ = strings.Split("hunter2", "-")[len(none)+1] }, "internal: panic: runtime error: index out of range ["},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defer func() {
				err := mediagate.Panicked(recover())
				text := err.Error()
				if !strings.HasPrefix(text, test.want) || strings.Contains(text, "hunter2") {
					t.Errorf("the error is %s", text)
				}
				if !strings.Contains(text, "panic_test.go") {
					t.Errorf("the error does not say where: %s", text)
				}
				if err.Message != "panic" {
					t.Errorf("the message is %q", err.Message)
				}
			}()
			test.cause()
		})
	}
}
