package midjourney

import (
	"slices"
	"strings"

	"github.com/mediagate/mediagate"
)

// niji is the version that another bot makes.
const niji = "niji 6"

var versions = []string{"5.2", "6", "6.1", "7", niji}

// buildPrompt returns the prompt in the vendor's form: the client's text and then our fields as
// parameters. The text has no parameters of its own, because the catalog refuses them. The version
// is always among the parameters, since each account has its own default.
func (p *params) buildPrompt(dialect string) (string, error) {
	switch {
	case strings.TrimSpace(p.Prompt) == "":
		return "", mediagate.Invalid("prompt", "prompt is required")
	case !slices.Contains(versions, string(p.Version)):
		return "", mediagate.Invalid("version", "version must be %s", strings.Join(versions, ", "))
	case p.Size != "" && !sizePattern.MatchString(p.Size):
		return "", mediagate.Invalid("size", "size must be W:H")
	}
	version := "--v " + string(p.Version)
	if p.Version == niji {
		version = "--" + niji
	}
	parts := []string{strings.TrimSpace(p.Prompt)}
	add := func(name, value string) {
		if value != "" {
			parts = append(parts, "--"+name+" "+value)
		}
	}
	add("ar", p.Size)
	parts = append(parts, version)
	add("seed", p.Seed.String())
	add("stylize", p.Stylize.String())
	add("chaos", p.Chaos.String())
	add("weird", p.Weird.String())
	if p.Tile {
		parts = append(parts, "--tile")
	}
	if dialect != dialectTrueai {
		parts = append(parts, "--"+p.Speed)
	}
	add("no", strings.TrimSpace(p.NegativePrompt)) // comes last, because it takes all words that follow
	return strings.Join(parts, " "), nil
}
