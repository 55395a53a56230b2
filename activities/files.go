package activities

import (
	"context"
	"slices"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/channel"
	"github.com/mediagate/mediagate/media"
)

// mostFiles is how many files of one attempt are copied, which is far more than
// a request can ask for. Each may be as large as the model allows, so how many
// there are is not left to the vendor.
const mostFiles = 32

// extraTries is how many activities in a row are failed for a file that is not
// what the task is about, before it goes on without.
const extraTries = 3

// extraPatience is how long the servers of all that comes along may keep an
// attempt's copy waiting: some that send a drop at a time would use up the time
// of what the task is about, again at each try.
const extraPatience = 5 * time.Minute

// files are those of one attempt on their way into the bucket.
type files struct {
	*Activities
	task      mediagate.Task
	row       mediagate.Attempt
	channel   channel.Channel // without it, only public hosts can be fetched from
	gone      error
	media     []mediagate.Media
	refreshed bool // the links were asked for once more
	answered  bool // and the vendor has said what there is, or cannot be asked
	copied    *progress
	try       int32         // of the step
	patience  time.Duration // left of extraPatience
}

// mirrorAll copies what the task is about, and makes of it what is to be made,
// before what comes along.
func (a *Activities) mirrorAll(ctx context.Context, task mediagate.Task, row mediagate.Attempt, copied *progress, try int32) ([]mediagate.Result, error) {
	f := &files{Activities: a, task: task, row: row, media: row.Outcome.Media, copied: copied, try: try, patience: extraPatience}
	f.channel, f.gone = a.accounts().Proven(ctx, row)
	if len(f.media) > mostFiles {
		a.Logger.WarnContext(ctx, "a vendor offers more files than any job makes", "task", task.ID, "attempt", row.N, "files", len(f.media))
		f.media = f.media[:mostFiles]
	}
	if len(f.media) == 0 {
		if row.Outcome.Made.StandsAlone() {
			return []mediagate.Result{}, nil
		}
		return nil, media.Useless("the provider returned no file")
	}
	found := make([][]mediagate.Result, len(f.media))
	var lost []error // of pieces that the task goes on without
	for _, extra := range []bool{false, true} {
		for i, m := range f.media {
			if media.IsExtra(m.Role) != extra || m.Role == mediagate.RoleStem && i != f.firstStem() {
				continue
			}
			results, err := f.copy(ctx, i)
			switch {
			case err == nil:
				found[i] = results
			case extra || ctx.Err() != nil || !f.lost(err):
				return nil, f.tryAgain(err)
			default:
				f.Logger.WarnContext(ctx, "a piece is left out", "task", f.task.ID, "attempt", f.row.N, "role", m.Role, "index", m.Index, "error", err)
				lost = append(lost, err)
			}
		}
		if len(lost) > 0 && !slices.ContainsFunc(found, func(r []mediagate.Result) bool { return len(r) > 0 }) {
			return nil, nothing(lost)
		}
	}
	return slices.Concat(found...), nil
}

const (
	// goneAgain is the pause between two tries to get a file whose links are dead.
	goneAgain = 10 * time.Second
	// piecePatience is how long after the job's end a piece is waited for whose server
	// is away, while others are there.
	piecePatience = 30 * time.Minute
)

// lost reports that a piece of the result cannot be had: it is no such media, its
// fresh links are dead too at the step's last try, or its server is away for long.
func (f *files) lost(err error) bool {
	switch mediagate.KindOf(err) {
	case mediagate.KindInvalid, mediagate.KindTooLarge:
		return true
	case mediagate.KindGone:
		return f.answered && f.try >= mirrorTries
	case mediagate.KindTransient:
		return !f.row.EndedAt.IsZero() && f.Now().Sub(f.row.EndedAt) >= piecePatience
	default:
		return false
	}
}

// tryAgain is the error of a copy. Dead links that the vendor has just given may
// begin to work.
func (f *files) tryAgain(err error) error {
	if !f.answered || !mediagate.Is(err, mediagate.KindGone) {
		return err
	}
	return &mediagate.Error{
		Kind: mediagate.KindTransient, Code: string(mediagate.CodeResultUnavailable), Message: messageOf(err), RetryAfter: goneAgain, Err: err,
	}
}

// nothing is the error of a result of which no piece can be had. It is final, unless
// the server of one is only away.
func nothing(lost []error) error {
	for _, err := range lost {
		if mediagate.Is(err, mediagate.KindTransient) {
			return err
		}
	}
	if !mediagate.Is(lost[0], mediagate.KindGone) {
		return lost[0]
	}
	return media.Useless("%s", messageOf(lost[0]))
}

// copy copies the file at the position, from a fresh link where the old one is
// dead. What comes along is left out in the end.
func (f *files) copy(ctx context.Context, position int) ([]mediagate.Result, error) {
	results, err := f.obtain(ctx, position)
	if staleLink(err) && f.refresh(ctx) {
		results, err = f.obtain(ctx, position)
	}
	role, try := f.media[position].Role, f.try
	if f.patience <= 0 {
		try = extraTries
	}
	if err == nil || ctx.Err() != nil || !media.Dispensable(role, mediagate.KindOf(err), try >= extraTries) {
		return results, err
	}
	f.Logger.WarnContext(ctx, "a file that comes along is left out", "task", f.task.ID, "attempt", f.row.N, "role", role, "index", f.media[position].Index, "error", err)
	return nil, nil
}

// obtain is how a file comes into the bucket: it is copied, or it was stored
// while it arrived. That it still is there is all that is asked then.
func (f *files) obtain(ctx context.Context, position int) ([]mediagate.Result, error) {
	m := f.media[position]
	var (
		result mediagate.Result
		err    error
	)
	switch {
	case m.Role == mediagate.RoleStem:
		result, err = f.archive(ctx, position)
	case m.Stored != nil:
		result, err = *m.Stored, f.Bucket.Exists(ctx, *m.Stored)
	default:
		result, err = f.mirrorOne(ctx, position, m)
	}
	if err != nil {
		return nil, err
	}
	if m.Role == mediagate.RoleStem {
		return []mediagate.Result{result}, nil
	}
	if result.Duration == 0 {
		result.Duration = m.Duration
	}
	result.Role, result.Index = m.Role, m.Index
	if m.Role != mediagate.RoleGrid || f.hasMain() {
		return []mediagate.Result{result}, nil
	}
	quarters, err := f.cut(ctx, position, result)
	return append([]mediagate.Result{result}, quarters...), err
}

// hasMain reports that the vendor itself offers what a grid holds.
func (f *files) hasMain() bool {
	return slices.ContainsFunc(f.media, func(m mediagate.Media) bool { return m.Role == mediagate.RoleMain })
}

// refresh asks the vendor once for other links to the same files, and reports
// whether there are any.
func (f *files) refresh(ctx context.Context) bool {
	if f.refreshed {
		return false
	}
	f.refreshed = true
	var fresh []mediagate.Media
	fresh, f.answered = f.freshMedia(ctx, f.channel, f.row)
	found := false
	media := slices.Clone(f.media)
	for i, m := range media {
		same := func(other mediagate.Media) bool { return other.Role == m.Role && other.Index == m.Index }
		at := i
		if at >= len(fresh) || !same(fresh[at]) {
			at = slices.IndexFunc(fresh, same)
		}
		if at >= 0 {
			media[i], found = fresh[at], true
		}
	}
	f.media = media
	return found
}
