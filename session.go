package mediagate

import "time"

// Session is a browser that is signed in to the console, with a key or as an operator,
// or a link by which one may sign in. Its token is stored nowhere.
type Session struct {
	Hash    [32]byte // of its token
	KeyID   string   // empty: an operator's
	KeyHash [32]byte // of the key's secret

	// OperatorHash is of what an operator signed in by: of the operator's key, or of the
	// settings of OpenID Connect. A session ends when these are no longer in force.
	OperatorHash [32]byte
	// Operator and Role are what the identity provider said. They are empty in a session that
	// began with an operator's key: the settings say name and role of a key.
	Operator string
	Role     OperatorRole

	CreatedAt time.Time
	ExpiresAt time.Time
}
