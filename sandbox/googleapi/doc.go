// Package googleapi holds the code that Google's vendors of the sandbox share: the errors of
// google.rpc, API keys, and the rules of Veo, which two of them offer. It imports sandbox/kernel
// only.
package googleapi
