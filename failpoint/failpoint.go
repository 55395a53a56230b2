// Package failpoint lets tests kill the process at named points of the
// durable path, once a folder and name, to prove that a restart gets on.
//
// It imports nothing of the project. Without Arm every Hit is a no-op.
package failpoint

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
)

// The points of the durable path, in its order.
const (
	SubmitCommitted    = "submit-committed"     // task stored, workflow not started
	IntentStored       = "intent-stored"        // attempt stored, vendor not called
	VendorAccepted     = "vendor-accepted"      // the vendor's answer read, its id not stored
	VendorIDStored     = "vendor-id-stored"     // the vendor's id stored
	PollTerminal       = "poll-terminal"        // an end seen at the vendor, not stored
	OutcomeStored      = "outcome-stored"       // an end stored, the workflow not signalled
	MirrorHalf         = "mirror-half"          // half of a result file read
	Mirrored           = "mirrored"             // files in the bucket, not recorded
	SettleBeforeCommit = "settle-before-commit" // about to commit the end
	SettleCommitted    = "settle-committed"     // the end committed, the workflow not told
	WebhookBeforeSend  = "webhook-before-send"  // about to deliver
	WebhookSent        = "webhook-sent"         // answer read, not recorded
)

// Names returns the names of all points, in the order of the path.
func Names() []string {
	return []string{
		SubmitCommitted, IntentStored, VendorAccepted, VendorIDStored, PollTerminal, OutcomeStored,
		MirrorHalf, Mirrored, SettleBeforeCommit, SettleCommitted, WebhookBeforeSend, WebhookSent,
	}
}

var armed struct {
	sync.Mutex
	name, dir string
}

// Arm makes the first Hit of name kill the process with SIGKILL. A file in
// dir remembers it, so that the restarted process passes.
func Arm(name, dir string) error {
	if !slices.Contains(Names(), name) {
		return fmt.Errorf("unknown failpoint %q", name)
	}
	if dir == "" {
		return fmt.Errorf("failpoint %q needs a folder to remember that it was hit", name)
	}
	armed.Lock()
	defer armed.Unlock()
	armed.name, armed.dir = name, dir
	return nil
}

// Hit kills the process if the point is armed and was not hit before.
func Hit(name string) {
	armed.Lock()
	defer armed.Unlock()
	if armed.name != name {
		return
	}
	mark, err := os.OpenFile(filepath.Join(armed.dir, "failpoint-"+name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return // hit before
	}
	_ = mark.Sync()
	_ = mark.Close()
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // SIGKILL may land a moment later: nothing may happen in between
}
