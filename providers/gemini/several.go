package gemini

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/mediagate/mediagate"
)

// results gathers the results of the calls of one job.
type results struct {
	job mediagate.Job

	mu        sync.Mutex
	callsLeft int                     // calls that have not ended
	media     []mediagate.Media       // the images that have arrived
	ref       mediagate.JobRef        // the reference of the first call that succeeded
	failed    []mediagate.Submission  // calls that the vendor answered without an image
	errs      []error                 // calls that were refused or lost
	charge    *mediagate.VendorCharge // the sum over all calls that the vendor answered
}

// add takes the result of one call. While other calls are open it records the images that have
// arrived, in case this process dies before the last call ends.
func (m *results) add(ctx context.Context, one mediagate.Submission, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.callsLeft--
	if err != nil {
		m.errs = append(m.errs, err)
		return
	}
	m.charge = m.charge.Plus(one.Outcome.VendorCharge)
	if !one.Outcome.Succeeded {
		m.failed = append(m.failed, one)
		return
	}
	if len(m.media) == 0 {
		m.ref = one.Ref
	}
	m.media = append(m.media, one.Outcome.Media...)
	if m.callsLeft > 0 {
		_ = mediagate.Guarded(func() error { // an unrecovered panic on this goroutine would end the process
			m.job.Sink.Record(ctx, m.success())
			return nil
		})
	}
}

// success returns a success with the images that have arrived, in the order of their indexes.
func (m *results) success() mediagate.Submission {
	made := mediagate.Outcome{
		Succeeded: true, VendorCharge: m.charge, Media: slices.Clone(m.media), VendorText: m.missing(),
	}
	slices.SortFunc(made.Media, func(a, b mediagate.Media) int { return a.Index - b.Index })
	return mediagate.Submission{Ref: m.ref, Outcome: &made}
}

// missing returns the reasons why images are missing, for operators. It returns "" if no image is
// missing.
func (m *results) missing() string {
	var why []string
	for _, err := range m.errs {
		why = append(why, mediagate.KindOf(err).String())
	}
	for _, s := range m.failed {
		why = append(why, cmp.Or(s.Outcome.VendorText, s.Outcome.Failure.Message))
	}
	if len(why) == 0 {
		return ""
	}
	return "calls without an image: " + strings.Join(why, ", ")
}

// refusals lists, in the order of rank, the kinds of errors that prove that a call made nothing. If
// the vendor refused the calls for several reasons, the first kind in the list decides: errors that
// the client can correct come before errors that may pass.
var refusals = []mediagate.Kind{
	mediagate.KindModerated, mediagate.KindInvalid, mediagate.KindNoModel, mediagate.KindNotFound,
	mediagate.KindCredentials, mediagate.KindFunds,
	mediagate.KindThrottled, mediagate.KindCapacity, mediagate.KindUnreached,
}

func rank(err error) int { return slices.Index(refusals, mediagate.KindOf(err)) }

// submission returns the result of the job. If any image came, the job succeeds with the images. If
// a call was lost, the job is lost too, since the vendor may have made its image. If the vendor
// answered without an image, the job has failed. Otherwise the vendor refused all calls, and
// submission returns the refusal of the lowest rank.
func (m *results) submission() (mediagate.Submission, error) {
	lost := slices.IndexFunc(m.errs, func(err error) bool { return rank(err) < 0 })
	switch {
	case len(m.media) > 0:
		return m.success(), nil
	case lost >= 0:
		return mediagate.Submission{}, m.errs[lost]
	case len(m.failed) > 0:
		moderated := slices.IndexFunc(m.failed, func(s mediagate.Submission) bool {
			return s.Outcome.Failure.Code == mediagate.CodeContentPolicy
		})
		failed := m.failed[max(moderated, 0)]
		failed.Outcome.VendorCharge = m.charge
		return failed, nil
	default:
		return mediagate.Submission{}, slices.MinFunc(m.errs, func(a, b error) int { return rank(a) - rank(b) })
	}
}
