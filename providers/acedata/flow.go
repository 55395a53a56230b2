package acedata

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

var flowSongFields = []string{"sound_prompt", "lyrics", "title", "bpm", "length", "seed"}

// newFlowSong writes a song from lyrics, a description of its sound, or both. The vendor has no
// fields for tempo and length, so the prompt states them, as in "90 BPM".
func newFlowSong(job mediagate.Job) (*wire, error) {
	var p struct {
		SoundPrompt string      `json:"sound_prompt"`
		Lyrics      string      `json:"lyrics"`
		Title       string      `json:"title"`
		BPM         json.Number `json:"bpm"`
		Length      json.Number `json:"length"`
		Seed        json.Number `json:"seed"`
	}
	if err := vendorhttp.DecodeParams(job.Params, &p, flowSongFields...); err != nil {
		return nil, err
	}
	sound := []string{p.SoundPrompt}
	if p.BPM != "" {
		sound = append(sound, formatInteger(p.BPM)+" BPM")
	}
	if p.Length != "" {
		sound = append(sound, "about "+formatInteger(p.Length)+" seconds long")
	}
	sound = slices.DeleteFunc(sound, func(s string) bool { return s == "" })
	custom := p.Lyrics != ""
	return newRequest(job, body{
		Action: "generate", Model: job.Upstream, Custom: &custom,
		Prompt: strings.Join(sound, ", "), Lyric: p.Lyrics, Title: p.Title, Seed: formatInteger(p.Seed),
	}), nil
}

var flowReplaceFields = []string{"start_s", "end_s", "instruction", "title", "seed"}

// newFlowReplace writes the replacement of a section by an instruction.
func newFlowReplace(job mediagate.Job) (*wire, error) {
	var p struct {
		Start       json.Number `json:"start_s"`
		End         json.Number `json:"end_s"`
		Instruction string      `json:"instruction"`
		Title       string      `json:"title"`
		Seed        json.Number `json:"seed"`
	}
	if err := vendorhttp.DecodeParams(job.Params, &p, flowReplaceFields...); err != nil {
		return nil, err
	}
	custom := false
	w := newRequest(job, body{
		Action: "replace_section", Model: job.Upstream, Custom: &custom, Prompt: p.Instruction,
		Start: vendorhttp.RoundToHundredth(p.Start), End: vendorhttp.RoundToHundredth(p.End),
		Title: p.Title, Seed: formatInteger(p.Seed),
	})
	return w, w.setSource(job.Source, clipField)
}
