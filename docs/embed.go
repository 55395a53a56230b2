// Package docs holds the guides for those who call the API, which it serves at /docs. It
// imports nothing of ours.
package docs

import "embed"

// Pages are the guides, in Markdown.
//
//go:embed tour.md api.md clients.md results.md console.md mcp.md models/*.md
var Pages embed.FS
