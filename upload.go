package mediagate

import (
	"crypto/rand"
	"strconv"
	"strings"
	"time"
)

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
var fileTypes = map[string]string{".jpg": "image/jpeg", ".png": "image/png", ".webp": "image/webp", ".gif": "image/gif"}

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
