package mediagate

import "time"

// Session is a browser that is signed in to the console, with a key or as the operator,
// or a link by which one may sign in. Its token is stored nowhere.
type Session struct {
	Hash      [32]byte // of its token
	KeyID     string   // empty: the operator's
	KeyHash   [32]byte // of the key's secret
	AdminHash [32]byte // of the admin key of the operator's sign-in
	CreatedAt time.Time
	ExpiresAt time.Time
}
