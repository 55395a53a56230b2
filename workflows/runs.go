package workflows

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"

	"github.com/mediagate/mediagate"
)

// runsPage is how many runs one call lists.
const runsPage = 500

// RunsSince lists the runs of tasks that began at that time or later. Their memo has enough to
// compensate the client of a task whose row was lost (D17). A task has several runs if its run was
// replaced. next names the next page; it is empty after the last one. Temporal's list may lag
// behind by some seconds. RunsSince returns KindInvalid if page is not the next of an earlier
// answer.
func (c Client) RunsSince(
	ctx context.Context, since time.Time, page string,
) (runs []mediagate.UncertainTask, next string, err error) {
	token, err := base64.RawURLEncoding.DecodeString(page)
	if err != nil {
		return nil, "", errNoPage
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	answer, err := c.Temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
		Query:    "WorkflowType = 'Generate' AND StartTime >= '" + since.UTC().Format(time.RFC3339Nano) + "'",
		PageSize: runsPage, NextPageToken: token,
	})
	// Temporal refuses a token that it did not make.
	if _, ok := errors.AsType[*serviceerror.InvalidArgument](err); ok && page != "" {
		return nil, "", errNoPage
	}
	if err != nil {
		const message = "Temporal does not list its runs"
		return nil, "", &mediagate.Error{Kind: mediagate.KindUnavailable, Message: message, Err: err}
	}
	for _, e := range answer.GetExecutions() {
		memo := e.GetMemo()
		// A memo without a readable hold is listed with a hold of zero, since the client of that
		// task must not be left out.
		hold, _ := mediagate.ParseMicros(memoText(memo, "hold"))
		runs = append(runs, mediagate.UncertainTask{
			TaskID: e.GetExecution().GetWorkflowId(), AccountID: memoText(memo, "account"),
			KeyID: memoText(memo, "key"), Model: memoText(memo, "model"), Hold: hold,
			State: strings.ToLower(e.GetStatus().String()), At: e.GetStartTime().AsTime(),
		})
	}
	return runs, base64.RawURLEncoding.EncodeToString(answer.GetNextPageToken()), nil
}

// errNoPage refuses a page that does not come from an earlier answer.
var errNoPage = mediagate.Invalid("after", "after must be the next of the previous answer")

// memoText returns a text of the memo, or "" if it is not there. An unreadable entry must not keep
// the other runs from being listed.
func memoText(memo *commonpb.Memo, name string) (text string) {
	_ = converter.GetDefaultDataConverter().FromPayload(memo.GetFields()[name], &text)
	return text
}
