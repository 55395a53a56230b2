package listener

import "net/http"

// HasUncertainEnd reports whether two servers on the way of a request may disagree on where it
// ends, so that a part of it could be taken for another request (RFC 9112, 6.1 and 11.2). That is
// so for a request in chunks, for which net/http ignores a Content-Length, and for one of
// HTTP/1.0, of which net/http ignores the Transfer-Encoding. The connection of such a request
// ends after the answer.
func HasUncertainEnd(r *http.Request) bool {
	return len(r.TransferEncoding) > 0 || !r.ProtoAtLeast(1, 1)
}
