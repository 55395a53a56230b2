package openai

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// soundHead returns the number of bytes of an answer that mayBeginWith checks. They are enough to
// recognize the format. Samples (pcm) have no header. For them mayBeginWith only checks that the bytes
// are neither text nor the beginning of another file.
func soundHead(format string) int {
	switch format {
	case "opus":
		return 36
	case "wav":
		return 12
	case "pcm":
		return 16
	}
	return 4
}

// mayBeginWith reports whether sound of the format may begin with head. Content types of answers
// are too unreliable for this check.
func mayBeginWith(format string, head []byte) bool {
	switch format {
	case "mp3", "":
		// The mask matches frames of MPEG layer III.
		return bytes.HasPrefix(head, []byte("ID3")) || len(head) > 1 && head[0] == 0xff && head[1]&0xe6 == 0xe2
	case "opus":
		return bytes.HasPrefix(head, []byte("OggS")) && bytes.Contains(head, []byte("OpusHead"))
	case "aac":
		return bytes.HasPrefix(head, []byte("ID3")) || len(head) > 1 && head[0] == 0xff && head[1]&0xf6 == 0xf0
	case "flac":
		return bytes.HasPrefix(head, []byte("fLaC"))
	case "wav":
		return len(head) >= 12 && string(head[:4]) == "RIFF" && string(head[8:12]) == "WAVE"
	}
	return !isText(head) && !isFile(head) // samples have no header
}

// isText reports whether all bytes may belong to a text.
func isText(head []byte) bool {
	for len(head) >= utf8.UTFMax || len(head) > 0 && utf8.FullRune(head) {
		r, n := utf8.DecodeRune(head)
		if r == utf8.RuneError && n == 1 || unicode.IsControl(r) && !unicode.IsSpace(r) {
			return false
		}
		head = head[n:]
	}
	return true
}

// isFile reports whether the bytes are the beginning of a file of another kind.
func isFile(head []byte) bool {
	for _, magic := range []string{
		"RIFF", "OggS", "fLaC", "ID3\x02", "ID3\x03", "ID3\x04",
		"\x89PNG", "GIF8", "\xff\xd8\xff\xe0", "\xff\xd8\xff\xe1", "%PDF", "PK\x03\x04",
		"\xff\xfe<\x00", "\xff\xfe{\x00", "\xfe\xff\x00<", "\xfe\xff\x00{", // documents in UTF-16
	} {
		if bytes.HasPrefix(head, []byte(magic)) {
			return true
		}
	}
	return false
}
