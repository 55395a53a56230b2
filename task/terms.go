package task

import (
	"cmp"
	"time"

	"github.com/mediagate/mediagate"
)

// Defaults of plans that do not set them.
const (
	defaultParkTimeout  = 24 * time.Hour
	defaultParkRetry    = 5 * time.Minute
	defaultQueueTimeout = 24 * time.Hour
	defaultAbsentGap    = 30 * time.Second // D4
)

// TermsOf returns the terms of a task with that plan, those prices and that hold.
func TermsOf(plan mediagate.Plan, charges []mediagate.Charge, hold mediagate.Micros) Terms {
	t := Terms{
		Expected:     plan.Expected,
		Timeout:      plan.Timeout,
		OnUnknown:    plan.OnUnknown,
		ModalTimeout: plan.Modal,
		AbsentGap:    defaultAbsentGap,
		ParkTimeout:  cmp.Or(plan.ParkTimeout, defaultParkTimeout),
		ParkRetry:    cmp.Or(plan.ParkRetry, defaultParkRetry),
		QueueTimeout: cmp.Or(plan.QueueTimeout, defaultQueueTimeout),
		CheckInputs:  len(plan.Inputs) > 0,
		Charges:      charges,
		Hold:         hold,
		Uploads:      plan.Uploads,
	}
	if len(plan.Routes) > 0 {
		t.Provider = plan.Routes[0].Provider
	}
	return t
}
