package api

import (
	"crypto/subtle"
	"log/slog"

	"github.com/mediagate/mediagate"
)

// Operator is an operator who calls the admin API with a key.
type Operator struct {
	Name    string
	KeyHash [32]byte // see HashKey
	Role    mediagate.OperatorRole
}

// operator is the operator who makes a call to the admin API.
type operator struct {
	name string
	role mediagate.OperatorRole
}

// operatorsTenant is the tenant that all operators share in the limits.
const operatorsTenant = "operators"

// ReplaceOperators puts another list of operators in force. Keys that are not in the list stop
// working at once, and so do the sessions that began with them.
func (s *Server) ReplaceOperators(list []Operator) { s.operators.Store(&list) }

// operatorOfKey finds the operator whose key has the hash. It compares the hash with those of
// all operators, each in constant time.
func (s *Server) operatorOfKey(hash [32]byte) (found operator, ok bool) {
	for _, o := range *s.operators.Load() {
		if subtle.ConstantTimeCompare(o.KeyHash[:], hash[:]) == 1 {
			found, ok = operator{o.Name, o.Role}, true
		}
	}
	return found, ok
}

// operatorOfSession finds the operator whom a session stands for. A session that began with a key
// stands for the operator who has that key now, with today's role. A session that began with
// OpenID Connect stands for the person whom the identity provider named, until the settings
// change.
func (s *Server) operatorOfSession(session mediagate.Session) (operator, bool) {
	if session.Operator == "" {
		return s.operatorOfKey(session.OperatorHash)
	}
	ok := s.cfg.IdentityProvider != nil && session.OperatorHash == s.cfg.IdentityProvider.Fingerprint()
	return operator{session.Operator, session.Role}, ok
}

// admitOperator admits the call of an operator whose role suffices for the route. It answers an
// API key with 403, and an unknown key with 401.
func (s *Server) admitOperator(c *call) error {
	who, err := s.operatorOf(c)
	if err != nil {
		return err
	}
	c.operator = who
	return c.mustHave(c.route.role)
}

// mustHave refuses an operator without the role.
func (c *call) mustHave(role mediagate.OperatorRole) error {
	if c.operator.role.Includes(role) {
		return nil
	}
	return mediagate.Errorf(
		mediagate.KindForbidden, "this needs the role %s, but %s has the role %s", role, c.operator.name, c.operator.role,
	)
}

// operatorOf finds the operator by the call's key or session.
func (s *Server) operatorOf(c *call) (operator, error) {
	token := c.credential.token
	if c.credential.session {
		session, err := s.findSession(c.ctx, c, token)
		if err != nil {
			return operator{}, err
		}
		if session.KeyID != "" {
			return operator{}, errNotOperator
		}
		who, ok := s.operatorOfSession(session)
		if !ok { // replaced since findSession
			return operator{}, errNoSession
		}
		return who, nil
	}
	if who, ok := s.operatorOfKey(HashKey(token)); ok {
		return who, nil
	}
	_, err := s.identify(c.ctx, c, token)
	s.logins.Count(slog.String("client", c.client.String()))
	switch {
	case err == nil:
		return operator{}, errNotOperator
	case mediagate.Is(err, mediagate.KindUnauthenticated):
		return operator{}, errNoOperator
	default:
		return operator{}, err
	}
}
