package catalog_test

import (
	"maps"
	"reflect"
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

// fieldSuite are the cases of each operation, under its key. Those of an alias
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

		songs:         songCases(map[string]fieldCase{"voice_id": {`"voice_id":"v"`, "", ""}, "voice_id a number": {`"voice_id":1`, "voice_id", "string"}, "voice_id blank": {`"voice_id":" "`, "voice_id", ""}, "everything of a voice": {`"voice_id":"v"`, "", ""}}),
		remasters:     joined(sourceCases("task_id"), versionCases(), map[string]fieldCase{"everything": {`"task_id":"t","audio_index":2,"version":"v5.5"`, "", ""}}),
		stemsAll:      joined(sourceCases("task_id"), map[string]fieldCase{"version anything": {`"version":[1]`, "", ""}}),
		voices:        voiceCases(),
		replacements:  joined(sourceCases("task_id"), sectionCases(true), replaceCases()),
		samples:       songCases(joined(sourceCases("task_id"), sectionCases(false), map[string]fieldCase{"everything of the sample": {`"start_s":0,"end_s":9`, "", ""}})),
		flowSongs:     flowSongCases(),
		flowStems:     sourceCases("clip_id"),
		flowReplacing: joined(sourceCases("clip_id"), sectionCases(true), flowReplaceCases()),
	}
	addArt(suite)
	for key, cases := range suite {
		if !strings.Contains(key, " ") { // the others are found by the endpoint, whatever the body says
			maps.Copy(cases, modelCases())
		}
		if key != "eta-4o-mini-tts" { // which makes no tasks
			maps.Copy(cases, taskCases())
		}
	}
	return suite
}

// modelCases are for models that a body names to the letter.
func modelCases() map[string]fieldCase {
	return map[string]fieldCase{
		"model null":       {`"model":null`, "model", "is required"},
		"model of another": {`"model":"alpha-v1"`, "model", ""},
	}
}

// taskCases are for the fields that all models have whose requests make tasks.
func taskCases() map[string]fieldCase {
	return map[string]fieldCase{
		"webhook a text":     {`"webhook":"nonsense"`, "", ""},
		"webhook empty":      {`"webhook":""`, "", ""},
		"webhook null":       {`"webhook":null`, "", ""},
		"webhook a number":   {`"webhook":1`, "webhook", "string"},
		"metadata null":      {`"metadata":null`, "", ""},
		"metadata empty":     {`"metadata":{}`, "", ""},
		"metadata a list":    {`"metadata":[]`, "metadata", "object"},
		"metadata of all":    {`"metadata":{"a":[1,{}],"reference":"r"}`, "", ""},
		"reference of 255":   {`"metadata":{"reference":` + quoted("é", 255) + `}`, "", ""},
		"reference of 256":   {`"metadata":{"reference":` + quoted("é", 256) + `}`, "metadata.reference", "255"},
		"reference a number": {`"metadata":{"reference":1}`, "metadata.reference", "string"},
	}
}

// TestFieldCases accepts or refuses each body of the suite, under the model's id and its aliases.
// Accept must not change the body, and an accepted request can be made again.
func TestFieldCases(t *testing.T) {
	t.Parallel()
	suite := fieldSuite()
	for _, o := range operations(t) {
		cases := suite[o.cases]
		if len(cases) == 0 {
			t.Errorf("%s has no cases", o.key)
		}
		t.Run(o.key, func(t *testing.T) {
			t.Parallel()
			runFieldCases(t, o.key, cases)
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
			text := body(t, id, tt.fields)
			given := parse(t, text)
			r, err := o.Accept(given)
			if !reflect.DeepEqual(parse(t, text), given) {
				t.Error("the body was changed")
			}
			if tt.param == "" {
				if err != nil {
					t.Fatalf("refused: %v", err)
				}
				again(t, o, r)
				return
			}
			if message := refusal(t, err, tt.param); !strings.Contains(message, tt.rule) {
				t.Errorf("message %q lacks %q", message, tt.rule)
			}
		})
	}
}
