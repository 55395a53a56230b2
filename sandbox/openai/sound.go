package openai

import (
	"io"

	"github.com/mediagate/mediagate/sandbox/sample"
)

// rate is the sample rate of the vendor's sound, in Hz. A sample has 16 bits and one channel.
const rate = 24000

// sound returns a file of the format and length, with its MIME type.
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
