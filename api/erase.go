package api

import (
	"net/http"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/failpoint"
)

// removeTime is how long an erasure waits for the bucket.
const removeTime = 5 * time.Second

// handleErasure erases a task in the database, which decides, and then its files.
// Those that the bucket keeps for now the workers remove: the row says that they
// are to be swept.
func (s *Server) handleErasure(c *call) error {
	id := c.Param("task_id")
	if !looksLike(id, taskPrefix) {
		return errTaskID
	}
	c.taskID = id
	uploads, err := s.cfg.Store.EraseTask(c.ctx, c.caller.key.AccountID, id)
	if err != nil {
		return maskTask(err)
	}
	failpoint.Hit(failpoint.TaskErased)
	s.removeFiles(c, id, uploads)
	return c.NoContent(http.StatusNoContent)
}

// removeFiles ends the links to what was erased. It outlives a client that
// leaves.
func (s *Server) removeFiles(c *call, id string, uploads []string) {
	ctx, cancel := c.lasting(c.route.time)
	defer cancel()
	if err := s.cfg.Remover.Remove(ctx, mediagate.ResultFolder(id), uploads...); err != nil {
		s.log.WarnContext(ctx, "files of an erased task not removed yet, the workers will", "task", id, "request", c.requestID, "error", err)
	}
}
