package mediagate

import "time"

// Session is a browser that is signed in to the console with a key or as an operator, or a link
// that signs one in. Its token is not stored.
type Session struct {
	Hash    [32]byte // of the token
	KeyID   string   // empty in an operator's session
	KeyHash [32]byte // of the key's secret

	// OperatorHash is the hash of the operator's key, or of the settings of OpenID Connect. The session
	// ends when these are no longer in force.
	OperatorHash [32]byte
	// Operator and Role come from the identity provider. They are empty in a session that began with
	// an operator's key, whose name and role are in the settings.
	Operator string
	Role     OperatorRole

	CreatedAt time.Time
	ExpiresAt time.Time
}
