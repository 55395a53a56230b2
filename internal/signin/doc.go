// Package signin signs operators in by OpenID Connect: the code flow with PKCE, a state and a
// nonce, all of which follow from one random token that only the browser keeps.
//
// It owns the conversation with the identity provider and the rules by which a token's claims
// give a role. It knows nothing of cookies, sessions and routes, which are the API's.
package signin
