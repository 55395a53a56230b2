package sound

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"time"
)

// One frame of an MP3 of MPEG 1, layer III, 64 kbit/s, 44.1 kHz, mono.
const (
	frameBytes   = 208
	frameSamples = 1152
	mp3Rate      = 44100
)

// MP3 is silence of about that length: whole frames. An empty side information
// says that a frame has nothing to decode.
func MP3(length time.Duration) []byte {
	frame := make([]byte, frameBytes)
	copy(frame, []byte{0xff, 0xfb, 0x50, 0xc0})
	frames := int(math.Ceil(length.Seconds() * mp3Rate / frameSamples))
	return bytes.Repeat(frame, max(frames, 1))
}

const (
	wavRate = 8000
	pitch   = 440 // Hz
	wavHead = 44
)

// WAV is a tone of that length, of 16 bits, mono.
func WAV(length time.Duration) []byte {
	samples := int(length.Seconds() * wavRate)
	out := make([]byte, 0, wavHead+2*samples)
	out = append(out, "RIFF"...)
	out = binary.LittleEndian.AppendUint32(out, uint32(wavHead-8+2*samples))
	out = append(out, "WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00"...)
	out = binary.LittleEndian.AppendUint32(out, wavRate)
	out = binary.LittleEndian.AppendUint32(out, 2*wavRate)
	out = append(out, "\x02\x00\x10\x00data"...)
	out = binary.LittleEndian.AppendUint32(out, uint32(2*samples))
	for i := range samples {
		v := int16(8000 * math.Sin(2*math.Pi*pitch*float64(i)/wavRate))
		out = binary.LittleEndian.AppendUint16(out, uint16(v))
	}
	return out
}

// Padded is the file grown to size by zeros at its end, which players do not
// look at. One that is as long already stays as it is.
func Padded(file []byte, size int64) *io.SectionReader {
	size = max(size, int64(len(file)))
	return io.NewSectionReader(padded{file, size}, 0, size)
}

type padded struct {
	file []byte
	size int64
}

func (p padded) ReadAt(b []byte, off int64) (int, error) {
	n := int(min(int64(len(b)), p.size-off))
	if n <= 0 && len(b) > 0 {
		return 0, io.EOF
	}
	n = max(n, 0)
	clear(b[:n])
	if off < int64(len(p.file)) {
		copy(b[:n], p.file[off:])
	}
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// Kind is the type of what begins so, if it is a sound: its magic number tells.
func Kind(head []byte) (mimeType string, ok bool) {
	at := func(off int, text string) bool {
		return len(head) >= off+len(text) && string(head[off:off+len(text)]) == text
	}
	switch {
	case at(0, "ID3"), len(head) > 1 && head[0] == 0xff && head[1]&0xe6 == 0xe2:
		return "audio/mpeg", true
	case at(0, "RIFF") && at(8, "WAVE"):
		return "audio/wav", true
	case at(0, "fLaC"):
		return "audio/flac", true
	case at(0, "OggS"):
		return "audio/ogg", true
	case at(4, "ftypM4A"):
		return "audio/mp4", true
	default:
		return "", false
	}
}
