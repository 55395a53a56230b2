package catalog_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// fieldCase is one body and, when it is to be refused, the field that the
// error must name and a word of the rule.
type fieldCase struct {
	fields string
	param  string // empty: accepted
	rule   string
}

// fieldSuite are the cases of each model, under its own id. Those of an alias
// are the same.
func fieldSuite() map[string]map[string]fieldCase {
	suite := map[string]map[string]fieldCase{
		"alpha-v3":                     alphaV3Cases(),
		"alpha-video-o1":               alphaVideoO1Cases(),
		"beta-q3":                      betaQ3Cases(),
		"beta-q3-mix":                  betaQ3MixCases(),
		"delta-02":                     delta02Cases(),
		"delta-2.3":                    delta23Cases(),
		"delta-H3":                     deltaH3Cases(),
		"epsilon3.1-fast-official":     epsilonCases(),
		"epsilon3.1-quality-official":  epsilonCases(),
		"eta-4o-mini-tts":              etaCases(),
		"gamma2.6":                     gamma26Cases(),
		"gamma2.7-videoedit":           gamma27Cases(),
		"theta-image-turbo":            thetaCases(),
		"zeta-3.1-flash-image-preview": zetaCases(),
	}
	for id, cases := range suite {
		cases["model null"] = fieldCase{`"model":null`, "model", "is required"}
		cases["model of another"] = fieldCase{`"model":"alpha-v1"`, "model", ""}
		if id != "eta-4o-mini-tts" { // which makes no tasks
			maps.Copy(cases, taskCases())
		}
	}
	return suite
}

// taskCases are for the fields that all models have whose requests make tasks.
func taskCases() map[string]fieldCase {
	return map[string]fieldCase{
		"webhook a text":     {`"webhook":"nonsense"`, "", ""},
		"webhook empty":      {`"webhook":""`, "", ""},
		"webhook null":       {`"webhook":null`, "", ""},
		"webhook a number":   {`"webhook":1`, "webhook", "string"},
		"webhook a list":     {`"webhook":[]`, "webhook", "string"},
		"metadata null":      {`"metadata":null`, "", ""},
		"metadata empty":     {`"metadata":{}`, "", ""},
		"metadata a list":    {`"metadata":[]`, "metadata", "object"},
		"metadata a text":    {`"metadata":"x"`, "metadata", "object"},
		"metadata of all":    {`"metadata":{"a":[1,{}],"reference":"r"}`, "", ""},
		"reference of 255":   {`"metadata":{"reference":` + quoted("é", 255) + `}`, "", ""},
		"reference of 256":   {`"metadata":{"reference":` + quoted("é", 256) + `}`, "metadata.reference", "255"},
		"reference a number": {`"metadata":{"reference":1}`, "metadata.reference", "string"},
	}
}

// TestFieldCases judges each body of the suite, under the model's id and its
// aliases.
func TestFieldCases(t *testing.T) {
	t.Parallel()
	suite := fieldSuite()
	for _, m := range load(t).Models() {
		cases := suite[m.Canonical]
		if len(cases) == 0 {
			t.Errorf("%s has no cases", m.ID)
		}
		t.Run(m.ID, func(t *testing.T) {
			t.Parallel()
			runFieldCases(t, m.ID, cases)
		})
	}
}

func runFieldCases(t *testing.T, id string, cases map[string]fieldCase) {
	t.Helper()
	o := operation(t, id)
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		tt := cases[name]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := o.Accept(parse(t, body(t, id, tt.fields)))
			if tt.param == "" {
				if err != nil {
					t.Fatalf("refused: %v", err)
				}
				return
			}
			if message := refusal(t, err, tt.param); !strings.Contains(message, tt.rule) {
				t.Errorf("message %q lacks %q", message, tt.rule)
			}
		})
	}
}
