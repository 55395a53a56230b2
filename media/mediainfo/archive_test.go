package mediainfo

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

// zipped is an archive of files with the names, each of so many bytes.
func zipped(tb testing.TB, size int, names ...string) []byte {
	tb.Helper()
	var file bytes.Buffer
	w := zip.NewWriter(&file)
	for _, name := range names {
		f, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
		if err == nil {
			if !strings.HasSuffix(name, "/") {
				_, err = f.Write(make([]byte, size))
			}
		}
		if err != nil {
			tb.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return file.Bytes()
}

func names(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("stem %d.mp3", i)
	}
	return list
}

func TestArchives(t *testing.T) {
	t.Parallel()
	plain := zipped(t, 1000, "vocals.mp3", "drums/left.mp3", "drums/")
	patched := func(at int, b ...byte) []byte { // from the end
		file := bytes.Clone(plain)
		copy(file[len(file)-at:], b)
		return file
	}
	for name, c := range map[string]struct {
		file []byte
		want error
	}{
		"plain":                   {plain, nil},
		"large":                   {zipped(t, 300_000, names(3)...), nil},
		"as many as may be":       {zipped(t, 1, names(MaxEntries)...), nil},
		"one more":                {zipped(t, 1, names(MaxEntries+1)...), tooManyEntries},
		"more than a field holds": {zipped(t, 0, names(70_000)...), tooManyEntries},
		"none":                    {zipped(t, 0), noDirectory},
		"broken off":              {plain[:len(plain)-5], noDirectory},
		"no directory":            {plain[:1000], noDirectory},
		"bytes behind it":         {append(bytes.Clone(plain), 0), noDirectory},
		"a directory elsewhere":   {patched(6, 0xff, 0xff, 0xff, 0), noDirectory},
		"in 64 bits":              {patched(6, 0xff, 0xff, 0xff, 0xff), noDirectory},
		"a number that is false":  {patched(12, 9, 0), noDirectory},
		"a folder above":          {zipped(t, 1, "../vocals.mp3"), badEntry},
		"a root":                  {zipped(t, 1, "/etc/passwd"), badEntry},
		"a drive":                 {zipped(t, 1, `C:\vocals.mp3`), badEntry},
		"nothing":                 {nil, noDirectory},
		"zeros":                   {make([]byte, 1<<20), noDirectory},
		"ends alone":              {bytes.Repeat([]byte("PK\x05\x06"), 100_000), noDirectory},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, piece := range []int{7, 4096, len(c.file) + 1} {
				p := NewProbe(Zip)
				for file := c.file; len(file) > 0; {
					n := min(piece, len(file))
					_, _ = p.Write(file[:n])
					file = file[n:]
				}
				if err := p.Fault(); !errors.Is(err, c.want) {
					t.Errorf("in pieces of %d: %v, want %v", piece, err, c.want)
				}
				if n := cap(p.zip.tail); n > 4*archiveTail {
					t.Errorf("%d bytes are held", n)
				}
			}
		})
	}
	if f, detected, ok := Detect(plain); ok || !IsZip(plain) {
		t.Errorf("%s is taken for %v by who asks for none", detected, f)
	}
	if IsZip(zipped(t, 0)) || IsZip([]byte("PK")) {
		t.Error("an archive of nothing is taken for one")
	}
}

// FuzzArchive holds that no end of a file makes the check panic or keep much.
func FuzzArchive(f *testing.F) {
	f.Add(zipped(f, 10, names(2)...))
	end := append([]byte("PK\x05\x06"), make([]byte, 18)...)
	binary.LittleEndian.PutUint16(end[10:], MaxEntries)
	f.Add(end)
	f.Fuzz(func(_ *testing.T, file []byte) {
		p := NewProbe(Zip)
		_, _ = p.Write(file)
		_ = p.Fault()
		_, _ = io.Copy(p, bytes.NewReader(file))
		_ = p.Fault()
	})
}
