package storage

import (
	"cmp"
	"context"
	"time"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
)

// A session ends with its key: the transaction that deletes or rotates a key also deletes its
// sessions. Whether the key has expired is checked at each use.

// AddSession stores a session that expires after life. Returns KindNotFound for an unknown key.
func (s *Store) AddSession(ctx context.Context, session mediagate.Session, life time.Duration) error {
	return s.addSession(ctx, session, life, false)
}

// AddLink stores a link that TakeLink exchanges for such a session.
func (s *Store) AddLink(ctx context.Context, session mediagate.Session, life time.Duration) error {
	return s.addSession(ctx, session, life, true)
}

func (s *Store) addSession(ctx context.Context, session mediagate.Session, life time.Duration, link bool) error {
	now := s.clock()
	var operator []byte // only of an operator's
	if session.KeyID == "" {
		operator = session.OperatorHash[:]
	}
	// GORM takes bytes whose question mark stands first in the parentheses for a list.
	_, err := exec(s.on(ctx), `INSERT INTO sessions
			(key_id, token_hash, operator_hash, operator, role, once, created_at, expires_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
		nullable(session.KeyID), session.Hash[:], operator, nullable(session.Operator), nullable(string(session.Role)),
		link, at(now), at(now.Add(life)))
	if isForeignKey(err) {
		return notFound("key", session.KeyID)
	}
	return dbError(err, "add session")
}

// Session finds the live session with that hash, and the hash of its key. Returns
// KindNotFound, also for a link.
func (s *Store) Session(ctx context.Context, hash [32]byte) (mediagate.Session, error) {
	row, err := one[struct {
		KeyID        string
		KeyHash      []byte
		OperatorHash []byte
		Operator     string
		Role         string
		CreatedAt    stamp
		ExpiresAt    stamp
	}](s.on(ctx), `SELECT COALESCE(s.key_id, ''), k.hash, s.operator_hash, COALESCE(s.operator, ''), COALESCE(s.role, ''),
			s.created_at, s.expires_at
		FROM sessions s LEFT JOIN keys k ON k.id = s.key_id
		WHERE s.token_hash = ? AND NOT s.once AND s.expires_at > ?`, hash[:], at(s.clock()))
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
	return session, nil
}

// TakeLink exchanges a link that has not expired for a session with the hash of another token, which
// expires after life. Only one of several concurrent calls succeeds; the others return KindNotFound.
func (s *Store) TakeLink(ctx context.Context, link, hash [32]byte, life time.Duration) error {
	now := s.clock()
	taken, err := exec(s.on(ctx), `UPDATE sessions SET token_hash = ?, once = ?, created_at = ?, expires_at = ?
		WHERE token_hash = ? AND once AND expires_at > ?`,
		hash[:], false, at(now), at(now.Add(life)), link[:], at(now))
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
