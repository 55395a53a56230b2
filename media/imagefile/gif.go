package imagefile

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
)

// The blocks of a GIF.
const (
	gifExtension   = 0x21
	gifImage       = 0x2c
	gifTrailer     = 0x3b
	gifControl     = 0xf9 // how the next frame is shown, and for how long
	gifApplication = 0xff
)

// gifLoops are the applications whose block sets the number of repetitions.
var gifLoops = map[string]bool{"NETSCAPE2.0": true, "ANIMEXTS1.0": true}

// gifLoop is the length of their data: one block and the end.
const gifLoop = 5

// errFrame ends the reading of GIFSides at the first frame.
var errFrame = errors.New("the pixels of a frame begin")

// GIFSides reads a GIF up to the pixels of its first frame and returns its size unchecked. It does
// not stop at the size itself, since any bytes can be read as two numbers. A GIF that ends before
// the frame is io.ErrUnexpectedEOF.
func GIFSides(r io.Reader) (width, height int, err error) {
	c := &copier{r: bufio.NewReader(r), w: bufio.NewWriter(io.Discard), sidesOnly: true}
	err = c.gif()
	switch {
	case errors.Is(err, errFrame):
		return c.info.Width, c.info.Height, nil
	case errors.Is(err, errCut):
		err = io.ErrUnexpectedEOF
	}
	return 0, 0, err
}

func (c *copier) gif() error {
	head, err := c.next(13)
	if err != nil {
		return err
	}
	width, height := int(binary.LittleEndian.Uint16(head[6:])), int(binary.LittleEndian.Uint16(head[8:]))
	if err := c.setSize(width, height); err != nil {
		return err
	}
	if err := c.write(head...); err != nil {
		return err
	}
	if err := c.pass(gifTable(head[10])); err != nil {
		return err
	}
	for frames := 0; ; {
		block, err := c.next(1)
		if err != nil {
			return err
		}
		switch block[0] {
		case gifTrailer:
			if frames == 0 {
				return errNoPixels
			}
			return c.write(gifTrailer)
		case gifExtension:
			err = c.gifExtension()
		case gifImage:
			frames++
			err = c.gifFrame(frames)
		default:
			err = damaged("the block %02X is not known", block[0])
		}
		if err != nil {
			return err
		}
	}
}

// gifTable returns the length of the colour table that flags announce.
func gifTable(flags byte) int64 {
	if flags&0x80 == 0 {
		return 0
	}
	return 3 << (flags&7 + 1)
}

func (c *copier) gifFrame(n int) error {
	head, err := c.next(9)
	if err != nil {
		return err
	}
	number := func(at int) int { return int(binary.LittleEndian.Uint16(head[at:])) }
	if err := c.addFrame(n, number(0), number(2), number(4), number(6)); err != nil {
		return err
	}
	if err := c.write(append([]byte{gifImage}, head...)...); err != nil {
		return err
	}
	if err := c.pass(gifTable(head[8])); err != nil {
		return err
	}
	size, err := c.next(1)
	if err != nil {
		return err
	}
	if size[0] < 2 || size[0] > 8 {
		return damaged("the pixels of a frame have no valid code size")
	}
	if c.sidesOnly {
		return errFrame
	}
	if err := c.write(size[0]); err != nil {
		return err
	}
	return c.gifBlocks(true)
}

// gifBlocks copies or skips blocks up to the empty one that ends them.
func (c *copier) gifBlocks(keep bool) error {
	for {
		length, err := c.next(1)
		if err != nil {
			return err
		}
		n := length[0]
		if keep {
			err = c.write(n)
		}
		switch {
		case err != nil:
		case keep:
			err = c.pass(int64(n))
		default:
			err = c.drop(int64(n))
		}
		if err != nil || n == 0 {
			return err
		}
	}
}

// gifExtension copies an extension that affects how frames are shown and skips all others.
func (c *copier) gifExtension() error {
	head, err := c.next(2)
	if err != nil {
		return err
	}
	kind, length := head[0], int(head[1])
	switch {
	case kind == gifControl:
		b, err := c.next(5)
		if err != nil {
			return err
		}
		if length != 4 || b[4] != 0 {
			return damaged("an extension has another length")
		}
		return c.write(append([]byte{gifExtension, kind, 4}, b...)...)
	case kind == gifApplication && length == 11:
		b, err := c.r.Peek(length + gifLoop)
		if err != nil {
			return cut(err)
		}
		if loop := b[length:]; gifLoops[string(b[:length])] && loop[0] == 3 && loop[1] == 1 && loop[4] == 0 {
			if err := c.write(gifExtension, kind, byte(length)); err != nil {
				return err
			}
			return c.pass(int64(length + gifLoop))
		}
	}
	if err := c.drop(int64(length)); err != nil || length == 0 {
		return err
	}
	return c.gifBlocks(false)
}
