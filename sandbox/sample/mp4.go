package sample

import (
	"encoding/binary"
)

// The rates of the tracks.
const (
	framesPerSecond = 24
	audioRate       = 44100
	audioFrame      = 1024 // samples in one AAC frame
)

// VideoSpec describes a video. Width and Height must be even.
type VideoSpec struct {
	Width, Height int
	Seconds       int
	Sound         bool // adds a silent AAC track
	Watermark     bool // adds a white stripe at the bottom
}

// Video returns an MP4 file whose index precedes its media.
func Video(s VideoSpec) []byte {
	enc := newEncoder(s.Width, s.Height, s.Watermark)
	video := track{
		id: 1, kind: "vide", scale: framesPerSecond, delta: 1,
		entry: avc1(s, enc), header: box("vmhd", be32(1), make([]byte, 8)), width: s.Width, height: s.Height,
	}
	for second := range s.Seconds {
		video.keys = append(video.keys, uint32(len(video.sizes)+1))
		video.add(sized(enc.key(second)))
		for n := 1; n < framesPerSecond; n++ {
			video.add(sized(enc.repeat(n)))
		}
	}
	tracks := []*track{&video}
	if s.Sound {
		audio := track{
			id: 2, kind: "soun", scale: audioRate, delta: audioFrame,
			entry: mp4a(), header: box("smhd", make([]byte, 8)),
		}
		frame := silence()
		for range s.Seconds * audioRate / audioFrame {
			audio.add(frame)
		}
		tracks = append(tracks, &audio)
	}

	ftyp := box("ftyp", []byte("isom"), be32(512), []byte("isomiso2avc1mp41"))
	// The index is built first, because its size decides the offsets that it contains.
	moov := movie(s.Seconds, tracks)
	offset := len(ftyp) + len(moov) + 8
	for _, t := range tracks {
		t.offset = uint32(offset)
		offset += len(t.data)
	}
	out := append(ftyp, movie(s.Seconds, tracks)...)
	var media [][]byte
	for _, t := range tracks {
		media = append(media, t.data)
	}
	return append(out, box("mdat", media...)...)
}

// track is a track whose samples are in one chunk.
type track struct {
	id            uint32
	kind          string
	scale, delta  uint32
	width, height int
	entry, header []byte
	data          []byte
	sizes         []uint32
	keys          []uint32 // numbers of the samples where playing can start; empty: all
	offset        uint32
}

func (t *track) add(sample []byte) {
	t.data = append(t.data, sample...)
	t.sizes = append(t.sizes, uint32(len(sample)))
}

const movieScale = 1000

func movie(seconds int, tracks []*track) []byte {
	length := uint32(seconds * movieScale)
	parts := [][]byte{box("mvhd",
		be32(0, 0, 0, movieScale, length, 0x00010000, 0x01000000, 0, 0), matrix(), make([]byte, 24),
		be32(uint32(len(tracks)+1)))}
	for _, t := range tracks {
		parts = append(parts, t.box(length))
	}
	return box("moov", parts...)
}

func (t *track) box(length uint32) []byte {
	n := uint32(len(t.sizes))
	volume := uint32(0)
	if t.kind == "soun" {
		volume = 0x01000000
	}
	tables := [][]byte{
		box("stsd", be32(0, 1), t.entry),
		box("stts", be32(0, 1, n, t.delta)),
	}
	if len(t.keys) > 0 {
		tables = append(tables, box("stss", be32(0, uint32(len(t.keys))), be32(t.keys...)))
	}
	tables = append(tables,
		box("stsc", be32(0, 1, 1, n, 1)),
		box("stsz", be32(0, 0, n), be32(t.sizes...)),
		box("stco", be32(0, 1, t.offset)))
	return box("trak",
		box("tkhd", be32(3, 0, 0, t.id, 0, length, 0, 0, 0, volume), matrix(),
			be32(uint32(t.width)<<16, uint32(t.height)<<16)),
		box("mdia",
			box("mdhd", be32(0, 0, 0, t.scale, n*t.delta, 0x55C40000)), // language: undetermined
			box("hdlr", be32(0, 0), []byte(t.kind), make([]byte, 12), []byte("sample\x00")),
			box("minf", t.header,
				box("dinf", box("dref", be32(0, 1), box("url ", be32(1)))),
				box("stbl", tables...))))
}

func avc1(s VideoSpec, enc *encoder) []byte {
	sps, pps := enc.sps(), enc.pps()
	config := []byte{1, sps[1], sps[2], sps[3], 0xFF, 0xE1}
	config = append(config, be16(len(sps))...)
	config = append(config, sps...)
	config = append(config, 1)
	config = append(config, be16(len(pps))...)
	config = append(config, pps...)
	return box("avc1",
		make([]byte, 6), be16(1), make([]byte, 16), be16(s.Width), be16(s.Height),
		be32(0x00480000, 0x00480000, 0), be16(1), make([]byte, 32), be16(24), be16(0xFFFF),
		box("avcC", config))
}

func mp4a() []byte {
	config := []byte{0x12, 0x08} // AAC-LC, 44.1 kHz, one channel
	decoder := descriptor(4, []byte{0x40, 0x15, 0, 0, 0}, be32(8000, 8000), descriptor(5, config))
	esds := descriptor(3, []byte{0, 2, 0}, decoder, descriptor(6, []byte{2}))
	return box("mp4a",
		make([]byte, 6), be16(1), make([]byte, 8), be16(1), be16(16), make([]byte, 4), be32(audioRate<<16),
		box("esds", be32(0), esds))
}

// silence returns a silent AAC frame: a single channel without any band.
func silence() []byte {
	var w bitWriter
	w.u(7, 0)     // single channel element 0
	w.u(8, 0)     // gain
	w.u(11, 0)    // long window, no bands, no prediction
	w.u(3, 0)     // no pulses, noise shaping or gain control
	w.u(3, 0b111) // end
	w.align()
	return w.buf
}

// sized prefixes a NAL unit with its length, as MP4 stores it.
func sized(unit []byte) []byte { return append(be32(uint32(len(unit))), unit...) }

func box(kind string, parts ...[]byte) []byte {
	size := 8
	for _, p := range parts {
		size += len(p)
	}
	out := make([]byte, 0, size)
	out = append(out, be32(uint32(size))...)
	out = append(out, kind...)
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

func descriptor(tag byte, parts ...[]byte) []byte {
	size := 0
	for _, p := range parts {
		size += len(p)
	}
	out := []byte{tag, byte(size)}
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

func matrix() []byte { return be32(0x00010000, 0, 0, 0, 0x00010000, 0, 0, 0, 0x40000000) }

func be16(v int) []byte { return binary.BigEndian.AppendUint16(nil, uint16(v)) }

func be32(values ...uint32) []byte {
	out := make([]byte, 0, 4*len(values))
	for _, v := range values {
		out = binary.BigEndian.AppendUint32(out, v)
	}
	return out
}
