package midjourney

import (
	"slices"
	"strings"

	"github.com/mediagate/mediagate"
)

// niji is the version that another robot makes.
const niji = "niji 6"

var versions = []string{"5.2", "6", "6.1", "7", niji}

// words is the prompt as the vendor reads it: our fields follow it as parameters,
// of which it has none itself (the catalog sees to that). The version is always among them, since an account has a default
// of its own.
func (p *params) words(dialect string) (string, error) {
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
	told := []string{strings.TrimSpace(p.Prompt)}
	add := func(name, value string) {
		if value != "" {
			told = append(told, "--"+name+" "+value)
		}
	}
	add("ar", p.Size)
	told = append(told, version)
	add("seed", p.Seed.String())
	add("stylize", p.Stylize.String())
	add("chaos", p.Chaos.String())
	add("weird", p.Weird.String())
	if p.Tile {
		told = append(told, "--tile")
	}
	if dialect != dialectTrueai {
		told = append(told, "--"+p.Speed)
	}
	add("no", strings.TrimSpace(p.NegativePrompt)) // which takes all that follows
	return strings.Join(told, " "), nil
}
