package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// recoverTimeout is longer than the gateway needs for a page.
const recoverTimeout = 3 * time.Minute

// recoverRestored reports to the gateway that its database was restored, and prints the tasks that
// need a person's decision (D17).
func recoverRestored(ctx context.Context, c *call) error {
	to := c.flags.String("restored-to", "", "")
	if err := c.parse(); err != nil {
		return err
	}
	restoredTo, err := PastTime("-restored-to", *to)
	if err != nil {
		return err
	}
	c.client.http.Timeout = recoverTimeout
	body := map[string]any{"restored_to": restoredTo.Format(time.RFC3339Nano)}
	marked, waiting, missing, seen := 0, 0, 0, map[any]bool{}
	rows := []map[string]any{}
	for {
		answer, err := c.client.do(ctx, http.MethodPost, "/recover", body)
		if refused, ok := errors.AsType[errRefused](err); ok {
			return errUsage(refused)
		}
		if err != nil {
			return err
		}
		var page struct {
			Marked  int              `json:"marked"`
			Data    []map[string]any `json:"data"`
			HasMore bool             `json:"has_more"`
			Next    string           `json:"next"`
		}
		if err := json.Unmarshal(answer, &page); err != nil {
			return fmt.Errorf("the answer is not readable: %w", err)
		}
		marked += page.Marked
		for _, row := range page.Data {
			if seen[row["id"]] { // a task may have several runs
				continue
			}
			seen[row["id"]] = true
			rows = append(rows, row)
			if row["kind"] == "row_missing" {
				missing++
			} else {
				waiting++
			}
		}
		if !page.HasMore {
			break
		}
		if page.Next == "" || page.Next == body["after"] {
			return errors.New("the answer has more pages and does not name the next one")
		}
		body["after"] = page.Next
	}
	if c.format == "json" {
		text, err := json.Marshal(map[string]any{
			"restored_to": restoredTo.Unix(), "marked": marked, "tasks": waiting, "row_missing": missing, "data": rows,
		})
		if err == nil {
			_, err = fmt.Fprintln(c.out, PrintableJSON(string(text)))
		}
		return err
	}
	if len(rows) > 0 {
		if err := c.table(
			rows, []string{"kind", "id", "account", "key", "model", "hold", "state", "reason", "at"},
		); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(c.out, `%d open tasks were told now that they may lack attempts.
task: %d of them may have been submitted since the backup. Nothing is sent for them: a job that is found by our own id is taken on; else
  look at the vendor, then retry (the vendor may charge again) or fail them. Run this command again to see which are left.
row_missing: %d tasks were submitted since the backup, and are lost. Their ids are unknown to clients' polls, nothing was charged, and vendors
  may have made their jobs: make good by account and hold.
Not known here, since the database has lost it: grants, accounts, keys and their changes, cancels and erasures after that time.
`, marked, waiting, missing)
	return err
}

// PastTime parses a flag with a time in the past: RFC 3339 or Unix seconds.
func PastTime(flag, text string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, strings.ToUpper(text))
	if seconds, wrong := strconv.ParseInt(text, 10, 64); wrong == nil && seconds >= 0 {
		t, err = time.Unix(seconds, 0), nil
	}
	switch {
	case text == "":
		return t, errUsage{flag + " is missing"}
	case err != nil:
		return t, errUsage{flag + " must be an RFC 3339 time or Unix seconds"}
	case t.After(time.Now()):
		return t, errUsage{flag + " must not be in the future"}
	}
	return t.UTC(), nil
}
