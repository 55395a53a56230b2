package sample

import (
	"encoding/binary"
	"io"
	"math"
)

// A frame of MP3: MPEG 1, layer III, 48 kHz, 32 kbit/s, one channel. All frames have the same
// size. The side information of a frame says that no sound follows, which makes it silent.
const (
	mp3FrameLen = 96
	mp3Samples  = 1152
	mp3Rate     = 48000
	mp3Head     = "\xff\xfb\x14\xc0"
	mp3SideLen  = 17
)

// MP3 returns silence of the given length, in whole frames of 24 ms. Its memory does not depend
// on the length. The first frame is an Info header with the number of frames that follow.
func MP3(seconds float64) *io.SectionReader {
	frames := max(1, int64(math.Round(seconds*mp3Rate/mp3Samples)))
	frame := make([]byte, mp3FrameLen)
	copy(frame, mp3Head)
	info := append([]byte(mp3Head), make([]byte, mp3SideLen)...)
	info = append(info, "Info\x00\x00\x00\x03"...) // the numbers of frames and of bytes
	info = binary.BigEndian.AppendUint32(info, uint32(frames))
	info = binary.BigEndian.AppendUint32(info, uint32((frames+1)*mp3FrameLen))
	info = append(info, make([]byte, mp3FrameLen-len(info))...)
	var s sections
	s.addBytes(info)
	s.add(frames*mp3FrameLen, repeated(frame))
	return io.NewSectionReader(&s, 0, s.size)
}
