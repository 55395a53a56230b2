package mediagate

// SpeechState is how far the money of a speech has come.
type SpeechState string

// A speech is open until its hold is posted or voided, once.
const (
	SpeechOpen   SpeechState = "open"
	SpeechPosted SpeechState = "posted"
	SpeechVoided SpeechState = "voided"
)

// Speech is a request that is answered with sound while a vendor still speaks:
// no task, but something for its hold to hang on. It knows neither the text nor
// the sound.
type Speech struct {
	ID        string
	AccountID string
	KeyID     string
	RequestID string
	Model     string   // as the client named it
	Charges   []Charge // the chosen prices
	Hold      Micros   // what Charges add up to
}
