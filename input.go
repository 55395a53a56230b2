package mediagate

import (
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Input is one file of the client's that a request names, with the bounds that
// its model's contract sets: what is judged before anything is submitted. The
// address itself is in the request.
type Input struct {
	Field string `json:"field"` // in the request, as image_urls[1]
	MediaBounds
	Covers *Covers `json:"covers,omitempty"`
}

// MediaBounds are what a file must be. Zero values bound nothing; all bounds
// are themselves allowed.
type MediaBounds struct {
	Kind       string   `json:"kind"`              // "image", "video" or "audio"
	Formats    []string `json:"formats,omitempty"` // as png
	MinSide    int      `json:"min_side,omitempty"`
	MaxSide    int      `json:"max_side,omitempty"` // both in pixels
	MinRatio   Ratio    `json:"min_ratio,omitzero"`
	MaxRatio   Ratio    `json:"max_ratio,omitzero"`
	MinSeconds float64  `json:"min_seconds,omitempty"`
	MaxSeconds float64  `json:"max_seconds,omitempty"`
	MaxBytes   int64    `json:"max_bytes,omitempty"`
}

// Bound reports that there is more to look at than the kind, which a vendor
// finds out by itself.
func (b MediaBounds) Bound() bool {
	return len(b.Formats) > 0 || b.MinSide > 0 || b.MaxSide > 0 || b.MinRatio != (Ratio{}) || b.MaxRatio != (Ratio{}) ||
		b.MinSeconds > 0 || b.MaxSeconds > 0 || b.MaxBytes > 0
}

// Covers is a field of the request that asks for so many seconds of the file.
type Covers struct {
	Field   string  `json:"field"`
	Seconds float64 `json:"seconds"`
}

// Ratio is that of a width to a height. The zero value is none.
type Ratio struct{ Width, Height int64 }

// maxRatioPart keeps comparisons far from overflow.
const maxRatioPart = 1000

// ParseRatio reads two positive integers, as 16:9.
func ParseRatio(s string) (Ratio, error) {
	w, h, _ := strings.Cut(s, ":")
	width, errWidth := strconv.ParseInt(w, 10, 64)
	height, errHeight := strconv.ParseInt(h, 10, 64)
	if errWidth != nil || errHeight != nil || width < 1 || height < 1 || width > maxRatioPart || height > maxRatioPart {
		return Ratio{}, fmt.Errorf("%q is no ratio: write width:height, as 16:9", s)
	}
	return Ratio{Width: width, Height: height}, nil
}

// Less reports whether r is narrower than other.
func (r Ratio) Less(other Ratio) bool { return r.Width*other.Height < other.Width*r.Height }

// String writes it as ParseRatio reads it.
func (r Ratio) String() string { return fmt.Sprintf("%d:%d", r.Width, r.Height) }

// MarshalText writes it as String does.
func (r Ratio) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads it as ParseRatio does.
func (r *Ratio) UnmarshalText(text []byte) (err error) {
	*r, err = ParseRatio(string(text))
	return err
}

// InputCheck is how far the check of a task's inputs has come.
type InputCheck struct {
	Passed  []string `json:"passed,omitempty"` // the fields that were found good
	Tries   int      `json:"tries,omitempty"`  // that ended because a server was away
	Over    bool     `json:"over,omitempty"`   // nothing is left to check
	Failure *Failure `json:"failure,omitempty"`
}

// With is the check together with a later one. One that is over stays as
// it is.
func (c InputCheck) With(later InputCheck) InputCheck {
	if c.Over {
		return c
	}
	for _, field := range c.Passed {
		if !slices.Contains(later.Passed, field) {
			later.Passed = append(later.Passed, field)
		}
	}
	later.Tries = max(later.Tries, c.Tries)
	return later
}

// ResultsFolder is where the files of tasks lie in our bucket.
const ResultsFolder = "results/"

// ResultFolder is where those of one task lie.
func ResultFolder(taskID string) string { return ResultsFolder + taskID + "/" }

// UploadFolder is where the media lie in our bucket that came within requests.
const UploadFolder = "uploads/"

// UploadComing stands for the link of an upload where an adapter is only asked
// about a request.
const UploadComing = "https://uploads.invalid/media"

// UploadKey is the object key of one; id is unique within the account.
func UploadKey(accountID, id string) string { return UploadFolder + accountID + "/" + id }

// FileFolder is where the files lie in our bucket that clients have uploaded for
// a public link, and where they are below our public address.
const FileFolder = "files/"

// FileLife is how long the link of such a file works.
const FileLife = 72 * time.Hour

// File is an uploaded file behind a public link. All that is to be known of it
// stands in its name, which nobody can guess: there is no row of it.
type File struct {
	CreatedAt time.Time // a whole second
	Ext       string    // of its content, with the dot
	secret    string
}

// fileTypes are those of the files that can be uploaded.
var fileTypes = map[string]string{
	".jpg": "image/jpeg", ".png": "image/png", ".webp": "image/webp", ".gif": "image/gif",
	".mp4": "video/mp4", ".mov": "video/quicktime", ".webm": "video/webm",
	".mp3": "audio/mpeg", ".wav": "audio/wav", ".m4a": "audio/mp4", ".ogg": "audio/ogg", ".flac": "audio/flac", ".aac": "audio/aac",
}

// NewFile makes a name for a file of that content; ok is false for a type that
// cannot be uploaded.
func NewFile(now time.Time, mimeType string) (f File, ok bool) {
	for ext, known := range fileTypes {
		if known == mimeType {
			return File{CreatedAt: now.UTC().Truncate(time.Second), Ext: ext, secret: rand.Text()}, true
		}
	}
	return File{}, false
}

// secretLen is the length of rand.Text, which stands for 130 bits.
const secretLen = 26

// ParseFile reads a name that NewFile made; ok is false for any other text.
func ParseFile(name string) (f File, ok bool) {
	seconds, rest, _ := strings.Cut(name, "-")
	at, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil || at <= 0 || len(rest) < secretLen {
		return File{}, false
	}
	f = File{CreatedAt: time.Unix(at, 0).UTC(), Ext: rest[secretLen:], secret: rest[:secretLen]}
	_, known := fileTypes[f.Ext]
	odd := strings.Trim(f.secret, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") != ""
	return f, known && !odd && f.Name() == name
}

// Name is the last part of its link and of its object's key.
func (f File) Name() string {
	return strconv.FormatInt(f.CreatedAt.Unix(), 10) + "-" + f.secret + f.Ext
}

// Key is the object key.
func (f File) Key() string { return FileFolder + f.Name() }

// MimeType is the type of its content.
func (f File) MimeType() string { return fileTypes[f.Ext] }

// ExpiresAt is when its link stops working.
func (f File) ExpiresAt() time.Time { return f.CreatedAt.Add(FileLife) }

// Expired reports whether its link works no more.
func (f File) Expired(now time.Time) bool { return !now.Before(f.ExpiresAt()) }

// Verdict is what moderation says of texts. The zero value lets them through.
type Verdict struct {
	Refused  bool
	Rule     string            // that refuses them, in words of the operator's: never the texts'
	Digest   [sha256.Size]byte // of the text that is refused, as it is compared; the text is kept nowhere
	Unjudged error             // why nobody judged them, where they pass all the same, by the operator's wish
}
