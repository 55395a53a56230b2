package googleapi

import (
	"net/http"

	"github.com/mediagate/mediagate/sandbox/kernel"
)

// The statuses of errors.
const (
	InvalidArgument   = "INVALID_ARGUMENT"
	Unauthenticated   = "UNAUTHENTICATED"
	PermissionDenied  = "PERMISSION_DENIED"
	NotFound          = "NOT_FOUND"
	ResourceExhausted = "RESOURCE_EXHAUSTED"
	Internal          = "INTERNAL"
)

// statuses are the HTTP statuses that go with them.
var statuses = map[string]int{
	InvalidArgument:   http.StatusBadRequest,
	Unauthenticated:   http.StatusUnauthorized,
	PermissionDenied:  http.StatusForbidden,
	NotFound:          http.StatusNotFound,
	ResourceExhausted: http.StatusTooManyRequests,
	Internal:          http.StatusInternalServerError,
}

// Broken is what a server's fault is told with.
const Broken = "An internal error has occurred. Please retry."

// Refuse answers with an error.
func Refuse(kind, status, message string, details ...any) kernel.Reply {
	code := statuses[status]
	e := map[string]any{"code": code, "message": message, "status": status}
	if len(details) > 0 {
		e["details"] = details
	}
	return kernel.Reply{Kind: kind, Status: code, Body: map[string]any{"error": e}}
}

// Missing answers for a path that is none.
func Missing(*http.Request) kernel.Reply {
	return Refuse(kernel.CallOther, NotFound, "the requested URL was not found on this server")
}

// Keyed finds the customer by the API key. A key that is not one is an invalid
// argument for this vendor, told apart by its reason.
func Keyed(s *kernel.Service, r *http.Request) (a kernel.Account, refused kernel.Reply, ok bool) {
	key := r.Header.Get("x-goog-api-key")
	if key == "" {
		return a, Refuse(kernel.CallOther, PermissionDenied, "Method doesn't allow unregistered callers. Please use API Key."), false
	}
	if a, ok = s.Customer("api_key", key); !ok {
		return a, Refuse(kernel.CallOther, InvalidArgument, "API key not valid. Please pass a valid API key.", map[string]any{
			"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID", "domain": "googleapis.com",
		}), false
	}
	return a, kernel.Reply{}, true
}
