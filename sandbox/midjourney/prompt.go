package midjourney

import (
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/mediagate/mediagate/sandbox/kernel"
)

// final returns the prompt as Midjourney receives it. The larger dialect has modes for the
// speeds, so it removes the parameters for speeds, and also lone dashes, wherever they occur.
func (p *proxy) final(prompt string) string {
	if p.dialect == trueai {
		prompt = strings.ReplaceAll(prompt, " -- ", " ")
		for range 3 {
			prompt = strings.ReplaceAll(prompt, "  ", " ")
		}
		for _, speed := range []string{"--fast", "--relax", "--turbo"} {
			prompt = strings.ReplaceAll(strings.TrimSpace(prompt), speed, "")
		}
	}
	return prompt
}

// promptParams holds the values that a prompt's parameters set.
type promptParams struct {
	ratio string
	jobs  int // number of jobs made and billed; the results are those of the first
}

// billed returns the number of billed jobs as kernel.Job has it: 0 means one.
func (a promptParams) billed() int {
	if a.jobs == 1 {
		return 0
	}
	return a.jobs
}

// jobsMax is how many jobs one prompt may make.
const jobsMax = 40

// choice matches a list of words in a prompt, such as {red, blue}. Each word makes a job.
var choice = regexp.MustCompile(`\{([^{}]*)\}`)

// permute returns the prompts that result from the choices in a prompt. It stops once it has
// more than jobsMax of them.
func permute(prompt string) []string {
	at := choice.FindStringSubmatchIndex(prompt)
	if at == nil {
		return []string{prompt}
	}
	var all []string
	for word := range strings.SplitSeq(prompt[at[2]:at[3]], ",") {
		all = append(all, permute(prompt[:at[0]]+strings.TrimSpace(word)+prompt[at[1]:])...)
		if len(all) > jobsMax {
			break
		}
	}
	return all
}

// parameter matches the name of a parameter in a prompt. The text up to the next name is its
// value.
var parameter = regexp.MustCompile(`(?:^|[\s\p{Z}])(?:--|—)([a-zA-Z]+)`)

// readPrompt reads the parameters of a prompt. It checks them in every prompt that results from
// the choices and returns those of the first, with the number of all jobs.
func readPrompt(prompt string) (first promptParams, err error) {
	jobs := 0
	for i, one := range permute(prompt) {
		params, err := readOne(one)
		if err != nil {
			return promptParams{}, err
		}
		jobs += params.jobs
		if i == 0 {
			first = params
		}
	}
	if jobs > jobsMax {
		return promptParams{}, kernel.NewViolation("prompt", "Invalid parameter: more than %d jobs", jobsMax)
	}
	first.jobs = jobs
	return first, nil
}

// short maps aliases of parameters to the names that values has.
var short = map[string]string{"aspect": "ar", "version": "v", "s": "stylize", "c": "chaos", "w": "weird", "r": "repeat"}

// readOne reads the parameters of a prompt without choices. A parameter may occur only once.
func readOne(prompt string) (promptParams, error) {
	out := promptParams{ratio: "1:1", jobs: 1}
	seen := map[string]bool{}
	found := parameter.FindAllStringSubmatchIndex(prompt, -1)
	for i, at := range found {
		end := len(prompt)
		if i+1 < len(found) {
			end = found[i+1][0]
		}
		name, value := strings.ToLower(prompt[at[2]:at[3]]), strings.TrimSpace(kernel.WithoutDirective(prompt[at[1]:end]))
		if long := short[name]; long != "" {
			name = long
		}
		if seen[name] || name == "niji" && seen["v"] || name == "v" && seen["niji"] {
			return out, kernel.NewViolation("prompt", "Invalid parameter: --%s is given twice", name)
		}
		seen[name] = true
		if !fits(name, value) {
			return out, kernel.NewViolation("prompt", "Invalid parameter: --%s %s", name, value)
		}
		switch name {
		case "ar":
			out.ratio = value
		case "repeat":
			out.jobs, _ = strconv.Atoi(value)
		}
	}
	return out, nil
}

// values holds the form of each parameter's value, and maxValues the largest value of those
// that are numbers.
var (
	values = map[string]*regexp.Regexp{
		"ar":   regexp.MustCompile(`^[1-9][0-9]{0,3}:[1-9][0-9]{0,3}$`),
		"v":    regexp.MustCompile(`^([1-7]|5\.[12]|6\.1)$`),
		"niji": regexp.MustCompile(`^[456]$`), "seed": number, "stylize": number, "chaos": number, "weird": number,
		"repeat": regexp.MustCompile(`^[1-9][0-9]?$`), "zoom": regexp.MustCompile(`^(1(\.[0-9]+)?|2(\.0+)?)$`),
		"tile": nothing, "fast": nothing, "relax": nothing, "turbo": nothing, "raw": regexp.MustCompile(``),
		"no": something, "style": something, "sref": something, "cref": something, "iw": something, "sw": something,
		"cw": something, "quality": something, "q": something, "stop": something,
	}
	maxValues = map[string]uint64{"seed": math.MaxUint32, "stylize": 1000, "chaos": 100, "weird": 3000, "repeat": jobsMax}

	number    = regexp.MustCompile(`^[0-9]{1,10}$`)
	nothing   = regexp.MustCompile(`^$`)
	something = regexp.MustCompile(`.`)
)

// fits reports whether a parameter may have the value.
func fits(name, value string) bool {
	form := values[name]
	if form == nil || !form.MatchString(value) {
		return false
	}
	limit, bounded := maxValues[name]
	n, _ := strconv.ParseUint(value, 10, 64)
	return !bounded || n <= limit
}
