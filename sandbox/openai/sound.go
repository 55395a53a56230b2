package openai

import (
	"io"

	"github.com/mediagate/mediagate/sandbox/sample"
)

// rate is that of the vendor's sound: samples a second, of 16 bits, one channel.
const rate = 24000

// sound makes a file of the format and length, with its type.
func sound(format string, seconds float64) (file *io.SectionReader, mimeType string) {
	switch format {
	case "pcm":
		return sample.PCM(seconds, rate), "audio/pcm"
	case "wav":
		return sample.Wave(seconds, rate), "audio/wav"
	case "opus":
		return sample.Opus(), "audio/opus"
	case "aac":
		return sample.AAC(seconds), "audio/aac"
	case "flac":
		return sample.FLAC(), "audio/flac"
	default:
		return sample.MP3(seconds), "audio/mpeg"
	}
}
