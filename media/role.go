package media

import (
	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/media/mediainfo"
)

// Dispensable reports whether a task continues without a file that could not be copied: an extra
// file that is gone or invalid, or whose server did not answer for too long. A failure of the bucket
// is never overlooked.
func Dispensable(role mediagate.Role, kind mediagate.Kind, tooLong bool) bool {
	if !role.IsExtra() {
		return false
	}
	switch kind {
	case mediagate.KindGone, mediagate.KindInvalid, mediagate.KindTooLarge:
		return true
	case mediagate.KindTransient, mediagate.KindUnreached:
		return tooLong
	default:
		return false
	}
}

// ClassOf returns the media class that a vendor's file must have in a task of that class.
func ClassOf(m mediagate.Media, class string) string {
	switch m.Role {
	case mediagate.RoleCover, mediagate.RoleGrid:
		return string(mediainfo.ClassImage)
	case mediagate.RoleWAV, mediagate.RoleStem:
		return string(mediainfo.ClassAudio)
	case mediagate.RoleFilm:
		return string(mediainfo.ClassVideo)
	case mediagate.RoleMain:
	}
	if m.MimeType == mediainfo.Zip.MIME && class == string(mediainfo.ClassAudio) {
		return string(mediainfo.ClassArchive) // of stems, packed by the vendor
	}
	return class
}
