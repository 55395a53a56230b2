package api

import (
	"context"
	"slices"
	"strings"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/catalog"
)

// source finds what the client names that an earlier task of the account made,
// with the job that made it; nil for none. Its errors are the client's, but for
// a database that is away: they name the field and say what is wrong with what
// it names, alike for tasks that are unknown and someone else's.
func (s *Server) source(c *call, named *catalog.Source) (*mediagate.Source, error) {
	if named == nil {
		return nil, nil
	}
	found, err := s.findSource(c, named)
	if err != nil {
		return nil, err
	}
	job, err := s.cfg.Store.Producer(c.ctx, found.TaskID)
	switch {
	case mediagate.Is(err, mediagate.KindNotFound):
		return nil, unusable(named, "names a task whose job is not known any more")
	case err != nil:
		return nil, err
	}
	found.Provider, found.Channel, found.Fingerprint, found.Ref = job.Provider, job.Channel, job.Fingerprint, job.Ref
	if found.Accounts, err = s.cfg.Store.SameAccount(c.ctx, job.Fingerprint); err != nil {
		return nil, err
	}
	return &found, nil
}

// findSource reads the task that the source is of. There are several ways to
// name one, each a case.
func (s *Server) findSource(c *call, named *catalog.Source) (mediagate.Source, error) {
	switch {
	case named.Rule.Button != "":
		task, err := s.sourceTask(c, named, named.Task)
		if err != nil {
			return mediagate.Source{}, err
		}
		return buttonOf(&task, named)
	case named.Task != "":
		task, err := s.sourceTask(c, named, named.Task)
		if err != nil {
			return mediagate.Source{}, err
		}
		return clipOf(&task, named, named.Index-1)
	case named.Clip != "":
		at, err := s.maker(c.ctx, c.caller.key.AccountID, mediagate.MadeClip, named, named.Clip)
		if err != nil {
			return mediagate.Source{}, err
		}
		task, err := s.sourceTask(c, named, at.TaskID)
		if err != nil {
			return mediagate.Source{}, err
		}
		return clipOf(&task, named, at.Index)
	default:
		at, err := s.maker(c.ctx, c.caller.key.AccountID, mediagate.MadeVoice, named, named.Voice)
		if err != nil {
			return mediagate.Source{}, err
		}
		task, err := s.sourceTask(c, named, at.TaskID)
		if err != nil {
			return mediagate.Source{}, err
		}
		return mediagate.Source{TaskID: task.ID, Index: at.Index, VendorID: named.Voice}, nil
	}
}

// maker is the task of the account that made what a vendor's id names.
func (s *Server) maker(ctx context.Context, account string, kind mediagate.MadeKind, named *catalog.Source, vendorID string) (mediagate.MadeAt, error) {
	if !storable(vendorID) {
		return mediagate.MadeAt{}, unusable(named, "is unknown")
	}
	at, err := s.cfg.Store.MadeBy(ctx, account, kind, vendorID)
	if mediagate.Is(err, mediagate.KindNotFound) {
		return mediagate.MadeAt{}, unusable(named, "is unknown")
	}
	return at, err
}

// sourceTask reads the completed task of the account that the source is of.
func (s *Server) sourceTask(c *call, named *catalog.Source, id string) (mediagate.Task, error) {
	task, err := s.accountTask(c, named, id)
	if err == nil && task.Status != mediagate.StatusCompleted {
		err = unusable(named, "must be of a completed task, not of one that is "+string(task.Status))
	}
	return task, err
}

// accountTask reads the task of the account that the source is of, whatever has
// become of it.
func (s *Server) accountTask(c *call, named *catalog.Source, id string) (mediagate.Task, error) {
	if !looksLike(id, taskPrefix) {
		return mediagate.Task{}, unusable(named, "is unknown")
	}
	task, err := s.cfg.Store.Task(c.ctx, c.caller.key.AccountID, id)
	switch {
	case mediagate.Is(err, mediagate.KindNotFound):
		return mediagate.Task{}, unusable(named, "is unknown")
	case err != nil:
		return mediagate.Task{}, err
	case !slices.Contains(named.Rule.Of, c.models.canonical(task.Model)):
		return mediagate.Task{}, unusable(named, "must be of "+strings.Join(named.Rule.Of, " or ")+", the task's type is "+string(task.Type)+" and its model "+task.Model)
	}
	if until := s.cfg.Keep.FilesUntil(&task); !until.IsZero() && !s.now().Before(until) {
		for i := range task.Results {
			task.Results[i].Key = "" // about to be removed: only the account that made it can go on with it
		}
	}
	return task, nil
}

// buttonOf is the task with the button of it that the request presses.
func buttonOf(task *mediagate.Task, named *catalog.Source) (mediagate.Source, error) {
	button, err := named.Pick(task)
	return mediagate.Source{TaskID: task.ID, Button: button.CustomID}, err
}

// clipOf is one of a task's songs, by its index from 0, with the length of its
// file, which is the one that counts. What a task has beside songs, such as an
// archive, is no source.
func clipOf(task *mediagate.Task, named *catalog.Source, index int) (mediagate.Source, error) {
	songs := task.Made.Songs(task.Results)
	if len(songs) == 0 {
		return mediagate.Source{}, unusable(named, "must be of a task that made songs, the task's type is "+string(task.Type)+" and its model "+task.Model)
	}
	if index < 0 || index >= len(songs) {
		return mediagate.Source{}, mediagate.Invalid(named.Rule.Index, "%s must be between 1 and %d, the number of clips of the task", named.Rule.Index, len(songs))
	}
	song := songs[index]
	if song.File == (mediagate.Result{}) {
		return mediagate.Source{}, mediagate.Invalid(named.Rule.Index, "%s names a clip that could not be delivered", named.Rule.Index)
	}
	if err := named.Fits(song.Seconds); err != nil {
		return mediagate.Source{}, err
	}
	return mediagate.Source{TaskID: task.ID, Index: index, VendorID: song.ID, Key: song.File.Key, Clip: &song.Clip}, nil
}

// unusable is the refusal of a source, which names the field that names it.
func unusable(named *catalog.Source, rule string) error {
	return mediagate.Invalid(named.Field(), "%s %s", named.Field(), rule)
}
