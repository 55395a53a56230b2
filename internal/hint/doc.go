// Package hint makes and checks the tokens in the URLs that vendors call back when a job may have
// changed: {public_url}/callbacks/{token}.
//
// A token names one attempt and has a MAC of that name. So a request with a wrong token costs no
// database query, tokens need no storage, and an attempt has the same URL when it is sent again. The
// MAC's key is derived from encryption_keys: the first key makes tokens, all keys check them. ADR 8
// explains why the gateway believes only the token of a callback and ignores its body.
//
// It imports the standard library only.
package hint
