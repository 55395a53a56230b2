package api

import (
	"encoding/json"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/catalog"
	"github.com/mediagate/mediagate/media"
)

// taskFiles finds the fields of a request that name files of other tasks of the account, which
// may still run (D21). Its errors name the field and say what is wrong. An unknown task and
// another account's task get the same error. The submit checks them again, under locks.
func (s *Server) taskFiles(c *call, r catalog.Request) (files []mediagate.TaskFile, err error) {
	request, err := media.Decode(r.Params)
	if err != nil {
		return nil, err
	}
	tasks := map[string]mediagate.Task{}
	for _, in := range r.Media {
		address, _ := media.FieldAt(request, in.Field).(string)
		id, n, ok := s.taskFileOf(address)
		if !ok {
			continue
		}
		source, known := tasks[id]
		if !known {
			if source, err = s.fileTask(c, in.Field, id); err != nil {
				return nil, withSentName(err, r.Folded)
			}
			tasks[id] = source
		}
		if words := s.taskFileProblem(in, &source, n); words != "" {
			return nil, withSentName(mediagate.Invalid(in.Field, "%s %s", in.Field, words), r.Folded)
		}
		files = append(files, mediagate.TaskFile{Field: in.Field, TaskID: id, N: n})
	}
	return files, nil
}

func (s *Server) taskFileOf(address string) (taskID string, n int, ok bool) {
	if s.cfg.TaskFileOf == nil {
		return "", 0, false
	}
	return s.cfg.TaskFileOf(address)
}

// fileTask reads the task of the account whose file a field names.
func (s *Server) fileTask(c *call, field, id string) (mediagate.Task, error) {
	unknown := mediagate.Invalid(field, "%s names a task that is unknown", field)
	if !isID(id, taskPrefix) {
		return mediagate.Task{}, unknown
	}
	t, err := s.cfg.Store.Task(c.ctx, c.caller.key.AccountID, id)
	return t, notFoundAs(err, unknown)
}

// taskFileProblem says, in words that follow the field's name, why the task's n-th file cannot be
// the input. It returns "" if nothing is known to be wrong.
func (s *Server) taskFileProblem(in mediagate.Input, t *mediagate.Task, n int) string {
	switch {
	case t.Status == mediagate.StatusFailed || t.Status == mediagate.StatusCancelled:
		return "names a task that is " + string(t.Status)
	case n > t.MostFiles():
		return "names a file that its task does not have"
	case t.Status != mediagate.StatusCompleted && t.Plan.Media != in.Kind:
		return "must name " + in.Kind + ", and its task makes " + t.Plan.Media
	case t.Status != mediagate.StatusCompleted:
		return ""
	}
	file, _ := t.File(n)
	if until := s.cfg.Keep.FilesUntil(t); file.Key == "" || !until.IsZero() && !s.now().Before(until) {
		return "names a file that is no longer kept"
	}
	return media.FaultOf(in, file)
}

// noTaskFiles refuses files of tasks in a request that makes no task of its own.
func (s *Server) noTaskFiles(r catalog.Request) error {
	request, err := media.Decode(r.Params)
	if err != nil {
		return err
	}
	for _, in := range r.Media {
		address, _ := media.FieldAt(request, in.Field).(string)
		if _, _, ok := s.taskFileOf(address); ok {
			return mediagate.Invalid(in.Field, "%s takes no file of a task here", in.Field)
		}
	}
	return nil
}

// withPlaceholders returns the parameters for a question to an adapter. Each field that names a
// file of a task gets a placeholder, since the vendor's address of the file is not known yet.
func withPlaceholders(params json.RawMessage, files []mediagate.TaskFile) (json.RawMessage, error) {
	if len(files) == 0 {
		return params, nil
	}
	request, err := media.Decode(params)
	if err != nil {
		return nil, err
	}
	coming := make(map[string]string, len(files))
	for _, f := range files {
		coming[f.Field] = mediagate.UploadComing
	}
	if request, err = media.SetFields(request, coming); err != nil {
		return nil, err
	}
	return media.Encode(request)
}
