package mediagate

import "crypto/sha256"

// Verdict is what moderation says of texts. The zero value lets them through.
type Verdict struct {
	Refused  bool
	Rule     string            // that refuses them, in words of the operator's: never the texts'
	Digest   [sha256.Size]byte // of the text that is refused, as it is compared; the text is kept nowhere
	Unjudged error             // why nobody judged them, where they pass all the same, by the operator's wish
}
