package googleapi

import (
	"net/http"
	"slices"
	"strings"

	"github.com/mediagate/mediagate/sandbox/kernel"
)

// The faults that only these vendors have.
const (
	Hidden  kernel.Fault = -1 // the resource does not exist, or the caller may not see it
	NoToken kernel.Fault = -2 // the caller's token is not valid
)

// Refuse answers with an error in the format of google.rpc.
var Refuse = kernel.NewRefuse(map[kernel.Fault]kernel.FaultText{
	kernel.NoKey: kernel.NewFaultText(http.StatusForbidden, "PERMISSION_DENIED",
		"Method doesn't allow unregistered callers. Please use API Key."),
	kernel.NoPath: kernel.NewFaultText(http.StatusNotFound, "NOT_FOUND",
		"the requested URL was not found on this server"),
	kernel.NoModel: kernel.NewFaultText(http.StatusNotFound, "NOT_FOUND", ""),
	kernel.NoJob:   kernel.NewFaultText(http.StatusNotFound, "NOT_FOUND", "Operation was not found."),
	kernel.Invalid: kernel.NewFaultText(http.StatusBadRequest, "INVALID_ARGUMENT", ""),
	kernel.Inappropriate: kernel.NewFaultText(http.StatusBadRequest, "INVALID_ARGUMENT",
		"The prompt could not be submitted. It violates the vendor's Responsible AI practices. Support codes: 29310472"),
	kernel.Internal: kernel.NewFaultText(http.StatusInternalServerError, "INTERNAL",
		"An internal error has occurred. Please retry."),
	kernel.TooManyJobs: kernel.NewFaultText(http.StatusTooManyRequests, "RESOURCE_EXHAUSTED",
		"You exceeded your current quota."),
	NoToken: kernel.NewFaultText(http.StatusUnauthorized, "UNAUTHENTICATED",
		"Request had invalid authentication credentials. Expected OAuth 2 access token."),
	Hidden: kernel.NewFaultText(http.StatusForbidden, "PERMISSION_DENIED", ""),
}, func(w kernel.FaultText) any {
	return map[string]any{"error": map[string]any{"code": w.Status, "message": w.Message, "status": w.Code}}
})

// ByAPIKey returns a Recognise that finds the customer by the API key. For this vendor an unknown
// key is an invalid argument, with a reason of its own.
func ByAPIKey(s *kernel.Service) kernel.Recognise {
	return func(r *http.Request) (kernel.Account, *kernel.Reply) {
		key := r.Header.Get("x-goog-api-key")
		a, known := s.Customer("api_key", key)
		if known {
			return a, nil
		}
		refused := Refuse(kernel.CallOther, kernel.NoKey, nil)
		if key != "" {
			refused.Status, refused.Body = http.StatusBadRequest, map[string]any{"error": map[string]any{
				"code": http.StatusBadRequest, "status": "INVALID_ARGUMENT",
				"message": "API key not valid. Please pass a valid API key.",
				"details": []any{map[string]any{
					"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID", "domain": "googleapis.com",
				}},
			}}
		}
		return a, &refused
	}
}

// ModelOf returns the model in the last part of a path, such as MODEL:generateContent. It refuses
// the call if the model is not one of models or the method is not method.
func ModelOf(r *http.Request, models []string, method string) (model string, refused *kernel.Reply) {
	model, called, _ := strings.Cut(r.PathValue("call"), ":")
	if slices.Contains(models, model) && called == method {
		return model, nil
	}
	rep := Refuse(kernel.CallSubmit, kernel.NoModel,
		kernel.NewViolation("", "models/%s is not found for API version v1beta, or is not supported for %s", model, called))
	return "", &rep
}
