package listener

import "net/http"

// EndInDoubt reports a request whose end two servers on its way might see at different
// places, and take a part of it for another request (RFC 9112, 6.1 and 11.2): one in
// chunks, beside which net/http drops a Content-Length, or of HTTP/1.0, of which it drops
// a Transfer-Encoding. Its connection ends after the answer.
func EndInDoubt(r *http.Request) bool {
	return len(r.TransferEncoding) > 0 || !r.ProtoAtLeast(1, 1)
}
