package sample

import (
	"bufio"
	"encoding/binary"
	"image/color"
	"io"
)

// writeWebP writes the grid as lossless WebP. Green and red each have one of two values, so a
// simple prefix code of two symbols suffices and a pixel takes two bits. The format's bits begin
// with the least significant one.
func writeWebP(w io.Writer, g grid) error {
	var head leastFirst
	head.u(8, 0x2f)
	head.u(14, uint64(g.width-1))
	head.u(14, uint64(g.height-1))
	head.u(1, 0) // no alpha
	head.u(3, 0) // version
	head.u(1, 0) // no transform
	head.u(1, 0) // no colour cache
	head.u(1, 0) // one set of codes for all of it
	c := quarters[0].(color.NRGBA)
	d := quarters[3].(color.NRGBA)
	head.pair(c.G, d.G)
	head.pair(c.R, d.R)
	head.one(c.B)
	head.one(c.A)
	head.one(0) // distances, which do not occur

	bits := int64(len(head.buf))*8 + int64(head.held) + 2*int64(g.width)*int64(g.height)
	data := (bits + 7) / 8
	out := bufio.NewWriter(w)
	file := binary.LittleEndian.AppendUint32([]byte("RIFF"), uint32(12+data+data%2))
	file = binary.LittleEndian.AppendUint32(append(file, "WEBPVP8L"...), uint32(data))
	_, _ = out.Write(file) // Flush returns the error
	for y := range g.height {
		for x := range g.width {
			head.u(2, uint64(g.ColorIndexAt(x, y))) // green in the lower bit, red above it
		}
		_, _ = out.Write(head.buf)
		head.buf = head.buf[:0]
	}
	head.align()
	if data%2 == 1 {
		head.buf = append(head.buf, 0)
	}
	_, _ = out.Write(head.buf)
	return out.Flush()
}

// leastFirst builds a bit stream, least significant bit first.
type leastFirst struct {
	buf  []byte
	acc  uint64
	held uint
}

func (w *leastFirst) u(n uint, v uint64) {
	w.acc |= v << w.held
	w.held += n
	for ; w.held >= 8; w.held -= 8 {
		w.buf = append(w.buf, byte(w.acc))
		w.acc >>= 8
	}
}

// pair writes a prefix code of two symbols of eight bits. The first is written as the bit 0.
func (w *leastFirst) pair(zero, one uint8) {
	w.u(1, 1) // simple
	w.u(1, 1) // two symbols
	w.u(1, 1) // the first has eight bits
	w.u(8, uint64(zero))
	w.u(8, uint64(one))
}

// one writes a prefix code of one symbol. The symbol itself takes no bits.
func (w *leastFirst) one(v uint8) {
	w.u(1, 1)
	w.u(1, 0)
	w.u(1, 1)
	w.u(8, uint64(v))
}

func (w *leastFirst) align() {
	if w.held > 0 {
		w.u(8-w.held, 0)
	}
}
