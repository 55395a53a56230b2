package sample

import (
	"bytes"
	"compress/zlib"
	"hash/crc32"
)

// palette holds the colours of the bars, three bytes each.
var palette = []byte{
	192, 192, 192, 192, 192, 0, 0, 192, 192, 0, 192, 0,
	192, 0, 192, 192, 0, 0, 0, 0, 192, 16, 16, 16,
}

// Image returns a PNG of colour bars. All rows are equal, so each row but the first is stored as
// "no difference from the row above".
func Image(width, height int) []byte {
	row := make([]byte, 1+(width+1)/2) // filter, then two pixels a byte
	for x := range width {
		index := byte(x * len(bars) / width)
		if x%2 == 0 {
			index <<= 4
		}
		row[1+x/2] |= index
	}
	same := make([]byte, len(row))
	same[0] = 2 // filter: up

	var data bytes.Buffer
	// Neither the level nor a write into memory can fail.
	z, _ := zlib.NewWriterLevel(&data, zlib.BestSpeed)
	_, _ = z.Write(row)
	for range height - 1 {
		_, _ = z.Write(same)
	}
	_ = z.Close()

	out := []byte("\x89PNG\r\n\x1a\n")
	out = append(out, chunk("IHDR", append(be32(uint32(width), uint32(height)), 4, 3, 0, 0, 0))...)
	out = append(out, chunk("PLTE", palette)...)
	out = append(out, chunk("IDAT", data.Bytes())...)
	return append(out, chunk("IEND", nil)...)
}

func chunk(kind string, data []byte) []byte {
	out := be32(uint32(len(data)))
	out = append(out, kind...)
	out = append(out, data...)
	return append(out, be32(crc32.ChecksumIEEE(out[4:]))...)
}
