package sample

import "math/bits"

// bitWriter builds a bit stream, most significant bit first.
type bitWriter struct {
	buf  []byte
	acc  uint64
	held uint
}

func (w *bitWriter) u(n uint, v uint64) {
	w.acc = w.acc<<n | v
	w.held += n
	for w.held >= 8 {
		w.held -= 8
		w.buf = append(w.buf, byte(w.acc>>w.held))
	}
	w.acc &= 1<<w.held - 1
}

// ue writes an unsigned Exp-Golomb code.
func (w *bitWriter) ue(v uint64) {
	n := uint(bits.Len64(v + 1))
	w.u(n-1, 0)
	w.u(n, v+1)
}

// align fills the current byte with zero bits.
func (w *bitWriter) align() {
	if w.held > 0 {
		w.u(8-w.held, 0)
	}
}

// trailing ends an RBSP: it writes a one, then zeros to the end of the byte.
func (w *bitWriter) trailing() {
	w.u(1, 1)
	w.align()
}
