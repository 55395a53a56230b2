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

// Input is one file of a client's request, with the bounds of the model's contract. It is checked
// before anything is submitted. The request has the address.
type Input struct {
	Field string `json:"field"` // in the request, such as image_urls[1]
	MediaBounds
	Covers *Covers `json:"covers,omitempty"`
}

// MediaBounds are the bounds of a file. They are inclusive, and zero values mean no bound.
type MediaBounds struct {
	Kind       string   `json:"kind"`              // "image", "video" or "audio"
	Formats    []string `json:"formats,omitempty"` // such as png
	MinSide    int      `json:"min_side,omitempty"`
	MaxSide    int      `json:"max_side,omitempty"` // MinSide and MaxSide are in pixels
	MinRatio   Ratio    `json:"min_ratio,omitzero"`
	MaxRatio   Ratio    `json:"max_ratio,omitzero"`
	MinSeconds float64  `json:"min_seconds,omitempty"`
	MaxSeconds float64  `json:"max_seconds,omitempty"`
	MaxBytes   int64    `json:"max_bytes,omitempty"`
}

// Bound reports whether there is more to check than the kind, which a vendor checks itself.
func (b MediaBounds) Bound() bool {
	return len(b.Formats) > 0 || b.MinSide > 0 || b.MaxSide > 0 || b.MinRatio != (Ratio{}) || b.MaxRatio != (Ratio{}) ||
		b.MinSeconds > 0 || b.MaxSeconds > 0 || b.MaxBytes > 0
}

// Covers names a field of the request that asks for this many seconds of the file.
type Covers struct {
	Field   string  `json:"field"`
	Seconds float64 `json:"seconds"`
}

// Ratio is the ratio of a width to a height. The zero value means none.
type Ratio struct{ Width, Height int64 }

// maxRatioPart keeps comparisons far from overflow.
const maxRatioPart = 1000

// ParseRatio parses two positive integers, such as 16:9.
func ParseRatio(s string) (Ratio, error) {
	w, h, _ := strings.Cut(s, ":")
	width, errWidth := strconv.ParseInt(w, 10, 64)
	height, errHeight := strconv.ParseInt(h, 10, 64)
	if errWidth != nil || errHeight != nil || width < 1 || height < 1 || width > maxRatioPart || height > maxRatioPart {
		return Ratio{}, fmt.Errorf("%q is not a ratio: write width:height, such as 16:9", s)
	}
	return Ratio{Width: width, Height: height}, nil
}

// Less reports whether r is narrower than other.
func (r Ratio) Less(other Ratio) bool { return r.Width*other.Height < other.Width*r.Height }

// String formats the ratio as ParseRatio reads it.
func (r Ratio) String() string { return fmt.Sprintf("%d:%d", r.Width, r.Height) }

// MarshalText formats the ratio like String.
func (r Ratio) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText parses the ratio like ParseRatio.
func (r *Ratio) UnmarshalText(text []byte) (err error) {
	*r, err = ParseRatio(string(text))
	return err
}

// InputCheck is the progress of the check of a task's inputs.
type InputCheck struct {
	Passed  []string `json:"passed,omitempty"` // the fields that have passed
	Tries   int      `json:"tries,omitempty"`  // attempts that ended because a server was away
	Over    bool     `json:"over,omitempty"`   // nothing is left to check
	Failure *Failure `json:"failure,omitempty"`
}

// With merges a later check into this one. A check that is over stays as it is.
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

// ResultsFolder is the folder of the bucket for the files of tasks.
const ResultsFolder = "results/"

// ResultFolder returns the folder for the files of one task.
func ResultFolder(taskID string) string { return ResultsFolder + taskID + "/" }

// UploadFolder is the folder of the bucket for media from the bodies of requests.
const UploadFolder = "uploads/"

// UploadComing stands for the link of an upload when an adapter is only asked about a request.
const UploadComing = "https://uploads.invalid/media"

// UploadKey returns the object key of an upload. The id is unique within the account.
func UploadKey(accountID, id string) string { return UploadFolder + accountID + "/" + id }

// FileFolder is the folder of the bucket for uploads with a public link, and their path below our
// public address.
const FileFolder = "files/"

// FileLife is how long the link of such an upload works.
const FileLife = 72 * time.Hour

// File is an upload behind a public link. Its name holds all that is known about it, and cannot
// be guessed. It has no row in the database.
type File struct {
	CreatedAt time.Time // in whole seconds
	Ext       string    // the extension for its content, with the dot
	secret    string
}

// fileTypes are the media types that can be uploaded.
var fileTypes = map[string]string{
	".jpg": "image/jpeg", ".png": "image/png", ".webp": "image/webp", ".gif": "image/gif",
	".mp4": "video/mp4", ".mov": "video/quicktime", ".webm": "video/webm",
	".mp3": "audio/mpeg", ".wav": "audio/wav", ".m4a": "audio/mp4", ".ogg": "audio/ogg", ".flac": "audio/flac",
	".aac": "audio/aac",
}

// NewFile makes the name of a file with this content. ok is false for a type that cannot be
// uploaded.
func NewFile(now time.Time, mimeType string) (f File, ok bool) {
	for ext, known := range fileTypes {
		if known == mimeType {
			return File{CreatedAt: now.UTC().Truncate(time.Second), Ext: ext, secret: rand.Text()}, true
		}
	}
	return File{}, false
}

// secretLen is the length of rand.Text, which has 130 bits.
const secretLen = 26

// ParseFile parses a name that NewFile made. ok is false for any other text.
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

// Name is the last part of the link and of the object's key.
func (f File) Name() string {
	return strconv.FormatInt(f.CreatedAt.Unix(), 10) + "-" + f.secret + f.Ext
}

// Key is the object key.
func (f File) Key() string { return FileFolder + f.Name() }

// MimeType returns the type of the content.
func (f File) MimeType() string { return fileTypes[f.Ext] }

// ExpiresAt is when the link stops working.
func (f File) ExpiresAt() time.Time { return f.CreatedAt.Add(FileLife) }

// Expired reports whether the link has stopped working.
func (f File) Expired(now time.Time) bool { return !now.Before(f.ExpiresAt()) }

// Verdict is the result of a moderation check. The zero value lets the texts pass.
type Verdict struct {
	Refused   bool
	Rule      string            // the rule that refuses them, in the operator's words and never the texts'
	Digest    [sha256.Size]byte // of the refused text in its compared form; the text itself is not kept
	Unchecked error             // why the texts pass unchecked, as the operator has chosen
}
