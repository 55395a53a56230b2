package storage

import "context"

// Setting is what a connection of the store has in force.
func (s *Store) Setting(ctx context.Context, name string) (string, error) {
	got, err := s.texts(ctx, "read a setting", "SELECT current_setting(?)", name)
	if err != nil || len(got) == 0 {
		return "", err
	}
	return got[0], nil
}

// Warm uses n connections at once.
func (s *Store) Warm(ctx context.Context, n int) error {
	for range n {
		conn, err := s.sql.Conn(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }()
		if err := conn.PingContext(ctx); err != nil {
			return err
		}
	}
	return nil
}
