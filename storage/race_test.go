//go:build race

package storage_test

import "testing"

// databases leave out SQLite, which takes minutes to compile for the race detector and
// is not ours.
var databases = map[string]func(t *testing.T) backend{"postgres": newPostgres}
