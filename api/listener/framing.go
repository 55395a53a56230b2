package listener

import "net/http"

// HasUncertainEnd reports whether two servers on the way of a request may disagree on where it
// ends, so that a part of it could be taken for another request (RFC 9112, 6.1 and 11.2). This
// holds for a request in chunks, since net/http ignores its Content-Length, and for an HTTP/1.0
// request, since net/http ignores its Transfer-Encoding. The connection of such a request must end
// after the answer.
func HasUncertainEnd(r *http.Request) bool {
	return len(r.TransferEncoding) > 0 || !r.ProtoAtLeast(1, 1)
}
