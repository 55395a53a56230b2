package mediainfo

import "github.com/gabriel-vasile/mimetype"

// SniffLen is the number of bytes that Detect makes use of.
const SniffLen = 3072

// Class is the kind of media that a caller waits for.
type Class string

// The classes of media.
const (
	ClassVideo Class = "video"
	ClassImage Class = "image"
	ClassAudio Class = "audio"
)

// Format is a type of file that we store.
type Format struct {
	MIME  string
	Class Class
	Ext   string // with its dot
}

// formatOf translates a detected type. Types that can carry script, such as
// SVG, and those that browsers don't show are left out on purpose.
func formatOf(detected string) (Format, bool) {
	switch detected {
	case "video/mp4", "video/x-m4v":
		return Format{MIME: "video/mp4", Class: ClassVideo, Ext: ".mp4"}, true
	case "video/quicktime":
		return Format{MIME: detected, Class: ClassVideo, Ext: ".mov"}, true
	case "video/webm":
		return Format{MIME: detected, Class: ClassVideo, Ext: ".webm"}, true
	case "image/png", "image/apng":
		return Format{MIME: "image/png", Class: ClassImage, Ext: ".png"}, true
	case "image/jpeg":
		return Format{MIME: detected, Class: ClassImage, Ext: ".jpg"}, true
	case "image/gif":
		return Format{MIME: detected, Class: ClassImage, Ext: ".gif"}, true
	case "image/webp":
		return Format{MIME: detected, Class: ClassImage, Ext: ".webp"}, true
	case "image/avif":
		return Format{MIME: detected, Class: ClassImage, Ext: ".avif"}, true
	case "audio/mpeg":
		return Format{MIME: detected, Class: ClassAudio, Ext: ".mp3"}, true
	case "audio/wav":
		return Format{MIME: detected, Class: ClassAudio, Ext: ".wav"}, true
	case "audio/mp4", "audio/x-m4a":
		return Format{MIME: "audio/mp4", Class: ClassAudio, Ext: ".m4a"}, true
	case "audio/ogg":
		return Format{MIME: detected, Class: ClassAudio, Ext: ".ogg"}, true
	case "audio/flac":
		return Format{MIME: detected, Class: ClassAudio, Ext: ".flac"}, true
	case "audio/aac":
		return Format{MIME: detected, Class: ClassAudio, Ext: ".aac"}, true
	}
	return Format{}, false
}

// Detect names the format of a file that begins with head. detected is the
// type as found, whether or not it is one that we store.
func Detect(head []byte) (f Format, detected string, ok bool) {
	if len(head) > SniffLen {
		head = head[:SniffLen]
	}
	detected = mimetype.Detect(head).String()
	f, ok = formatOf(detected)
	return f, detected, ok
}
