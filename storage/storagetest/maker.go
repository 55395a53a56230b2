package storagetest

import "github.com/mediagate/mediagate"

// songs is the end of a task that made songs of these ids.
func songs(id string, ids ...string) mediagate.Settlement {
	end := completed(id, 0)
	end.Made, end.Results = &mediagate.Made{}, nil
	for i, clip := range ids {
		end.Made.Clips = append(end.Made.Clips, mediagate.Clip{ID: clip})
		end.Results = append(end.Results, mediagate.Result{Index: i, MimeType: "audio/mpeg", Key: id + clip})
	}
	return end
}

var makerTests = map[string]func(*bench){
	"songs and voices are found by their vendor's ids, by their account": func(b *bench) {
		p, other := b.newPayer(unit(10)), b.newPayer(unit(10))
		first, second, voice := b.accepted(p, unit(1)), b.accepted(other, unit(1)), b.accepted(p, unit(1))
		b.settle(songs(first, "a", "b"))
		b.settle(songs(second, "c"))
		end := completed(voice, 0)
		end.Made = &mediagate.Made{Voices: []string{"a"}}
		b.settle(end)
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
			got, err := b.MadeBy(b.Context(), test.account, test.kind, test.id)
			b.noError(err)
			same(b, test.id, got, test.want)
		}
		for account, id := range map[string]string{p.account: "c", other.account: "a"} {
			_, err := b.MadeBy(b.Context(), account, mediagate.MadeClip, id)
			b.kind(err, mediagate.KindNotFound)
		}
	},
	"of two tasks with the same song the first made it": func(b *bench) {
		p := b.newPayer(unit(10))
		first, second := b.accepted(p, unit(1)), b.accepted(p, unit(1))
		b.settle(songs(first, "a"))
		b.settle(songs(second, "b", "a", ""))
		got, err := b.MadeBy(b.Context(), p.account, mediagate.MadeClip, "a")
		b.noError(err)
		same(b, "maker", got, mediagate.MadeAt{TaskID: first})
		_, err = b.MadeBy(b.Context(), p.account, mediagate.MadeClip, "")
		b.kind(err, mediagate.KindNotFound)
	},
	"what did not complete made nothing": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.accepted(p, unit(1))
		_, err := b.RequestCancel(b.Context(), p.account, id)
		b.noError(err)
		b.settle(songs(id, "a"))
		_, err = b.MadeBy(b.Context(), p.account, mediagate.MadeClip, "a")
		b.kind(err, mediagate.KindNotFound)
	},
	"an archive is no song": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.accepted(p, unit(1))
		end := songs(id, "a")
		end.Results[0].MimeType = "application/zip"
		b.settle(end)
		_, err := b.MadeBy(b.Context(), p.account, mediagate.MadeClip, "a")
		b.kind(err, mediagate.KindNotFound)
	},
}
