package mediagate

import "errors"

// TroubleOf says which trouble it is when the vendor, asked for a job, answers
// with err: that it does not let us see the job, or that we have nobody to
// ask. Others are no trouble: the answer may come next time.
func TroubleOf(err error) ParkReason {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return ""
	}
	switch reason := ParkReason(e.Code); {
	case reason == ParkChannelMissing || reason == ParkJobLost:
		return reason
	case e.Kind == KindCredentials || e.Kind == KindForbidden:
		return ParkCredentials
	case e.Kind == KindFunds:
		return ParkFunds
	default:
		return ""
	}
}
