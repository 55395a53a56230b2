package mediainfo

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"testing/iotest"
)

type soundFile struct {
	mime    string
	bytes   []byte
	seconds float64
}

// The frames of the tests: 44.1 kHz, 128 kbit/s, stereo, of 417 bytes and
// 1152 samples; 22.05 kHz, 64 kbit/s, mono, of 208 and 576; 8 kHz, 16 kbit/s,
// of 144 and 576.
const (
	mpeg1  = "\xff\xfb\x90\x00"
	mpeg2  = "\xff\xf3\x80\xc0"
	mpeg25 = "\xff\xe3\x28\xc0"
)

// mp3 is n frames with the header.
func mp3(header string, n int) []byte {
	f, ok := parseMPEG([]byte(header))
	if !ok {
		panic("no header")
	}
	return bytes.Repeat(append([]byte(header), make([]byte, f.size-len(header))...), n)
}

// xing is a first frame that says what an encoder knows, all fields of it.
func xing(word string, frames uint32, delay, padding int) []byte {
	b := mp3(mpeg1, 1)
	at := 4 + 32
	copy(b[at:], word)
	binary.BigEndian.PutUint32(b[at+4:], 0xf)
	binary.BigEndian.PutUint32(b[at+8:], frames)
	lame := b[at+120:]
	copy(lame, "LAME3.100")
	lame[21], lame[22], lame[23] = byte(delay>>4), byte(delay<<4|padding>>8), byte(padding)
	return b
}

func vbri() []byte {
	b := mp3(mpeg1, 1)
	copy(b[4+32:], "VBRI\x00\x01")
	return b
}

// id3 is a tag of so many bytes behind its header. What is in it looks like
// frames.
func id3(size int) []byte {
	b := append([]byte("ID3\x04\x00\x00"), byte(size>>21&0x7f), byte(size>>14&0x7f), byte(size>>7&0x7f), byte(size&0x7f))
	return append(b, bytes.Repeat([]byte(mpeg1), size/4+1)[:size]...)
}

func id3v1() []byte { return append([]byte("TAG"), bytes.Repeat([]byte("\xff\xfb"), 63)[:125]...) }

func adts(n int) []byte {
	return bytes.Repeat(append([]byte{0xff, 0xf1, 0x50, 0x80, 0x02, 0x1f, 0xfc}, make([]byte, 9)...), n) // 44.1 kHz, 16 bytes
}

func chunk(id string, payload ...[]byte) []byte {
	return sizedChunk(id, len(bytes.Join(payload, nil)), payload...)
}

func sizedChunk(id string, size int, payload ...[]byte) []byte {
	b := append([]byte(id), binary.LittleEndian.AppendUint32(nil, uint32(size))...)
	b = append(b, bytes.Join(payload, nil)...)
	if len(b)%2 == 1 {
		b = append(b, 0)
	}
	return b
}

func wave(size uint32, chunks ...[]byte) []byte {
	b := append([]byte("RIFF"), binary.LittleEndian.AppendUint32(nil, size)...)
	return append(append(b, "WAVE"...), bytes.Join(chunks, nil)...)
}

func format(tag uint16, channels, rate, bits int, more ...byte) []byte {
	b := binary.LittleEndian.AppendUint16(nil, tag)
	b = binary.LittleEndian.AppendUint16(b, uint16(channels))
	b = binary.LittleEndian.AppendUint32(b, uint32(rate))
	b = binary.LittleEndian.AppendUint32(b, uint32(rate*channels*bits/8))
	b = binary.LittleEndian.AppendUint16(b, uint16(channels*bits/8))
	b = binary.LittleEndian.AppendUint16(b, uint16(bits))
	return chunk("fmt ", append(b, more...))
}

// extensible is the tail of a format of 24 bits in PCM.
func extensible() []byte {
	b := []byte{22, 0, 24, 0, 3, 0, 0, 0, 1, 0}
	return append(b, "\x00\x00\x00\x00\x10\x00\x80\x00\x00\xaa\x00\x38\x9b\x71"...)
}

// flac is a stream of 44.1 kHz with total samples in its description.
func flac(total uint64) []byte {
	info := make([]byte, 34)
	info[10], info[11], info[12] = 44100>>12, 44100>>4&0xff, 44100<<4&0xff
	info[13] = byte(total >> 32)
	binary.BigEndian.PutUint32(info[14:], uint32(total))
	return append(append([]byte("fLaC\x00\x00\x00\x22"), info...), 0x84, 0, 0, 10) // a comment, the last
}

// sounds are files that this test makes, by name.
func sounds() map[string]soundFile {
	pcm := format(wavePCM, 2, 8000, 16)
	second := make([]byte, 32000)
	const whole = math.MaxUint32
	return map[string]soundFile{
		"mp3: frames alone":                    {mimeMP3, mp3(mpeg1, 100), 2.587},
		"mp3: mpeg 2":                          {mimeMP3, mp3(mpeg2, 100), 2.562},
		"mp3: mpeg 2.5":                        {mimeMP3, mp3(mpeg25, 100), 7.062},
		"mp3: layer II":                        {mimeMP3, mp3("\xff\xfd\x80\x00", 100), 2.612},
		"mp3: layer I":                         {mimeMP3, mp3("\xff\xff\x40\x00", 100), 0.871},
		"mp3: rates change":                    {mimeMP3, join(mp3(mpeg1, 50), mp3("\xff\xfb\xe0\x00", 50)), 2.587},
		"mp3: padded frames":                   {mimeMP3, mp3("\xff\xfb\x92\x00", 100), 2.587},
		"mp3: tags":                            {mimeMP3, join(id3(5000), mp3(mpeg1, 100), id3v1()), 2.587},
		"mp3: two tags":                        {mimeMP3, join(id3(300), id3(20), mp3(mpeg1, 100)), 2.587},
		"mp3: padding behind the tag":          {mimeMP3, join(id3(300), make([]byte, 500), mp3(mpeg1, 100)), 2.587},
		"mp3: tag to the end":                  {mimeMP3, id3(1 << 20)[:4000], 0},
		"mp3: tag alone":                       {mimeMP3, id3(100), 0},
		"mp3: xing":                            {mimeMP3, join(xing("Xing", 100, 0, 0), mp3(mpeg1, 100)), 2.612},
		"mp3: info, without its padding":       {mimeMP3, join(id3(99), xing("Info", 100, 576, 1128), mp3(mpeg1, 100)), 2.574},
		"mp3: a summary lies":                  {mimeMP3, join(xing("Xing", 99999, 0, 0), mp3(mpeg1, 100)), 2.612},
		"mp3: padding beyond the sound":        {mimeMP3, join(xing("Xing", 1, 4095, 4095), mp3(mpeg1, 2)), 0.052},
		"mp3: vbri":                            {mimeMP3, join(vbri(), mp3(mpeg1, 100)), 2.612},
		"mp3: summary alone":                   {mimeMP3, xing("Info", 100, 0, 0), 0},
		"mp3: garbage between":                 {mimeMP3, join(mp3(mpeg1, 50), bytes.Repeat([]byte("\xff\xfbno"), 7), mp3(mpeg1, 51)), 2.613},
		"mp3: broken off":                      {mimeMP3, mp3(mpeg1, 101)[:417*100+50], 2.587},
		"mp3: no stated rate":                  {mimeMP3, append([]byte("\xff\xfb\x00\x00"), make([]byte, 5000)...), 0},
		"mp3: all ones":                        {mimeMP3, bytes.Repeat([]byte{0xff}, 5000), 0},
		"aac":                                  {mimeAAC, adts(100), 2.322},
		"aac: tags":                            {mimeAAC, join(id3(50), adts(100), id3v1()), 2.322},
		"aac: frame of nothing":                {mimeAAC, bytes.Repeat([]byte{0xff, 0xf1, 0x50, 0x80, 0, 0xff, 0xfc}, 9), 0},
		"wav":                                  {mimeWAV, wave(32036, pcm, chunk("data", second)), 1},
		"wav: other chunks":                    {mimeWAV, wave(0, chunk("JUNK", make([]byte, 27)), pcm, chunk("LIST", []byte("INFO")), chunk("data", second), chunk("id3 ", second)), 1},
		"wav: extensible":                      {mimeWAV, wave(0, format(waveExtensible, 2, 48000, 24, extensible()...), chunk("data", make([]byte, 288000))), 1},
		"wav: float":                           {mimeWAV, wave(0, format(waveFloat, 1, 8000, 32, 0, 0), chunk("fact", []byte{1, 0, 0, 0}), chunk("data", second)), 1},
		"wav: byte rate of zero":               {mimeWAV, wave(0, noByteRate(pcm), chunk("data", second)), 1},
		"wav: compressed":                      {mimeWAV, wave(0, format(2, 1, 8000, 4), chunk("fact", binary.LittleEndian.AppendUint32(nil, 20000)), chunk("data", second)), 2.5},
		"wav: compressed, no samples":          {mimeWAV, wave(0, format(2, 1, 8000, 4), chunk("data", second)), 8},
		"wav: stream":                          {mimeWAV, wave(whole, pcm, sizedChunk("data", whole, second)), 1},
		"wav: stream without sizes":            {mimeWAV, wave(0, pcm, sizedChunk("data", 0, second)), 1},
		"wav: stated more than came":           {mimeWAV, wave(1<<30, pcm, sizedChunk("data", 1<<30, second)), 1},
		"wav: only the data's size is missing": {mimeWAV, wave(32036, pcm, sizedChunk("data", 0, second)), 1},
		"wav: ADPCM from a pipe":               {mimeWAV, wave(whole, guessed(format(waveADPCM, 1, 44100, 4, blocks(2036)...), 1024), sizedChunk("data", whole, make([]byte, 1024*65))), 3.001},
		"wav: ADPCM, half a block more":        {mimeWAV, wave(whole, guessed(format(waveADPCM, 1, 44100, 4, blocks(2036)...), 1024), sizedChunk("data", whole, make([]byte, 1024*65+512))), 3.024},
		"wav: IMA ADPCM from a pipe":           {mimeWAV, wave(whole, guessed(format(waveIMA, 1, 8000, 4, blocks(2041)...), 1024), sizedChunk("data", whole, make([]byte, 1024*4))), 1.021},
		"wav: GSM from a pipe":                 {mimeWAV, wave(whole, guessed(format(waveGSM, 1, 8000, 0, blocks(320)...), 65), sizedChunk("data", whole, make([]byte, 65*50))), 2},
		"wav: Yamaha's ADPCM from a pipe":      {mimeWAV, wave(whole, guessed(format(waveYamaha, 2, 8000, 4), 1024), sizedChunk("data", whole, make([]byte, 16000))), 2},
		"wav: no samples in a block":           {mimeWAV, wave(whole, guessed(format(waveADPCM, 1, 44100, 4, blocks(0)...), 1024), sizedChunk("data", whole, make([]byte, 16000))), 1},
		"wav: no data":                         {mimeWAV, wave(36, pcm, chunk("data")), 0},
		"wav: no format":                       {mimeWAV, wave(36, chunk("data", second)), 0},
		"wav: format too short":                {mimeWAV, wave(36, chunk("fmt ", make([]byte, 14)), chunk("data", second)), 0},
		"wav: second data":                     {mimeWAV, wave(100, pcm, chunk("data", second), chunk("data", second)), 1},
		"wav: huge chunk":                      {mimeWAV, wave(100, sizedChunk("JUNK", whole), pcm, chunk("data", second)), 0},
		"flac":                                 {mimeFLAC, flac(441000), 10},
		"flac: 36 bits":                        {mimeFLAC, flac(1 << 35), 779132.389},
		"flac: stream":                         {mimeFLAC, flac(0), 0},
		"flac: no rate":                        {mimeFLAC, append([]byte("fLaC\x80\x00\x00\x22"), make([]byte, 34)...), 0},
		"m4a: fragments":                       {mimeM4A, fragmentedSound(), 2},
	}
}

// blocks is what follows the format of a compressed sound: how many samples a
// block holds.
func blocks(samples uint16) []byte { return binary.LittleEndian.AppendUint16([]byte{2, 0}, samples) }

// guessed has the length of its blocks right, and its bytes a second wrong.
func guessed(format []byte, block uint16) []byte {
	b := bytes.Clone(format)
	binary.LittleEndian.PutUint32(b[16:], 16000)
	binary.LittleEndian.PutUint16(b[20:], block)
	return b
}

func noByteRate(format []byte) []byte {
	b := bytes.Clone(format)
	clear(b[16:20])
	return b
}

func fragmentedSound() []byte {
	trak := box("trak", tkhd(0, 0, 0, upright), mdia("soun", 1000, 0))
	moov := box("moov", mvhd(1000, 0), box("mvex", box("trex", words(0, 1, 1, 40, 0, 0))), trak)
	return join(box("ftyp", []byte("M4A \x00\x00\x02\x00isomM4A ")), moov,
		box("moof", box("traf", box("tfhd", words(0x20000, 1)), box("trun", words(0, 50)))), box("mdat", make([]byte, 99)))
}

func TestSounds(t *testing.T) {
	t.Parallel()
	for name, c := range sounds() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, piece := range []int{1, 3, 10, 417, 4096, len(c.bytes)} {
				if got := probe(Format{MIME: c.mime}, c.bytes, piece); got != (Info{Duration: c.seconds}) {
					t.Errorf("in pieces of %d: %+v, want %v seconds", piece, got, c.seconds)
				}
			}
			if c.seconds == 0 {
				return
			}
			if err := faultOf(Format{MIME: c.mime}, c.bytes, len(c.bytes)); err != nil {
				t.Errorf("it has a fault: it %v", err)
			}
			// What breaks off is never longer than the whole, unless only its end
			// told that it is not to be believed.
			for cut := 0; cut < len(c.bytes); cut += max(1, len(c.bytes)/50) {
				if got := probe(Format{MIME: c.mime}, c.bytes[:cut], 1000).Duration; got > c.seconds+5.6 {
					t.Errorf("cut at %d: %v seconds", cut, got)
				}
			}
		})
	}
}

// TestInspectSounds checks that a sound whose length must be measured is read to its end. One
// that states its length is not.
func TestInspectSounds(t *testing.T) {
	t.Parallel()
	files := sounds()
	for _, name := range []string{"mp3: tags", "aac", "wav", "wav: stream", "flac", "flac: stream", "m4a: fragments"} {
		c := files[name]
		for way, r := range map[string]io.Reader{"at once": bytes.NewReader(c.bytes), "byte by byte": iotest.OneByteReader(bytes.NewReader(c.bytes))} {
			if f, err := Inspect(r); err != nil || f.Format.MIME != c.mime || f.Duration != c.seconds {
				t.Errorf("%s, %s: %+v (%v), want %s of %v seconds", name, way, f, err, c.mime, c.seconds)
			}
		}
		rest := new(endless)
		if f, err := Glance(io.MultiReader(bytes.NewReader(c.bytes), rest)); err != nil || f.Format.MIME != c.mime || rest.read > 8<<10 {
			t.Errorf("%s: a glance gives %+v (%v) after %d bytes behind it", name, f, err, rest.read)
		}
	}
	rest := new(endless)
	if f, err := Inspect(io.MultiReader(bytes.NewReader(files["flac"].bytes), rest)); err != nil || f.Duration != 10 || rest.read > 64<<10 {
		t.Errorf("%+v (%v) after %d bytes behind a stated length", f, err, rest.read)
	}
	reset := errors.New("reset")
	if _, err := Inspect(io.MultiReader(bytes.NewReader(mp3(mpeg1, 20)), iotest.ErrReader(reset))); !errors.Is(err, reset) {
		t.Errorf("%v, want the reader's own error", err)
	}
}

// TestSoundsAreNotHeld checks that no sound is held in memory. It does not run in parallel, since
// it counts the allocations of the process.
func TestSoundsAreNotHeld(t *testing.T) {
	for name, c := range sounds() {
		p := NewProbe(Format{MIME: c.mime})
		piece := bytes.Repeat(c.bytes, 1+1<<16/len(c.bytes))
		if n := testing.AllocsPerRun(20, func() { _, _ = p.Write(piece) }); n > 2 {
			t.Errorf("%s: %v allocations each 64 KiB", name, n)
		}
	}
}

// TestSoundsOfFFmpeg checks the length of sounds made by ffmpeg, written to a file or to a pipe.
// Only a FLAC from a pipe has an unknown length.
func TestSoundsOfFFmpeg(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"cbr.mp3":    {"-codec:a", "libmp3lame", "-b:a", "64k"},
		"vbr.mp3":    {"-codec:a", "libmp3lame", "-q:a", "5"},
		"bare.mp3":   {"-codec:a", "libmp3lame", "-write_xing", "0", "-id3v2_version", "0"},
		"mpeg2.mp3":  {"-codec:a", "libmp3lame", "-ar", "22050", "-write_id3v1", "1"},
		"mpeg25.mp3": {"-codec:a", "libmp3lame", "-ar", "8000"},
		"pcm.wav":    {},
		"float.wav":  {"-codec:a", "pcm_f32le"},
		"24.wav":     {"-codec:a", "pcm_s24le", "-ac", "2"},
		"alaw.wav":   {"-codec:a", "pcm_alaw", "-ar", "8000"},
		"adpcm.wav":  {"-codec:a", "adpcm_ms"},
		"adpcm8.wav": {"-codec:a", "adpcm_ms", "-ar", "8000", "-ac", "2"},
		"ima.wav":    {"-codec:a", "adpcm_ima_wav", "-ac", "2"},
		"yamaha.wav": {"-codec:a", "adpcm_yamaha", "-ac", "2"},
		"gsm.wav":    {"-codec:a", "libgsm_ms", "-ar", "8000"},
		"g726.wav":   {"-codec:a", "g726", "-ar", "8000"},
		"sound.flac": {},
		"sound.m4a":  {"-codec:a", "aac"},
		"parts.m4a":  {"-codec:a", "aac", "-movflags", "frag_keyframe+empty_moov"},
		"sound.aac":  {"-codec:a", "aac"},
		"tagged.aac": {"-codec:a", "aac", "-write_id3v2", "1"},
	} {
		for _, piped := range []bool{false, true} {
			if piped && (name == "sound.m4a" || name == "sound.flac") { // it has to go back for its headers, or for its length
				continue
			}
			t.Run(fmt.Sprintf("%s, piped %v", name, piped), func(t *testing.T) {
				t.Parallel()
				file := encode(t, name, piped, append([]string{"-f", "lavfi", "-i", "sine=d=3.21"}, args...)...)
				f, detected, ok := Detect(file)
				if !ok || f.Class != ClassAudio {
					t.Fatalf("taken for %s", detected)
				}
				// A block, of which the last may not be full, lasts up to 0.13 s.
				if got := probe(f, file, 1000).Duration; math.Abs(got-3.21) > 0.13 {
					t.Errorf("%v seconds", got)
				}
			})
		}
	}
}

// TestFilmsOfFFmpeg checks that a film in fragments has the same length as any other, wherever
// its headers are, as an input and as a result.
func TestFilmsOfFFmpeg(t *testing.T) {
	t.Parallel()
	for name, flags := range map[string]string{
		"plain.mp4":     "0",
		"faststart.mp4": "faststart",
		"film.mov":      "0",
		"begun.mp4":     "frag_keyframe",
		"begun.mov":     "frag_keyframe",
		"parts.mp4":     "frag_keyframe+empty_moov",
		"late.mp4":      "frag_keyframe+delay_moov",
		"dash.mp4":      "dash+frag_keyframe",
		"cmaf.mp4":      "cmaf+frag_keyframe",
		"indexed.mp4":   "frag_keyframe+global_sidx",
		"relative.mp4":  "frag_keyframe+default_base_moof",
		"pictures.mp4":  "frag_every_frame",
		"smooth.mp4":    "isml+frag_keyframe",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := encode(t, name, false, "-f", "lavfi", "-i", "testsrc=d=4:s=64x36", "-f", "lavfi", "-i", "sine=d=4.5", "-g", "25", "-movflags", flags)
			facts, err := Inspect(bytes.NewReader(file))
			if err != nil || math.Abs(facts.Duration-4) > 0.001 {
				t.Errorf("as an input %v seconds (%v)", facts.Duration, err)
			}
			if got := probe(facts.Format, file, 1000); got != facts.Info {
				t.Errorf("as a result %+v, as an input %+v", got, facts.Info)
			}
		})
	}
}

// encode has ffmpeg make a file of the name, from the words that say of what. make
// deps installs it; the short tests do without.
func encode(t *testing.T, name string, piped bool, words ...string) []byte {
	t.Helper()
	if testing.Short() {
		t.Skip("needs ffmpeg")
	}
	words = append([]string{"-v", "error"}, words...)
	if piped {
		kind := map[string]string{".mp3": "mp3", ".wav": "wav", ".m4a": "ipod", ".aac": "adts"}
		cmd := exec.CommandContext(t.Context(), "ffmpeg", append(words, "-f", kind[filepath.Ext(name)], "pipe:1")...)
		cmd.Stderr = t.Output()
		file, err := cmd.Output()
		if err != nil {
			t.Fatalf("ffmpeg, which make deps installs: %v", err)
		}
		return file
	}
	path := filepath.Join(t.TempDir(), name)
	if out, err := exec.CommandContext(t.Context(), "ffmpeg", append(words, path)...).CombinedOutput(); err != nil {
		t.Fatalf("ffmpeg, which make deps installs: %v: %s", err, out)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// FuzzSound holds that no file makes a probe of sounds panic, state what cannot
// be, or depend on how the file is cut.
func FuzzSound(f *testing.F) {
	for _, c := range sounds() {
		f.Add(c.bytes[:min(len(c.bytes), 2000)], uint16(3))
	}
	f.Fuzz(func(t *testing.T, file []byte, piece uint16) {
		for _, mime := range []string{mimeM4A, mimeMP3, mimeAAC, mimeWAV, mimeFLAC} {
			whole := probe(Format{MIME: mime}, file, max(len(file), 1))
			if cut := probe(Format{MIME: mime}, file, int(piece)+1); cut != whole {
				t.Errorf("%s: %+v whole, %+v in pieces of %d", mime, whole, cut, piece+1)
			}
			if !(whole.Duration >= 0 && whole.Duration <= maxSeconds) {
				t.Errorf("%s: %+v cannot be", mime, whole)
			}
			if a, b := faultOf(Format{MIME: mime}, file, max(len(file), 1)), faultOf(Format{MIME: mime}, file, int(piece)+1); !errors.Is(a, b) {
				t.Errorf("%s: %v whole, %v in pieces of %d", mime, a, b, piece+1)
			}
		}
	})
}
