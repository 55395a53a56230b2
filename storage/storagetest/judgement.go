package storagetest

import "github.com/mediagate/mediagate"

// naming submits a task whose request names two files.
func (b *bench) naming() string {
	b.Helper()
	n := b.draft(b.newPayer(unit(10)), unit(1))
	n.Task.Plan.Inputs = []mediagate.Input{
		{Field: "image_urls[0]", MediaBounds: mediagate.MediaBounds{Kind: "image", MinSide: 128}},
		{Field: "image_urls[1]", MediaBounds: mediagate.MediaBounds{Kind: "image", MinSide: 128}},
	}
	id, _, err := b.Submit(b.Context(), n)
	b.noError(err)
	return id
}

var judgementTests = map[string]func(*bench){
	"a story says what is to be judged, until it is": func(b *bench) {
		plain, id := b.submit(b.newPayer(unit(10)), unit(1)), b.naming()
		same(b, "without inputs", b.story(plain).JudgeInputs, false)
		same(b, "with inputs", b.story(id).JudgeInputs, true)
		b.noError(b.StoreJudgement(b.Context(), id, mediagate.Judgement{Passed: []string{"image_urls[0]"}, Tries: 1}))
		same(b, "one away", b.story(id).JudgeInputs, true)
		b.noError(b.StoreJudgement(b.Context(), id, mediagate.Judgement{Passed: []string{"image_urls[1]"}, Over: true}))
		st := b.story(id)
		same(b, "judged", []any{st.JudgeInputs, st.Failure == nil, st.Status}, []any{false, true, mediagate.StatusPending})
		j, err := b.Judgement(b.Context(), id)
		b.noError(err)
		same(b, "all that was found", j, mediagate.Judgement{Passed: []string{"image_urls[1]", "image_urls[0]"}, Tries: 1, Over: true})
	},
	"the first verdict counts": func(b *bench) {
		id := b.naming()
		failure := mediagate.Failure{Code: mediagate.CodeInvalidParameters, Message: "image_urls[1] is too small"}
		b.noError(b.StoreJudgement(b.Context(), id, mediagate.Judgement{Over: true, Failure: &failure}))
		b.noError(b.StoreJudgement(b.Context(), id, mediagate.Judgement{Over: true}))
		st := b.story(id)
		same(b, "story", []any{st.N, st.JudgeInputs, st.Failure}, []any{0, false, &failure})
	},
	"an attempt's fate counts for more": func(b *bench) {
		id := b.naming()
		b.intent(id, 1)
		st := b.story(id)
		same(b, "story", []any{st.N, st.JudgeInputs, st.Failure == nil}, []any{1, false, true})
	},
	"a task that has ended is judged no more": func(b *bench) {
		id := b.naming()
		_, _, err := b.Settle(b.Context(), mediagate.Settlement{TaskID: id, Status: mediagate.StatusCancelled})
		b.noError(err)
		b.noError(b.StoreJudgement(b.Context(), id, mediagate.Judgement{Over: true}))
		j, err := b.Judgement(b.Context(), id)
		b.noError(err)
		same(b, "judgement", j, mediagate.Judgement{})
	},
	"a task that is not there": func(b *bench) {
		_, err := b.Judgement(b.Context(), "task_none")
		b.kind(err, mediagate.KindNotFound)
		b.kind(b.StoreJudgement(b.Context(), "task_none", mediagate.Judgement{}), mediagate.KindNotFound)
	},
}
