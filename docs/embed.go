// Package docs holds the guides for those who call the API, and those for operators to which
// the console links. The API serves both at /docs. It imports nothing of ours.
package docs

import "embed"

// Pages are the guides, in Markdown.
//
//go:embed tour.md api.md clients.md results.md console.md mcp.md
var Pages embed.FS

// OperatorPages are the guides for operators and the runbook, in Markdown.
//
//go:embed running.md watching.md repairing.md backup-and-upgrade.md runbook/*.md
var OperatorPages embed.FS
