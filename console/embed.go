// Package console holds the web application that the API serves at /console.
//
// The application is TypeScript, and uses the public and the admin API, nothing else.
// Vite builds it into the folder dist, which is not in git: a program that is compiled
// without that has no console, and says so there. It imports nothing of ours.
package console

import (
	"embed"
	"io/fs"
)

//go:embed all:dist
var built embed.FS

// Files are what the browser loads, index.html first, or nil where the application was
// not built.
func Files() fs.FS {
	files, err := fs.Sub(built, "dist")
	if err != nil {
		return nil
	}
	if _, err := fs.Stat(files, "index.html"); err != nil {
		return nil
	}
	return files
}
