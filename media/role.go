package media

import (
	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/media/mediainfo"
)

// IsExtra reports that a task is what it is without the file.
func IsExtra(role mediagate.Role) bool {
	switch role {
	case mediagate.RoleCover, mediagate.RoleWAV, mediagate.RoleFilm:
		return true
	case mediagate.RoleMain, mediagate.RoleGrid, mediagate.RoleStem:
	}
	return false
}

// Dispensable reports that a task goes on without a file whose copy failed: an extra one
// that is gone or no good, or whose server has been away for too long. The bucket's
// failures are nobody's to overlook.
func Dispensable(role mediagate.Role, kind mediagate.Kind, tooLong bool) bool {
	if !IsExtra(role) {
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

// ClassOf is the class of media that a vendor's file must be, in a task of that class.
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
