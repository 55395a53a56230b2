package task

import (
	"fmt"
	"slices"
	"time"

	"github.com/mediagate/mediagate"
)

// A task may use a file of another task, its source, as an input. It waits until the source has
// ended, and makes no attempt before (D21). A source is always older than the task that uses it,
// so tasks cannot wait for each other in a circle. Each source ends by itself, so this wait needs
// no end of its own.
//
// The end of a source changes nothing in this state. It only brings the wake of the waiting task
// forward. The next question of that task's run loads the sources, and sees what has become of
// them.

// sourcePause is the pause after which a task reads its sources by itself. With jitter it is at
// most one hour.
const sourcePause = 50 * time.Minute

// Begin decides how a new task with sources begins: with their files, or with a wait. SourceTasks
// holds the sources as they are now. Begin returns KindInvalid, naming the field, if a source has
// ended without the file.
func (s *State) Begin(now time.Time) error {
	for _, f := range s.Sources {
		if words := s.sourceFault(f); words != "" {
			return mediagate.Invalid(f.Field, "%s names %s, %s", f.Field, f.TaskID, words)
		}
	}
	c := change{State: s, now: now}
	c.checkSources()
	return nil
}

// needsSources reports whether the next attempt has to wait until all sources have ended with
// their files.
func (s *State) needsSources() bool {
	return s.LacksSources() && s.nothingAtVendor()
}

// sourceFault says why the file will never come, in words that follow the source's id: "which has
// failed". It is empty if the file is there, or may still come.
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

// sourceFailure returns the failure of a task whose source ended without the file, or nil. If
// several sources did, the failure names the one that ended first.
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

// checkSources reads the sources as they are now. If all have ended with their files, checkSources
// notes the files and ends the wait; the deadline counts from then on (D10). If one has ended
// without its file, the task fails: see findDueEnd. Otherwise the task waits.
func (c *change) checkSources() {
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

// OpenSources returns the ids of the sources that have not ended, in order.
func (s *State) OpenSources() []string {
	return slices.DeleteFunc(s.SourceIDs(), func(id string) bool {
		source, known := s.SourceTasks[id]
		return !known || source.Status.Terminal()
	})
}
