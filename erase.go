package mediagate

import "encoding/json"

// What is left of a task when its inputs are erased at its end, as an account may
// wish: the results, and how it came to them. What a vendor wrote goes as well,
// since it may repeat the prompt. The words of a song and the names of its clips
// are results, whoever wrote them first.

// NoParams are the parameters of a task whose request is erased.
var NoParams = json.RawMessage(`{}`)

// Wordless is the failure without its message, which readers are told by the
// code; nil for none.
func (f *Failure) Wordless() *Failure {
	if f == nil {
		return nil
	}
	return &Failure{Code: f.Code, Retryable: f.Retryable}
}

// WithoutPrompt is what was made, but for the prompt; nil for nothing.
func (m *Made) WithoutPrompt() *Made {
	if m == nil {
		return nil
	}
	kept := *m
	kept.Prompt = ""
	return &kept
}

// WithoutInputs is the outcome without what may repeat the request.
func (o Outcome) WithoutInputs() Outcome {
	o.Failure, o.Made, o.VendorText = o.Failure.Wordless(), o.Made.WithoutPrompt(), ""
	return o
}

// Bare is the outcome without what it made: how it ended, and what it cost.
func (o Outcome) Bare() Outcome {
	return Outcome{Succeeded: o.Succeeded, Failure: o.Failure.Wordless(), Seconds: o.Seconds, VendorCharge: o.VendorCharge}
}

// WithoutInputs is the plan of a task that has ended, without what it took from
// the request. The keys of uploads stay until their objects are gone.
func (p Plan) WithoutInputs() Plan {
	p.Inputs, p.Source, p.Skipped = nil, nil, nil
	return p
}

// WithoutInputs is the task as readers see it once its inputs are erased.
func (t Task) WithoutInputs() Task {
	t.Params, t.Modal.Input = NoParams, nil
	t.Plan, t.Made, t.Failure = t.Plan.WithoutInputs(), t.Made.WithoutPrompt(), t.Failure.Wordless()
	return t
}
