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
	_, err = fmt.Fprintf(c.out, `%d open tasks were marked now: their rows may lack attempts.
task: %d of the marked tasks may have been submitted to a vendor since the backup. Nothing is sent for them until
  their job is found by our own id. If it is not found, look for it at the vendor, then retry the task (the vendor may
  charge again) or fail it. Run this command again to see which are left.
row_missing: %d tasks were submitted since the backup and are lost. Clients that poll for them get the answer for an
  unknown id, and nothing was charged. Vendors may have made their jobs: compensate each account by its hold.
Grants, accounts, keys and their changes, cancels and erasures after that time are lost, too, and are not listed here.
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
