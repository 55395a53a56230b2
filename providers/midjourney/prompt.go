package midjourney

import (
	"regexp"
	"slices"
	"strings"

	"github.com/mediagate/mediagate"
)

// niji is the version that another robot makes.
const niji = "niji 6"

var versions = []string{"5.2", "6", "6.1", "7", niji}

// words is the prompt as the vendor reads it: our fields follow it as
// parameters. The version is always among them, since an account has a default
// of its own.
func (p *params) words(dialect string) (string, error) {
	switch {
	case strings.TrimSpace(p.Prompt) == "":
		return "", mediagate.Invalid("prompt", "prompt is required")
	case !slices.Contains(versions, string(p.Version)):
		return "", mediagate.Invalid("version", "version must be %s", strings.Join(versions, ", "))
	case p.Size != "" && !sizePattern.MatchString(p.Size):
		return "", mediagate.Invalid("size", "size must be W:H")
	case parameter.MatchString(p.NegativePrompt):
		return "", mediagate.Invalid("negative_prompt", "negative_prompt must hold no parameters")
	}
	version := "--v " + string(p.Version)
	if p.Version == niji {
		version = "--" + niji
	}
	told := []string{strings.TrimSpace(p.Prompt)}
	var given []string
	add := func(name, value string) {
		if value == "" {
			return
		}
		given = append(given, name)
		told = append(told, "--"+name+" "+value)
	}
	add("ar", p.Size)
	told = append(told, version)
	add("seed", p.Seed.String())
	add("stylize", p.Stylize.String())
	add("chaos", p.Chaos.String())
	add("weird", p.Weird.String())
	if p.Tile {
		given = append(given, "tile")
		told = append(told, "--tile")
	}
	if dialect != dialectTrueai {
		told = append(told, "--"+p.Speed)
	}
	add("no", strings.TrimSpace(p.NegativePrompt)) // which takes all that follows
	if err := forbidden(p.Prompt, slices.Concat(always[:], versionWords), given); err != nil {
		return "", err
	}
	return strings.Join(told, " "), nil
}

// parameter is one within a prompt. A dash of typographers is read as two.
var parameter = regexp.MustCompile(`(?i)(?:^|\s)(?:--|—)([a-z]+)`)

// synonyms are the short and long names of the parameters that have several.
var synonyms = map[string]string{"aspect": "ar", "s": "stylize", "c": "chaos", "w": "weird", "version": "v", "r": "repeat"}

// The parameters that no prompt may hold: whose field decides the price, or
// that make another thing than one grid of pictures; and those of the version.
var (
	always       = [...]string{"fast", "relax", "turbo", "repeat", "video"}
	versionWords = []string{"v", "niji"}
)

// forbidden refuses a prompt that says by a parameter what a field says, or
// what no request may. All others the vendor reads as they are written.
func forbidden(prompt string, never, given []string) error {
	for _, match := range parameter.FindAllStringSubmatch(prompt, -1) {
		name := strings.ToLower(match[1])
		if known := synonyms[name]; known != "" {
			name = known
		}
		switch {
		case slices.Contains(versionWords, name) && slices.Contains(never, name):
			return mediagate.Invalid("prompt", "prompt must not hold --%s: use version", match[1])
		case slices.Contains(speeds, name) && slices.Contains(never, name):
			return mediagate.Invalid("prompt", "prompt must not hold --%s: use speed", match[1])
		case slices.Contains(never, name):
			return mediagate.Invalid("prompt", "prompt must not hold --%s", match[1])
		case slices.Contains(given, name):
			return mediagate.Invalid("prompt", "prompt must not hold --%s beside the field that says it", match[1])
		}
	}
	return nil
}
