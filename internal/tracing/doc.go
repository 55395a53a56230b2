// Package tracing passes on the trace of a task: from the client's header to the row of the task,
// and from there to the work for it in other processes.
//
// It owns the text form of a span's context, the W3C header traceparent, and decides what to accept
// of a client's header. Other packages make spans with OpenTelemetry's API. While traces are off
// there is no span, and the text is empty.
//
// It imports nothing of ours.
package tracing
