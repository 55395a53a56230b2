package mediagate

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync/atomic"
)

var panics atomic.Int64

// Panics counts what this process made errors of with Panicked.
func Panics() int64 { return panics.Load() }

// Panicked makes an error of what recover returned, with the stack as its cause.
// A fault that the runtime found is told in its words. Of any other value only
// the type is: it may hold what no log may have, such as a request or a key, and
// the stack says where to look.
func Panicked(value any) *Error {
	panics.Add(1)
	text := fmt.Sprintf("with a %T", value)
	if fault, ok := value.(runtime.Error); ok {
		text = fault.Error()
	}
	return &Error{Kind: KindInternal, Message: "panic", Err: fmt.Errorf("%s\n%s", text, debug.Stack())}
}

// Guarded is what f returns; a panic is an error like any other.
func Guarded(f func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = Panicked(value)
		}
	}()
	return f()
}
