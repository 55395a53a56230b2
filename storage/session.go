package storage

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
)

// A session ends with its key: the transaction that deletes or rotates a key also deletes its
// sessions. Whether the key has expired is checked at each use.
//
// An operator's session has a MAC under an encryption key. Write access to the database, or a copy
// of it, therefore makes nobody an operator: a row with a wrong MAC counts as no session.

// sessionMAC returns the MAC of an operator's session or link. It covers everything that the row
// grants, and its expiry.
//
// Each field of variable length is quoted, so that two different sessions never give the same
// text. link is among the fields, so that the row of a link cannot be turned into a session by a
// change of its column "once".
func sessionMAC(key []byte, session mediagate.Session, link bool) []byte {
	mac := hmac.New(sha256.New, key)
	_, _ = fmt.Fprintf(mac, "mediagate session %x %x %q %q %t %d", session.Hash, session.OperatorHash,
		session.Operator, session.Role, link, session.ExpiresAt.UnixMicro()) // never fails
	return mac.Sum(nil)
}

// signSession returns the MAC that is stored with a session, under the first encryption key. The
// session of an API key has none.
func (s *Store) signSession(session mediagate.Session, link bool) ([]byte, error) {
	if session.KeyID != "" {
		return nil, nil
	}
	if len(s.keys) == 0 {
		return nil, errNoEncryptionKey
	}
	return sessionMAC(s.keys[0], session, link), nil
}

// isSigned reports whether one of the encryption keys made the MAC. The session of an API key needs none.
//
// Sessions that an older key signed stay valid while that key is configured. hmac.Equal takes the
// same time wherever two MACs differ.
func (s *Store) isSigned(session mediagate.Session, link bool, mac []byte) bool {
	return session.KeyID != "" || slices.ContainsFunc(s.keys, func(key []byte) bool {
		return hmac.Equal(mac, sessionMAC(key, session, link))
	})
}

// AddSession stores a session that expires after life. Returns KindNotFound for an unknown key.
func (s *Store) AddSession(ctx context.Context, session mediagate.Session, life time.Duration) error {
	return s.addSession(ctx, session, life, false)
}

// AddLink stores a link that TakeLink exchanges for such a session.
func (s *Store) AddLink(ctx context.Context, session mediagate.Session, life time.Duration) error {
	return s.addSession(ctx, session, life, true)
}

// addSession stores a session, or a link for one. The session expires after life, by the
// database's clock.
func (s *Store) addSession(ctx context.Context, session mediagate.Session, life time.Duration, link bool) error {
	now := s.clock()
	session.ExpiresAt = now.Add(life)
	var operator []byte // only of an operator's
	if session.KeyID == "" {
		operator = session.OperatorHash[:]
	}
	mac, err := s.signSession(session, link)
	if err != nil {
		return err
	}
	// key_id comes first: GORM would expand bytes as a list if their question mark followed the
	// opening parenthesis.
	_, err = exec(s.on(ctx), `INSERT INTO sessions
			(key_id, token_hash, operator_hash, operator, role, mac, once, created_at, expires_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		nullable(session.KeyID), session.Hash[:], operator, nullable(session.Operator), nullable(string(session.Role)),
		mac, link, at(now), at(session.ExpiresAt))
	if isForeignKey(err) {
		return notFound("key", session.KeyID)
	}
	return dbError(err, "add session")
}

// Session finds the live session with that hash, and the hash of its key. Returns
// KindNotFound, also for a link.
func (s *Store) Session(ctx context.Context, hash [32]byte) (mediagate.Session, error) {
	return s.findSession(ctx, hash, false)
}

// findSession finds the live session, or the link, with that hash. Returns KindNotFound.
//
// A session that has expired, that is of the other sort, or whose MAC is wrong counts as no
// session. Callers cannot tell these cases apart. The primary key token_hash serves the SELECT.
func (s *Store) findSession(ctx context.Context, hash [32]byte, link bool) (mediagate.Session, error) {
	row, err := one[struct {
		KeyID        string
		KeyHash      []byte
		OperatorHash []byte
		Operator     string
		Role         string
		Mac          []byte
		CreatedAt    stamp
		ExpiresAt    stamp
	}](s.on(ctx), `SELECT COALESCE(s.key_id, ''), k.hash, s.operator_hash, COALESCE(s.operator, ''), COALESCE(s.role, ''),
			s.mac, s.created_at, s.expires_at
		FROM sessions s LEFT JOIN keys k ON k.id = s.key_id
		WHERE s.token_hash = ? AND s.once = ? AND s.expires_at > ?`, hash[:], link, at(s.clock()))
	if err != nil || row == nil {
		return mediagate.Session{}, cmp.Or(dbError(err, "read session"), notFound("session", ""))
	}
	session := mediagate.Session{
		Hash:      hash,
		KeyID:     row.KeyID,
		Operator:  row.Operator,
		Role:      mediagate.OperatorRole(row.Role),
		CreatedAt: row.CreatedAt.Time,
		ExpiresAt: row.ExpiresAt.Time,
	}
	copy(session.KeyHash[:], row.KeyHash)
	copy(session.OperatorHash[:], row.OperatorHash)
	if !s.isSigned(session, link, row.Mac) {
		return mediagate.Session{}, notFound("session", "")
	}
	return session, nil
}

// TakeLink exchanges a link that has not expired for a session with the hash of another token, which
// expires after life. Only one of several concurrent calls succeeds; the others return KindNotFound.
//
// The row of the link becomes the row of the session, so a link works once. The UPDATE names the
// link's hash, and only the first of two calls finds it.
func (s *Store) TakeLink(ctx context.Context, link, hash [32]byte, life time.Duration) error {
	session, err := s.findSession(ctx, link, true)
	if err != nil {
		return err
	}
	now := s.clock()
	// The MAC covers hash, expiry and kind, so it is made anew.
	session.Hash, session.ExpiresAt = hash, now.Add(life)
	mac, err := s.signSession(session, false)
	if err != nil {
		return err
	}
	taken, err := exec(s.on(ctx), `UPDATE sessions SET token_hash = ?, mac = ?, once = ?, created_at = ?, expires_at = ?
		WHERE token_hash = ? AND once AND expires_at > ?`,
		hash[:], mac, false, at(now), at(session.ExpiresAt), link[:], at(now))
	if err == nil && taken == 0 {
		return notFound("link", "")
	}
	return dbError(err, "take link")
}

// EndSession deletes a session, if there is one.
func (s *Store) EndSession(ctx context.Context, hash [32]byte) error {
	_, err := exec(s.on(ctx), "DELETE FROM sessions WHERE token_hash = ? AND NOT once", hash[:])
	return dbError(err, "end session")
}

// endSessions deletes the sessions of a key, and the links for it.
func endSessions(tx *gorm.DB, keyID string) error {
	_, err := exec(tx, "DELETE FROM sessions WHERE key_id = ?", keyID)
	return err
}

// sessionsAtOnce is how many expired sessions are removed at once.
//
// Small batches keep each DELETE short. The index sessions_expiry finds the rows.
const sessionsAtOnce = 500

// RemoveSessions removes sessions and links that have expired, and returns how many.
func (s *Store) RemoveSessions(ctx context.Context) (removed int, err error) {
	for {
		n, err := exec(s.on(ctx), `DELETE FROM sessions
			WHERE token_hash IN (SELECT token_hash FROM sessions WHERE expires_at <= ? LIMIT ?)`,
			at(s.clock()), sessionsAtOnce)
		removed += int(n)
		if err != nil || n < sessionsAtOnce {
			return removed, dbError(err, "remove sessions")
		}
	}
}
