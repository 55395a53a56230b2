// Package hint makes and checks the tokens of the addresses at which vendors tell that
// a job may have changed: {public_url}/callbacks/{token}.
//
// A token names one attempt and carries a MAC of that name. So a request with a wrong
// token costs no look at the database, nothing is stored for those that are right, and
// an attempt that is sent again has the address that it had. The key of the MAC is
// derived from encryption_keys: the first one makes tokens, each of them checks.
// ADR 8 says why a token is all that is believed of a callback.
//
// It imports the standard library only.
package hint
