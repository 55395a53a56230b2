package api

import (
	"context"
	"io"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/catalog"
)

// uploadTime is what a submit may take to store the media that came within it.
const uploadTime = 15 * time.Second

// picture is one that came within a request. It is never decoded as a whole.
type picture struct {
	field string
	uri   string
}

func (p picture) open() io.Reader { return catalog.ImageData(p.uri) }

// pictureTypes are what we take, by content: what the data URI says of itself
// proves nothing.
var pictureTypes = []string{"image/jpeg", "image/png", "image/webp"}

// pictures are the media of a request, by field. Their form and size have been
// judged by the catalog.
func pictures(uploads map[string]string) ([]picture, error) {
	var list []picture
	for _, field := range slices.Sorted(maps.Keys(uploads)) {
		p := picture{field: field, uri: uploads[field]}
		head := make([]byte, 512) // as much as the content's type shows in
		n, err := io.ReadFull(p.open(), head)
		if err != nil && err != io.ErrUnexpectedEOF || !slices.Contains(pictureTypes, http.DetectContentType(head[:n])) {
			return nil, mediagate.Invalid(field, "%s must hold a JPEG, PNG or WebP image", field)
		}
		list = append(list, p)
	}
	return list, nil
}

// storePictures puts the order's pictures into the bucket and notes their keys
// in the plan. What a submit that is refused afterwards leaves there is swept
// with the uploads that no task names; a caller who cannot pay leaves nothing.
func (s *Server) storePictures(c *call, o *order) error {
	if len(o.pictures) == 0 {
		return nil
	}
	if err := s.affordable(c, o.hold()); err != nil {
		return err
	}
	keys := make(map[string]string, len(o.pictures))
	var err error
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

func (s *Server) storePicture(ctx context.Context, accountID string, p picture) (string, error) {
	key, err := s.cfg.Uploads.PutUpload(ctx, accountID, s.newID(""), p.open())
	switch {
	case err == nil:
		return key, nil
	case mediagate.Is(err, mediagate.KindInvalid):
		return "", mediagate.Invalid(p.field, "%s: %s", p.field, domainError(err).Message)
	default:
		return "", &mediagate.Error{Kind: mediagate.KindUnavailable, Message: "storing the media of a request", Err: err}
	}
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
