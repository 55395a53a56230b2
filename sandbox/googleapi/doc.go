// Package googleapi is what Google's vendors of the sandbox share: the errors
// of google.rpc, API keys, and the rules of Veo, which is offered on two
// surfaces. It imports sandbox/kernel only.
package googleapi
