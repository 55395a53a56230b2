package temporalserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/server/common/log/tag"
)

// TestCallersThatHangUpAreNotLogged checks that lines caused by a client that stops are dropped,
// and that lines about real trouble are not.
func TestCallersThatHangUpAreNotLogged(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		msg  string
		tags []tag.Tag
		told bool
	}{
		"a write of one that went":  {"Update workflow execution operation failed.", []tag.Tag{tag.WorkflowID("w"), tag.Error(fmt.Errorf("write: %w", context.Canceled))}, false},
		"a call of one that went":   {"service failures", []tag.Tag{tag.Error(serviceerror.NewCanceled("context canceled"))}, false},
		"a write that takes long":   {"Update workflow execution operation failed.", []tag.Tag{tag.Error(context.DeadlineExceeded)}, true},
		"a write that fails":        {"Update workflow execution operation failed.", []tag.Tag{tag.Error(errors.New("disk full"))}, true},
		"trouble without an error":  {"Queue reader fell behind", nil, true},
		"trouble that has no cause": {"Internal", []tag.Tag{tag.Error(nil)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			l := newLogger(slog.New(slog.NewTextHandler(&out, nil)))
			l.Error(test.msg, test.tags...)
			l.With(tag.ShardID(1)).Warn(test.msg, test.tags...)
			want := 0
			if test.told {
				want = 2
			}
			if got := strings.Count(out.String(), "\n"); got != want {
				t.Errorf("%d lines, want %d:\n%s", got, want, out.String())
			}
		})
	}
	var out bytes.Buffer
	newLogger(slog.New(slog.NewTextHandler(&out, nil))).Warn(metricsWarning, tag.NewStringTag("method", "m"))
	if out.Len() > 0 {
		t.Errorf("it says %s", out.String())
	}
}
