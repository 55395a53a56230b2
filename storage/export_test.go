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
