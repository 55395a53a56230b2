package activities

import (
	"context"
	"slices"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/media"
	"github.com/mediagate/mediagate/mediainfo"
)

func (f *files) firstStem() int {
	return slices.IndexFunc(f.media, func(m mediagate.Media) bool { return m.Role == mediagate.RoleStem })
}

// archive stores the stems as one main file, at the position of the first. It is
// made anew without a stem that turns out to be lost, as long as there is another.
func (f *files) archive(ctx context.Context, position int) (mediagate.Result, error) {
	archive := &media.Archive{Modified: f.task.CreatedAt.UTC(), Half: halfRead}
	index := f.media[position].Index
	for _, m := range f.media {
		if m.Role == mediagate.RoleStem {
			archive.Stems = append(archive.Stems, media.Stem{Name: m.Name, Index: len(archive.Stems), Open: f.opener(f.channel, f.gone, f.row, m)})
			index = min(index, m.Index)
		}
	}
	for {
		f.copied.begin(position)
		result, err := f.Bucket.Mirror(ctx, ResultKey(f.task.ID, f.row.N, position), archive.Open, Limits{
			MaxBytes: f.task.Plan.MaxBytes, Media: string(mediainfo.ClassArchive), Owner: f.row.Provider, Progress: f.copied.bytes.Store,
		})
		stem, fault := archive.Fault()
		if err != nil && fault != nil {
			err = fault // the bucket only saw it end
		}
		if err == nil || fault == nil || ctx.Err() != nil || !f.lost(err) || !archive.LeaveOut() {
			result.Role, result.Index = mediagate.RoleMain, index
			return result, err
		}
		f.Logger.WarnContext(ctx, "a stem is left out", "task", f.task.ID, "attempt", f.row.N, "index", stem.Index, "error", err)
	}
}
