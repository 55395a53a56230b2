package api

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/catalog"
	"github.com/mediagate/mediagate/media/imagefile"
)

// uploadTime bounds how long a submit may take to store the media in its body.
const uploadTime = 15 * time.Second

// picture is a picture in the body of a request: a data URI, which is never decoded as a whole,
// or a part of a form.
type picture struct {
	field string
	uri   string
	part  []byte
	bytes int64 // its size after cleaning
}

func (p picture) open() io.Reader {
	if p.part != nil {
		return bytes.NewReader(p.part)
	}
	return catalog.ImageData(p.uri)
}

// clean writes the picture without its metadata, as uploads are stored. It runs in its own
// goroutine, where a panic would end the process.
func (p picture) clean(w io.Writer) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = mediagate.Panicked(v)
		}
	}()
	_, err = imagefile.Clean(w, p.open())
	return err
}

// pictures returns the pictures of a request, by field. The catalog has checked their form and
// size. They must also pass the checks of an upload, whatever type the data URI claims.
func pictures(uploads map[string]string) ([]picture, error) {
	var list []picture
	for _, field := range slices.Sorted(maps.Keys(uploads)) {
		p := picture{field: field, uri: uploads[field]}
		size := &countingWriter{to: io.Discard}
		_, err := imagefile.Clean(size, p.open())
		if words, bad := errors.AsType[imagefile.Unusable](err); bad {
			return nil, mediagate.Invalid(field, "%s %s", field, words)
		}
		if err != nil {
			return nil, mediagate.Invalid(field, "%s is not valid base64", field)
		}
		p.bytes = size.n
		list = append(list, p)
	}
	return list, nil
}

// storePictures stores the request's pictures in the bucket and notes their keys in the plan.
// They count as uploads. If the submit is refused later, they are removed with the uploads that
// no task names. A caller who cannot pay stores nothing.
func (s *Server) storePictures(c *call, v *validated) error {
	if len(v.pictures) == 0 {
		return nil
	}
	key := c.caller.key
	if err := s.cfg.Store.CheckHold(c.ctx, key.AccountID, key.ID, v.hold()); err != nil {
		return err
	}
	var bytes int64
	for _, p := range v.pictures {
		bytes += p.bytes
	}
	err := s.countUpload(c.ctx, c, bytes)
	if err != nil {
		return err
	}
	keys := make(map[string]string, len(v.pictures))
	c.withoutTimeout(func() {
		ctx, cancel := c.detachedContext(c.route.time)
		defer cancel()
		for _, p := range v.pictures {
			if keys[p.field], err = s.storePicture(ctx, key.AccountID, p); err != nil {
				return
			}
		}
	})
	v.Plan.Uploads = keys
	v.pictures, v.Uploads = nil, nil
	return err
}

func (s *Server) storePicture(ctx context.Context, accountID string, p picture) (key string, err error) {
	p.streamCleaned(func(content io.Reader) {
		key, err = s.cfg.Uploads.PutUpload(ctx, accountID, s.newID(""), content)
	})
	switch {
	case err == nil:
		return key, nil
	case mediagate.Is(err, mediagate.KindInvalid):
		return "", mediagate.Invalid(p.field, "%s: %s", p.field, domainError(err).Message)
	default:
		return "", errNotKept(err)
	}
}

func errNotKept(err error) error {
	return &mediagate.Error{Kind: mediagate.KindUnavailable, Message: "storing the media of a request", Err: err}
}

// streamCleaned cleans the picture while put stores it.
func (p picture) streamCleaned(put func(content io.Reader)) {
	content, clean := io.Pipe()
	defer func() { _ = content.Close() }()                   // ends the cleaning if put returns first
	go func() { _ = clean.CloseWithError(p.clean(clean)) }() // nil ends the file
	put(content)
}

// attachment is a picture in the body of a request whose model takes addresses only. It is stored as
// an upload, whose address is known beforehand.
type attachment struct {
	picture
	file mediagate.File
}

// attach adds the picture to the request and returns the address that it will have as an upload. It
// refuses a picture that could not be uploaded.
func (s *Server) attach(o *submitRequest, p picture) (address string, err error) {
	head := make([]byte, imagefile.SniffLen)
	n, _ := io.ReadFull(p.open(), head) // a shorter file is no picture
	format, _ := imagefile.Detect(head[:n])
	file, _ := mediagate.NewFile(s.now(), string(format))
	size := &countingWriter{to: io.Discard}
	_, err = imagefile.Clean(size, &boundedReader{r: p.open(), left: uploadLimit, full: io.ErrShortWrite})
	if words, bad := errors.AsType[imagefile.Unusable](err); bad {
		return "", mediagate.Invalid(p.field, "%s %s", p.field, words)
	}
	if err != nil {
		return "", mediagate.Invalid(
			p.field, "%s must be a picture of at most %d bytes, in base64 where it is a data URI", p.field, uploadLimit,
		)
	}
	p.bytes = size.n
	o.attachments = append(o.attachments, attachment{picture: p, file: file})
	return s.cfg.FileURL(file), nil
}

// storeAttachments stores the attachments in the bucket and notes their addresses in the plan.
// They count as uploads. A caller who cannot pay stores nothing.
func (s *Server) storeAttachments(c *call, sub *submit) (err error) {
	if len(sub.attachments) == 0 {
		return nil
	}
	key, hold := c.caller.key, sub.validated.hold()
	if err := s.cfg.Store.CheckHold(c.ctx, key.AccountID, key.ID, hold); err != nil {
		return err
	}
	var bytes int64
	for _, a := range sub.attachments {
		bytes += a.bytes
		sub.validated.Plan.Attached = append(sub.validated.Plan.Attached, s.cfg.FileURL(a.file))
	}
	if err := s.countUpload(c.ctx, c, bytes); err != nil {
		return err
	}
	c.withoutTimeout(func() {
		ctx, cancel := c.detachedContext(c.route.time)
		defer cancel()
		for _, a := range sub.attachments {
			a.streamCleaned(func(content io.Reader) { _, err = s.cfg.Files.PutFile(ctx, a.file, content, a.bytes) })
			if err != nil {
				return
			}
		}
	})
	if err != nil {
		return errNotKept(err)
	}
	return nil
}
