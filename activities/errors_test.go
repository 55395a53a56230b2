package activities_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
)

// TestCausesAreLoggedAndStayInside checks that the cause of an internal error goes to our log
// only, since Temporal keeps and shows its errors.
func TestCausesAreLoggedAndStayInside(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	var logged bytes.Buffer
	b.Activities.Logger = slog.New(slog.NewJSONHandler(&logged, nil))
	b.Store.Fault = func(string) error {
		return mediagate.Errorf(mediagate.KindUnavailable, "the database is away: %w", errors.New("dial db.internal"))
	}
	_, err := call[activities.Answer](b, b.Activities.Ask, activities.Question{TaskID: taskID})
	kind(t, err, mediagate.KindUnavailable, "", true)
	if strings.Contains(err.Error(), "db.internal") {
		t.Errorf("the error tells the cause: %v", err)
	}
	if line := logged.String(); !strings.Contains(line, "db.internal") || !strings.Contains(line, `"activity":"Ask"`) {
		t.Errorf("the log does not tell the cause: %q", line)
	}
}
