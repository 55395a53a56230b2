package task

import (
	"fmt"
	"slices"
	"time"

	"github.com/mediagate/mediagate"
)

// A task whose input is a file of another task waits until that task, its source, has
// ended (D21). It has no attempt meanwhile. A source is a task that was there before, so
// that no tasks wait for each other in a circle, and it ends by itself, so that the wait has
// no end of its own.
//
// The end of a source changes nothing here. It only brings the wake of this task forward:
// the next question of its run reads the sources, and finds out.

// sourcePause is how often a task asks for its sources by itself: with jitter, once an
// hour at least.
const sourcePause = 50 * time.Minute

// Begin decides how a new task with sources begins: with their files, or with a wait.
// Sources has them as they are. Returns KindInvalid, naming the field, for a source that
// has ended without the file.
func (s *State) Begin(now time.Time) error {
	for _, f := range s.Sources {
		if words := s.sourceFault(f); words != "" {
			return mediagate.Invalid(f.Field, "%s names %s, %s", f.Field, f.TaskID, words)
		}
	}
	c := change{State: s, now: now}
	c.askSources()
	return nil
}

// needsSources reports that the next attempt cannot be made before all sources have ended
// with their files.
func (s *State) needsSources() bool {
	a := s.Last()
	return s.LacksSources() && (a == nil || mayBeFollowed(a.State) && a.outcome() == nil)
}

// sourceFault says in words that follow the source's id why there will be no such file;
// empty where there is one, or may yet be one.
func (s *State) sourceFault(f mediagate.TaskFile) string {
	source, known := s.SourceTasks[f.TaskID]
	switch {
	case !known || !source.ErasedAt.IsZero():
		return "which is erased"
	case source.Status == mediagate.StatusFailed:
		return "which has failed"
	case source.Status == mediagate.StatusCancelled:
		return "which was cancelled"
	case source.Status != mediagate.StatusCompleted:
		return ""
	}
	if file, ok := source.File(f.N); !ok || file.Key == "" {
		return fmt.Sprintf("which has no file %d", f.N)
	}
	return ""
}

// sourceFailure is how the task fails for the source that was the first to end without its
// file; nil where none has.
func (s *State) sourceFailure() *mediagate.Failure {
	if !s.needsSources() {
		return nil
	}
	var first time.Time
	var failure *mediagate.Failure
	for _, f := range s.Sources {
		words := s.sourceFault(f)
		if ended := s.SourceTasks[f.TaskID].EndedAt; words != "" && (failure == nil || ended.Before(first)) {
			message := fmt.Sprintf("%s needs file %d of %s, %s", f.Field, f.N, f.TaskID, words)
			first, failure = ended, &mediagate.Failure{Code: mediagate.CodeSourceFailed, Message: message}
		}
	}
	return failure
}

// askSources looks at the sources as they are now. Once all have ended with their files, it
// notes these and ends the wait, from which on the deadline counts (D10). Otherwise the task
// waits, or fails: see findDueEnd.
func (c *change) askSources() {
	if !c.needsSources() || c.sourceFailure() != nil {
		return
	}
	files := make([]mediagate.TaskFile, len(c.Sources))
	for i, f := range c.Sources {
		source := c.SourceTasks[f.TaskID]
		file, ok := source.File(f.N)
		if !ok {
			if c.Wait.Why != mediagate.WhySource || !c.now.Before(c.Wait.TryAt) {
				c.wait(mediagate.WhySource, "", c.now.Add(jitter(c.now, sourcePause)))
			}
			return
		}
		f.Key = file.Key
		files[i] = f
	}
	c.Sources = files
	if c.Wait.Why == mediagate.WhySource {
		c.endWait()
	}
}

// OpenSources are the ids of the sources that have not ended, in order.
func (s *State) OpenSources() []string {
	return slices.DeleteFunc(s.SourceIDs(), func(id string) bool {
		source, known := s.SourceTasks[id]
		return !known || source.Status.Terminal()
	})
}
