package imagefile

import (
	"errors"
	"io"
)

// chunk is a part of a file whose length is stated before it.
type chunk struct {
	r      io.Reader
	left   int64
	kept   bool  // the chunk was copied
	failed error // of the file's reader
}

// errShort means that a chunk holds less than its kind needs.
const errShort Unusable = "is damaged: a chunk is too short"

// Read reads up to the end of the chunk.
func (k *chunk) Read(p []byte) (int, error) {
	if k.left == 0 {
		return 0, io.EOF
	}
	n, err := k.r.Read(p[:min(int64(len(p)), k.left)])
	k.left -= int64(n)
	switch {
	case k.left == 0:
		err = nil
	case err != nil:
		k.failed = cut(err)
		err = k.failed
	}
	return n, err
}

func (k *chunk) readFull(p []byte) error {
	_, err := io.ReadFull(k, p)
	switch {
	case k.failed != nil:
		return k.failed
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errShort
	default:
		return err
	}
}

// copy writes the rest of the chunk to w.
func (k *chunk) copy(w io.Writer) error {
	if w != io.Discard {
		k.kept = true
	}
	_, err := io.Copy(w, k)
	return err
}
