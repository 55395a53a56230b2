package mediagate

// PartState is how far one call of a job that takes several has come.
type PartState string

// intent → done | refused | unknown; unknown → done | refused; refused →
// intent where the vendor only refused for now.
const (
	PartIntent  PartState = "intent"  // stored before the call
	PartDone    PartState = "done"    // what it made is on record
	PartRefused PartState = "refused" // proven: it made nothing
	PartUnknown PartState = "unknown" // it may have made something that nobody has
)
