package mediainfo

import (
	"bufio"
	"encoding/binary"
	"io"
)

const (
	gifHeadLen  = 13 // signature and screen
	gifFrameLen = 9  // of a frame behind its mark
	gifTable    = 0x80

	gifExtension = 0x21
	gifFrame     = 0x2c
)

// findFrame reads a GIF up to its first frame. The screen in front of it is no
// more than four numbers, as which any bytes can be read.
func findFrame(in io.Reader) error {
	r := bufio.NewReader(in)
	var head [gifHeadLen]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	if err := skipColors(r, head[10]); err != nil {
		return err
	}
	for {
		mark, err := r.ReadByte()
		if err != nil {
			return err
		}
		switch mark {
		case gifExtension:
			if err := skipExtension(r); err != nil {
				return err
			}
		case gifFrame:
			return readFrame(r)
		default:
			return unreadable
		}
	}
}

// skipColors steps over the table of colors that the flags announce.
func skipColors(r *bufio.Reader, flags byte) error {
	if flags&gifTable == 0 {
		return nil
	}
	_, err := r.Discard(3 << (flags&7 + 1))
	return err
}

// skipExtension steps over a label and the blocks that follow.
func skipExtension(r *bufio.Reader) error {
	if _, err := r.Discard(1); err != nil {
		return err
	}
	for {
		n, err := r.ReadByte()
		if err != nil || n == 0 {
			return err
		}
		if _, err := r.Discard(int(n)); err != nil {
			return err
		}
	}
}

// readFrame reads the head of a frame, up to the first block of its pixels.
func readFrame(r *bufio.Reader) error {
	var frame [gifFrameLen]byte
	if _, err := io.ReadFull(r, frame[:]); err != nil {
		return err
	}
	if err := skipColors(r, frame[8]); err != nil {
		return err
	}
	bits, err := r.ReadByte()
	if err != nil {
		return err
	}
	if word16(frame[4:]) == 0 || word16(frame[6:]) == 0 || bits < 2 || bits > 8 {
		return unreadable
	}
	return nil
}

func word16(b []byte) int { return int(binary.LittleEndian.Uint16(b)) }
