package storage_test

import (
	"testing"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
)

// songs is the end of a task that made songs of these ids, in files of that type.
func songs(id, mimeType string, ids ...string) end {
	o, files := success(0), []mediagate.Result{}
	o.Made = &mediagate.Made{}
	for i, clip := range ids {
		o.Made.Clips = append(o.Made.Clips, mediagate.Clip{ID: clip})
		files = append(files, mediagate.Result{Index: i, MimeType: mimeType, Key: id + clip})
	}
	return completedBy(id, 1, o, files)
}

const mp3 = "audio/mpeg"

func TestAssetFacts(t *testing.T) {
	t.Parallel()
	prove(t, facts{
		"songs and voices are found by their vendor's ids, by their account": func(b *bench) {
			p, other := b.newPayer(unit(10)), b.newPayer(unit(10))
			first, second, voice := b.accepted(p, unit(1)), b.accepted(other, unit(1)), b.accepted(p, unit(1))
			b.settle(songs(first, mp3, "a", "b"))
			b.settle(songs(second, mp3, "c"))
			o := success(0)
			o.Made = &mediagate.Made{Voices: []string{"a"}}
			b.settle(completedBy(voice, 1, o, files(voice)))
			for _, test := range []struct {
				account string
				kind    mediagate.MadeKind
				id      string
				want    mediagate.MadeAt
			}{
				{p.account, mediagate.MadeClip, "a", mediagate.MadeAt{TaskID: first}},
				{p.account, mediagate.MadeClip, "b", mediagate.MadeAt{TaskID: first, Index: 1}},
				{p.account, mediagate.MadeVoice, "a", mediagate.MadeAt{TaskID: voice}},
				{other.account, mediagate.MadeClip, "c", mediagate.MadeAt{TaskID: second}},
			} {
				got := must(b.MadeBy(b.Context(), test.account, test.kind, test.id))
				same(b, test.id, got, test.want)
			}
			for account, id := range map[string]string{p.account: "c", other.account: "a"} {
				b.kind(errOf(b.MadeBy(b.Context(), account, mediagate.MadeClip, id)), mediagate.KindNotFound)
			}
		},
		"of two tasks with the same song the first made it": func(b *bench) {
			p := b.newPayer(unit(10))
			first, second := b.accepted(p, unit(1)), b.accepted(p, unit(1))
			b.settle(songs(first, mp3, "a"))
			b.settle(songs(second, mp3, "b", "a", ""))
			got := must(b.MadeBy(b.Context(), p.account, mediagate.MadeClip, "a"))
			same(b, "asset", got, mediagate.MadeAt{TaskID: first})
			b.kind(errOf(b.MadeBy(b.Context(), p.account, mediagate.MadeClip, "")), mediagate.KindNotFound)
		},
		"what did not complete made nothing": func(b *bench) {
			p := b.newPayer(unit(10))
			id := b.accepted(p, unit(1))
			b.change(id, task.CancelRequested{})
			b.change(id, songs(id, mp3, "a").events...)
			b.kind(errOf(b.MadeBy(b.Context(), p.account, mediagate.MadeClip, "a")), mediagate.KindNotFound)
		},
		"an archive is no song": func(b *bench) {
			p := b.newPayer(unit(10))
			id := b.accepted(p, unit(1))
			b.settle(songs(id, "application/zip", "a"))
			b.kind(errOf(b.MadeBy(b.Context(), p.account, mediagate.MadeClip, "a")), mediagate.KindNotFound)
		},
	})
}
