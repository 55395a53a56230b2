// Package tracing passes the trace of a task on: from the client's header to the row of
// the task, and from there to whatever is done for it in other processes.
//
// It owns the text form of a span's context, the W3C header traceparent, and what of a
// client's header is taken over. Spans are made elsewhere, with OpenTelemetry's API;
// where traces are off there is no span, and the text is empty.
//
// It imports nothing of ours.
package tracing
