package mediainfo

import (
	"strings"

	"github.com/gabriel-vasile/mimetype"
)

// SniffLen is the number of bytes that Detect uses.
const SniffLen = 3072

// Class is the class of a media format.
type Class string

// The classes of media.
const (
	ClassVideo Class = "video"
	ClassImage Class = "image"
	ClassAudio Class = "audio"
)

// The formats whose headers are read.
const (
	mimePNG  = "image/png"
	mimeJPEG = "image/jpeg"
	mimeGIF  = "image/gif"
	mimeWebP = "image/webp"
	mimeMP4  = "video/mp4"
	mimeMOV  = "video/quicktime"
	mimeM4A  = "audio/mp4"
	mimeMP3  = "audio/mpeg"
	mimeWAV  = "audio/wav"
	mimeOGG  = "audio/ogg"
	mimeFLAC = "audio/flac"
	mimeAAC  = "audio/aac"
)

// Format is a type of file that the gateway stores.
type Format struct {
	MIME  string
	Class Class
	Ext   string // with its dot
}

// Word returns the format's short name: png, jpeg, mp4.
func (f Format) Word() string {
	if f.MIME == mimeJPEG {
		return "jpeg"
	}
	return strings.TrimPrefix(f.Ext, ".")
}

// Words returns the short names of all formats of a class.
func Words(c Class) []string {
	var words []string
	for _, mime := range []string{
		mimePNG, mimeJPEG, mimeWebP, mimeGIF, "image/avif", mimeMP4, mimeMOV, "video/webm",
		mimeMP3, mimeWAV, mimeM4A, mimeOGG, mimeFLAC, mimeAAC,
	} {
		if f, _ := FormatOf(mime); f.Class == c {
			words = append(words, f.Word())
		}
	}
	return words
}

// FormatOf returns the format of a media type. ok is false for a type that the gateway does not
// store: types that can hold scripts, such as SVG, and types that browsers do not show.
func FormatOf(mimeType string) (f Format, ok bool) {
	switch mimeType {
	case mimeMP4, "video/x-m4v":
		return Format{MIME: mimeMP4, Class: ClassVideo, Ext: ".mp4"}, true
	case mimeMOV:
		return Format{MIME: mimeType, Class: ClassVideo, Ext: ".mov"}, true
	case "video/webm":
		return Format{MIME: mimeType, Class: ClassVideo, Ext: ".webm"}, true
	case mimePNG, "image/apng":
		return Format{MIME: mimePNG, Class: ClassImage, Ext: ".png"}, true
	case mimeJPEG:
		return Format{MIME: mimeType, Class: ClassImage, Ext: ".jpg"}, true
	case mimeGIF:
		return Format{MIME: mimeType, Class: ClassImage, Ext: ".gif"}, true
	case mimeWebP:
		return Format{MIME: mimeType, Class: ClassImage, Ext: ".webp"}, true
	case "image/avif":
		return Format{MIME: mimeType, Class: ClassImage, Ext: ".avif"}, true
	case mimeMP3:
		return Format{MIME: mimeType, Class: ClassAudio, Ext: ".mp3"}, true
	case mimeWAV:
		return Format{MIME: mimeType, Class: ClassAudio, Ext: ".wav"}, true
	case mimeM4A, "audio/x-m4a":
		return Format{MIME: mimeM4A, Class: ClassAudio, Ext: ".m4a"}, true
	case mimeOGG:
		return Format{MIME: mimeType, Class: ClassAudio, Ext: ".ogg"}, true
	case mimeFLAC:
		return Format{MIME: mimeType, Class: ClassAudio, Ext: ".flac"}, true
	case mimeAAC:
		return Format{MIME: mimeType, Class: ClassAudio, Ext: ".aac"}, true
	}
	return Format{}, false
}

// Detect returns the format of a file that begins with head. detected is the type found, even if the
// gateway does not store it.
func Detect(head []byte) (f Format, detected string, ok bool) {
	if len(head) > SniffLen {
		head = head[:SniffLen]
	}
	detected = mimetype.Detect(head).String()
	f, ok = FormatOf(detected)
	return f, detected, ok
}
