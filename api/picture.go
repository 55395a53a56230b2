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

// uploadTime is what a submit may take to store the media that came within it.
const uploadTime = 15 * time.Second

// picture is one that came within a request, as a data URI, which is never decoded as a
// whole, or as a part of a form.
type picture struct {
	field string
	uri   string
	part  []byte
	bytes int64 // that are stored of it
}

func (p picture) open() io.Reader {
	if p.part != nil {
		return bytes.NewReader(p.part)
	}
	return catalog.ImageData(p.uri)
}

// clean writes the picture without what does not show, as an upload is stored. It
// runs in a goroutine of its own, where a panic would end the process.
func (p picture) clean(w io.Writer) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = mediagate.Panicked(v)
		}
	}()
	_, err = imagefile.Clean(w, p.open())
	return err
}

// pictures are the media of a request, by field. Their form and size have been
// judged by the catalog; they are held to what an upload is held to, whatever the
// data URI says of its type.
func pictures(uploads map[string]string) ([]picture, error) {
	var list []picture
	for _, field := range slices.Sorted(maps.Keys(uploads)) {
		p := picture{field: field, uri: uploads[field]}
		size := &sized{to: io.Discard}
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

// storePictures puts the order's pictures into the bucket and notes their keys
// in the plan. They count as uploads do. What a submit that is refused afterwards leaves
// there is swept with the uploads that no task names; a caller who cannot pay leaves
// nothing.
func (s *Server) storePictures(c *call, o *validated) error {
	if len(o.pictures) == 0 {
		return nil
	}
	if err := s.affordable(c, o.hold()); err != nil {
		return err
	}
	var bytes int64
	for _, p := range o.pictures {
		bytes += p.bytes
	}
	err := s.countUpload(c.ctx, c, bytes)
	if err != nil {
		return err
	}
	keys := make(map[string]string, len(o.pictures))
	c.uncounted(func() {
		ctx, cancel := c.lasting(c.route.time)
		defer cancel()
		for _, p := range o.pictures {
			if keys[p.field], err = s.storePicture(ctx, c.caller.key.AccountID, p); err != nil {
				return
			}
		}
	})
	o.Plan.Uploads = keys
	o.pictures, o.Uploads = nil, nil
	return err
}

func (s *Server) storePicture(ctx context.Context, accountID string, p picture) (key string, err error) {
	p.cleaned(func(content io.Reader) {
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

// cleaned has the picture put somewhere while it is cleaned.
func (p picture) cleaned(put func(content io.Reader)) {
	content, clean := io.Pipe()
	defer func() { _ = content.Close() }()                   // ends the cleaning, if put ended first
	go func() { _ = clean.CloseWithError(p.clean(clean)) }() // nil: the end of the file
	put(content)
}

// reference is a picture that came within a request whose model takes addresses alone: it
// is stored as an upload, whose address is known before.
type reference struct {
	picture
	file mediagate.File
}

// refer notes the picture, if it is one that could be uploaded, and returns the address that
// it will have.
func (s *Server) refer(o *order, p picture) (address string, err error) {
	head := make([]byte, imagefile.SniffLen)
	n, _ := io.ReadFull(p.open(), head) // what is too short is no picture
	format, _ := imagefile.Detect(head[:n])
	file, _ := mediagate.NewFile(s.now(), string(format))
	size := &sized{to: io.Discard}
	_, err = imagefile.Clean(size, &bounded{r: p.open(), left: uploadLimit, full: io.ErrShortWrite})
	if words, bad := errors.AsType[imagefile.Unusable](err); bad {
		return "", mediagate.Invalid(p.field, "%s %s", p.field, words)
	}
	if err != nil {
		return "", mediagate.Invalid(p.field, "%s must be a picture of at most %d bytes, in base64 where it is a data URI", p.field, uploadLimit)
	}
	p.bytes = size.n
	o.references = append(o.references, reference{picture: p, file: file})
	return s.cfg.FileURL(file), nil
}

// storeReferences puts the references into the bucket and notes their addresses in the
// plan. They count as uploads do, and a caller who cannot pay for the task leaves none.
func (s *Server) storeReferences(c *call, sub *submit) (err error) {
	if len(sub.references) == 0 {
		return nil
	}
	if err := s.affordable(c, sub.validated.hold()); err != nil {
		return err
	}
	var bytes int64
	for _, r := range sub.references {
		bytes += r.bytes
		sub.validated.Plan.Attached = append(sub.validated.Plan.Attached, s.cfg.FileURL(r.file))
	}
	if err := s.countUpload(c.ctx, c, bytes); err != nil {
		return err
	}
	c.uncounted(func() {
		ctx, cancel := c.lasting(c.route.time)
		defer cancel()
		for _, r := range sub.references {
			r.cleaned(func(content io.Reader) { _, err = s.cfg.Files.PutFile(ctx, r.file, content, r.bytes) })
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

// affordable looks whether the caller could pay at this moment, so that nobody
// fills the bucket without money. The submit's own transaction decides.
func (s *Server) affordable(c *call, hold mediagate.Micros) error {
	key, err := s.cfg.Store.Key(c.ctx, c.caller.key.ID)
	if mediagate.Is(err, mediagate.KindNotFound) {
		return errUnknownKey
	}
	if err != nil {
		return err
	}
	account, err := s.cfg.Store.Account(c.ctx, key.AccountID)
	if err != nil {
		return err
	}
	switch { // in the store's words
	case !key.Unlimited && key.Remaining() < hold:
		return mediagate.Short("the key's quota is not enough", hold, key.Remaining())
	case account.Available < hold:
		return mediagate.Short("insufficient balance", hold, account.Available)
	}
	return nil
}
