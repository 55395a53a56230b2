package e2e_test

import (
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/mediagate/mediagate/api/openapitest"
)

// contractChecker checks a gateway's answers and callbacks against the gateway's own OpenAPI
// document.
type contractChecker struct {
	t        *testing.T
	contract *openapitest.Contract
}

// contractCheckers holds the checkers of the running worlds, by the host of their APIs.
var contractCheckers sync.Map

// checkContract has all answers and callbacks of the world checked.
func (w *world) checkContract() {
	w.t.Helper()
	a, err := request{method: http.MethodGet, url: w.apiURLs[0] + "/openapi.json"}.do(w.t.Context())
	if err != nil || a.status != http.StatusOK {
		w.t.Fatalf("no OpenAPI document: %d, %v", a.status, err)
	}
	contract, err := openapitest.Parse(a.body)
	if err != nil {
		w.t.Fatal(err)
	}
	w.contract = contract
	w.hooks.setContract(contract)
	for _, address := range w.apiURLs {
		host := strings.TrimPrefix(address, "http://")
		contractCheckers.Store(host, &contractChecker{w.t, contract})
		w.t.Cleanup(func() { contractCheckers.Delete(host) }) // another world may get the port
	}
}

// checkAnswer checks an answer if it comes from a world's API.
func checkAnswer(r request, a answer) {
	u, err := url.Parse(r.url)
	if err != nil {
		return
	}
	known, ok := contractCheckers.Load(u.Host)
	if !ok {
		return
	}
	j, _ := known.(*contractChecker)
	err = j.contract.Check(openapitest.Answer{Method: r.method, Path: u.Path, Status: a.status, Header: a.header, Body: a.body})
	if err != nil {
		j.t.Errorf("against /openapi.json: %v", err)
	}
}
