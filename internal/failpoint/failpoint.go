// Package failpoint lets tests kill the process at named points of the durable path, to prove that
// a restarted process continues the work. Tests may also stop it there, to prove that other
// processes continue without it and that it does no harm when it resumes.
//
// It imports nothing of the project. Without Arm every Hit is a no-op.
package failpoint

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// The points of the durable path, in its order.
const (
	SubmitCommitted    = "submit-committed"     // task stored, workflow not started
	InputsChecked      = "inputs-judged"        // the media of a request checked, the result not stored
	SlotGranted        = "slot-granted"         // a slot granted to a queued task, its workflow not signalled
	IntentStored       = "intent-stored"        // attempt stored, vendor not called
	VendorAccepted     = "vendor-accepted"      // the vendor's answer read, its id not stored
	HandedOver         = "handed-over"          // a synchronous vendor's files and their manifest stored, the outcome not
	VendorIDStored     = "vendor-id-stored"     // the vendor's id stored
	PollTerminal       = "poll-terminal"        // an end seen at the vendor, not stored
	OutcomeStored      = "outcome-stored"       // an end stored, the workflow not signalled
	ModalBegun         = "modal-begun"          // the wait for modal parameters stored, the workflow not signalled
	ModalCommitted     = "modal-committed"      // a client's modal parameters stored, the workflow not signalled
	ModalExpired       = "modal-expired"        // the end of that wait stored, the workflow not signalled
	MirrorHalf         = "mirror-half"          // half of a result file read
	Mirrored           = "mirrored"             // files in the bucket, not recorded
	SettleBeforeCommit = "settle-before-commit" // about to commit the end
	SettleCommitted    = "settle-committed"     // the end committed, the workflow not signalled
	WebhookBeforeSend  = "webhook-before-send"  // about to deliver
	WebhookSent        = "webhook-sent"         // answer read, not recorded
	TaskErased         = "erased"               // a task erased in the database, its files not removed
	SpeechHeld         = "speech-held"          // money held, vendor not called
	SpeechBegun        = "speech-begun"         // the first sound read, not passed on
	SpeechSent         = "speech-sent"          // the last sound passed on, money not charged
)

// Names returns the names of all points, in the order of the path.
func Names() []string {
	return []string{
		SubmitCommitted, InputsChecked, SlotGranted, IntentStored, VendorAccepted, HandedOver, VendorIDStored, PollTerminal,
		OutcomeStored,
		ModalBegun, ModalCommitted, ModalExpired,
		MirrorHalf, Mirrored, SettleBeforeCommit, SettleCommitted, WebhookBeforeSend, WebhookSent, TaskErased, SpeechHeld,
		SpeechBegun, SpeechSent,
	}
}

// StopSuffix after a name stops the process (SIGSTOP) instead of killing it. SIGCONT resumes it.
const StopSuffix = ":stop"

var armed struct {
	sync.Mutex
	name, dir string
	stop      bool
}

// Arm makes the first Hit of name kill the process with SIGKILL, or stop it with StopSuffix. A file
// in dir records the hit, so that the restarted process passes the point.
func Arm(name, dir string) error {
	name, stop := strings.CutSuffix(name, StopSuffix)
	if !slices.Contains(Names(), name) {
		return fmt.Errorf("unknown failpoint %q", name)
	}
	if dir == "" {
		return fmt.Errorf("failpoint %q needs a folder to remember that it was hit", name)
	}
	armed.Lock()
	defer armed.Unlock()
	armed.name, armed.dir, armed.stop = name, dir, stop
	return nil
}

// Armed returns the name of the armed point, or an empty string.
func Armed() string {
	armed.Lock()
	defer armed.Unlock()
	return armed.name
}

// settle is longer than a signal to the own process needs to reach every thread.
const settle = 50 * time.Millisecond

// Hit kills or stops the process if the point is armed and this is its first hit.
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
	if armed.stop {
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		time.Sleep(settle) // return only after the process was stopped and resumed
		return
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // SIGKILL may arrive a moment later; do nothing until then
}
