package sample

import "slices"

// Kinds of NAL units, with nal_ref_idc 3.
const (
	nalSlice = 0x61
	nalIDR   = 0x65
	nalSPS   = 0x67
	nalPPS   = 0x68
)

// Macroblock types of an I slice, and modes of chroma prediction.
const (
	mbVertical   = 1 // Intra 16x16, copies the row above, no residual
	mbHorizontal = 2 // Intra 16x16, copies the column to the left, no residual
	mbPCM        = 25

	chromaHorizontal = 1
	chromaVertical   = 2
)

// yuv is one colour in limited range.
type yuv struct{ y, u, v byte }

// The bars, from left to right, and the stripe of a watermarked file.
var (
	bars = [...]yuv{
		{180, 128, 128},
		{168, 44, 136},
		{145, 147, 44},
		{133, 63, 52},
		{63, 193, 204},
		{51, 109, 212},
		{28, 212, 120},
		{16, 128, 128},
	}
	stripe = yuv{235, 128, 128}
)

// stripeRows is the height of a watermark in macroblocks.
const stripeRows = 2

// encoder writes the NAL units of one stream: constrained baseline, CAVLC,
// one slice a picture, deblocking off.
type encoder struct {
	width, height int // pixels
	cols, rows    int // macroblocks
	watermark     bool
}

func newEncoder(width, height int, watermark bool) *encoder {
	return &encoder{width: width, height: height, cols: (width + 15) / 16, rows: (height + 15) / 16, watermark: watermark}
}

// level returns the lowest level that allows pictures of this size at 24 a second.
func (e *encoder) level() byte {
	switch n := e.cols * e.rows; {
	case n <= 3600:
		return 31
	case n <= 8192:
		return 40
	case n <= 36864:
		return 51
	default:
		return 62
	}
}

func (e *encoder) sps() []byte {
	var w bitWriter
	w.u(8, 66)   // profile: baseline
	w.u(8, 0xC0) // constraint sets 0 and 1
	w.u(8, uint64(e.level()))
	w.ue(0) // id
	w.ue(4) // frame_num has 8 bits
	w.ue(2) // output order is decoding order
	w.ue(1) // one reference frame
	w.u(1, 0)
	w.ue(uint64(e.cols - 1))
	w.ue(uint64(e.rows - 1))
	w.u(1, 1) // frames only
	w.u(1, 1) // direct 8x8 inference
	right, bottom := (e.cols*16-e.width)/2, (e.rows*16-e.height)/2
	if right+bottom > 0 {
		w.u(1, 1)
		w.ue(0)
		w.ue(uint64(right))
		w.ue(0)
		w.ue(uint64(bottom))
	} else {
		w.u(1, 0)
	}
	w.u(1, 0) // no VUI
	w.trailing()
	return nal(nalSPS, w.buf)
}

func (e *encoder) pps() []byte {
	var w bitWriter
	w.ue(0)   // id
	w.ue(0)   // of sequence 0
	w.u(1, 0) // CAVLC
	w.u(1, 0)
	w.ue(0)   // one slice group
	w.ue(0)   // one reference
	w.ue(0)   //
	w.u(3, 0) // no weighted prediction
	w.ue(0)   // quantiser offsets, all zero
	w.ue(0)
	w.ue(0)
	w.u(1, 1) // slices say how they deblock
	w.u(2, 0)
	w.trailing()
	return nal(nalPPS, w.buf)
}

// key returns the NAL unit of a picture of the bars, moved by shift places.
func (e *encoder) key(shift int) []byte {
	var w bitWriter
	w.ue(0)                 // first macroblock
	w.ue(7)                 // I slice
	w.ue(0)                 // of picture set 0
	w.u(8, 0)               // frame_num
	w.ue(uint64(shift & 1)) // idr_pic_id: differs from the one before
	w.u(2, 0)               // reference marking
	w.ue(0)                 // quantiser as in the picture set
	w.ue(1)                 // no deblocking
	for row := range e.rows {
		for col := range e.cols {
			e.macroblock(&w, row, col, shift)
		}
	}
	w.trailing()
	return nal(nalIDR, w.buf)
}

// hasOwnSamples reports whether the macroblock has samples of its own, because a bar or the stripe begins
// there. All others copy a neighbour.
func (e *encoder) hasOwnSamples(row, col int) bool {
	switch {
	case row < 0 || col < 0:
		return false
	case e.striped(row):
		return col == 0
	default:
		return row == 0 && (col == 0 || e.bar(col) != e.bar(col-1))
	}
}

func (e *encoder) striped(row int) bool { return e.watermark && row >= e.rows-stripeRows && row > 0 }

func (e *encoder) bar(col int) int { return col * len(bars) / e.cols }

func (e *encoder) macroblock(w *bitWriter, row, col, shift int) {
	if e.hasOwnSamples(row, col) {
		c := bars[(e.bar(col)+shift)%len(bars)]
		if e.striped(row) {
			c = stripe
		}
		w.ue(mbPCM)
		w.align()
		w.buf = append(w.buf, slices.Repeat([]byte{c.y}, 256)...)
		w.buf = append(w.buf, slices.Repeat([]byte{c.u}, 64)...)
		w.buf = append(w.buf, slices.Repeat([]byte{c.v}, 64)...)
		return
	}
	if row == 0 || e.striped(row) {
		w.ue(mbHorizontal)
		w.ue(chromaHorizontal)
	} else {
		w.ue(mbVertical)
		w.ue(chromaVertical)
	}
	w.ue(0) // quantiser unchanged
	// The code for "no coefficients" depends on how many the neighbours have: 16 for a PCM
	// block, and none for the others.
	if e.hasOwnSamples(row, col-1) || e.hasOwnSamples(row-1, col) {
		w.u(6, 0b000011)
	} else {
		w.u(1, 1)
	}
}

// repeat returns the NAL unit of a picture that equals the one before. n counts from the key
// picture.
func (e *encoder) repeat(n int) []byte {
	var w bitWriter
	w.ue(0)           // first macroblock
	w.ue(5)           // P slice
	w.ue(0)           // of picture set 0
	w.u(8, uint64(n)) // frame_num
	w.u(3, 0)         // default references and marking
	w.ue(0)           // quantiser as in the picture set
	w.ue(1)           // no deblocking
	w.ue(uint64(e.cols * e.rows))
	w.trailing()
	return nal(nalSlice, w.buf)
}

// nal returns a NAL unit with the header. It escapes start codes in the payload.
func nal(header byte, rbsp []byte) []byte {
	out := make([]byte, 1, len(rbsp)+len(rbsp)/64+8)
	out[0] = header
	zeros := 0
	for _, b := range rbsp {
		if zeros == 2 && b <= 3 {
			out = append(out, 3)
			zeros = 0
		}
		if b == 0 {
			zeros++
		} else {
			zeros = 0
		}
		out = append(out, b)
	}
	return out
}
