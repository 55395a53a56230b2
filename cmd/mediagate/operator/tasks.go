package operator

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// taskFilters are the filters of task lists and of commands for many tasks.
var taskFilters = []string{
	"status", "model", "type", "reference", "source", "created_after", "created_before", "account", "channel", "stuck",
	"webhook", "q",
}

// watchPause is how long tasks watch waits between two reads.
const watchPause = 2 * time.Second

// watchedAtOnce is the number of tasks that tasks watch reads: the newest of the list.
const watchedAtOnce = 100

// filter adds the flags that select tasks to the command. The returned function reads them after
// the flags were parsed.
func (c *call) filter() (read func() (map[string]string, error)) {
	where := c.flags.String("where", "", "")
	stuck := c.flags.Bool("stuck", false, "")
	return func() (map[string]string, error) {
		f := map[string]string{}
		for pair := range strings.FieldsSeq(*where) {
			name, value, ok := strings.Cut(pair, "=")
			switch {
			case !slices.Contains(taskFilters, name):
				return nil, errUsage{
					fmt.Sprintf("-where: %q is not a filter; the filters are: %s", name, strings.Join(taskFilters, ", ")),
				}
			case !ok || value == "":
				return nil, errUsage{"-where: a filter is name=value: " + name}
			case f[name] != "":
				return nil, errUsage{"-where: " + name + " is there twice"}
			}
			f[name] = value
		}
		if *stuck {
			f["stuck"] = "true"
		}
		return f, nil
	}
}

// target removes the id of a task or an account from the front of the arguments and returns it.
func (c *call) target() (id string) {
	if len(c.args) > 0 && !strings.HasPrefix(c.args[0], "-") {
		id, c.args = c.args[0], c.args[1:]
	}
	return id
}

func tasksQuery(filter map[string]string, limit int, after string) string {
	query := page(limit, after)
	for name, value := range filter {
		query.Set(name, value)
	}
	return "/tasks?" + query.Encode()
}

func tasksList(ctx context.Context, c *call) error {
	filter := c.filter()
	limit, after := c.flags.Int("limit", 100, ""), c.flags.String("after", "", "")
	if err := c.parse(); err != nil {
		return err
	}
	f, err := filter()
	if err != nil {
		return err
	}
	answer, err := c.client.do(ctx, http.MethodGet, tasksQuery(f, *limit, *after), nil)
	if err != nil || c.format == "json" {
		return orShow(c, answer, err)
	}
	var list struct {
		Data    []taskLine `json:"data"`
		HasMore bool       `json:"has_more"`
	}
	if err := json.Unmarshal(answer, &list); err != nil {
		return fmt.Errorf("the answer is not readable: %w", err)
	}
	w := tabwriter.NewWriter(c.out, 0, 4, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "ID\tCREATED\tSTATUS\tTYPE\tMODEL\tACCOUNT\tSTUCK\tWHAT IT WAITS FOR")
	for _, t := range list.Data {
		_, _ = fmt.Fprintln(w, row(t.ID, moment(t.Created), t.Status, t.Type, t.Model, t.Account, t.stuck(), t.waits()))
	}
	if err := w.Flush(); err != nil || !list.HasMore || len(list.Data) == 0 {
		return err
	}
	_, err = fmt.Fprintln(c.out, "… more: -after", Printable(list.Data[len(list.Data)-1].ID))
	return err
}

// taskLine is a task in a list.
type taskLine struct {
	ID       string `json:"id"`
	Status   string `json:"status"`
	Model    string `json:"model"`
	Type     string `json:"type"`
	Progress int    `json:"progress"`
	Created  int64  `json:"created"`
	Account  string `json:"account"`
	Key      string `json:"key"`
	Error    *struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
	WaitsFor *struct {
		Step     string   `json:"step"`
		Until    int64    `json:"until"`
		Then     string   `json:"then"`
		Actions  []string `json:"actions"`
		Channels []string `json:"channels"`
	} `json:"waits_for"`
	Webhook *struct {
		State string `json:"state"`
	} `json:"webhook"`
	Stuck *struct {
		Reason  string   `json:"reason"`
		Drained []string `json:"drained"`
		Since   int64    `json:"since"`
	} `json:"stuck"`
}

func (t taskLine) stuck() string {
	if t.Stuck == nil {
		return ""
	}
	if len(t.Stuck.Drained) > 0 {
		return t.Stuck.Reason + " (drained: " + strings.Join(t.Stuck.Drained, ", ") + ")"
	}
	return t.Stuck.Reason
}

func (t taskLine) waits() string {
	switch {
	case t.WaitsFor != nil && len(t.WaitsFor.Channels) > 0:
		return t.WaitsFor.Step + " [" + strings.Join(t.WaitsFor.Channels, ", ") + "]"
	case t.WaitsFor != nil:
		return t.WaitsFor.Step
	case t.Error != nil:
		return t.Error.Code
	default:
		return ""
	}
}

// taskPage is a task with all its details.
type taskPage struct {
	taskLine
	Actions []string `json:"actions"`
	Events  []struct {
		At     int64  `json:"at"`
		What   string `json:"what"`
		Detail string `json:"detail"`
	} `json:"events"`
	Workflow struct {
		ID  string `json:"id"`
		URL string `json:"url"`
	} `json:"workflow"`
	Request json.RawMessage `json:"request"`
}

// tasksShow prints what the task waits for and its history.
func tasksShow(ctx context.Context, c *call) error {
	id, prompt := c.target(), c.flags.Bool("prompt", false, "")
	if err := c.parse(); err != nil {
		return err
	}
	if id == "" {
		return errUsage{"name a task"}
	}
	path := "/tasks/" + url.PathEscape(id)
	if *prompt {
		path += "?prompt=true"
	}
	answer, err := c.client.do(ctx, http.MethodGet, path, nil)
	if err != nil || c.format == "json" {
		return orShow(c, answer, err)
	}
	var t taskPage
	if err := json.Unmarshal(answer, &t); err != nil || t.ID != id {
		return errNoTask(id, answer)
	}
	return t.print(c.out)
}

func (t taskPage) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	say := func(name, text string) {
		if text != "" {
			_, _ = fmt.Fprintln(w, row(name, text))
		}
	}
	say("task", t.ID)
	say("what", fmt.Sprintf("%s by %s, of account %s, key %s", t.Type, t.Model, t.Account, t.Key))
	say("status", fmt.Sprintf("%s, %d %%", t.Status, t.Progress))
	if t.Error != nil {
		say("error", t.Error.Code+": "+t.Error.Message)
	}
	if t.Stuck != nil {
		say("STUCK", t.stuck()+", since "+moment(t.Stuck.Since))
	}
	if t.WaitsFor != nil {
		say("waits for", t.waits())
		say("until", moment(t.WaitsFor.Until))
		say("then", t.WaitsFor.Then)
	}
	if t.Webhook != nil && t.WaitsFor == nil {
		say("callback", t.Webhook.State)
	}
	actions := "none"
	if len(t.Actions) > 0 {
		actions = strings.ReplaceAll(strings.Join(t.Actions, ", "), "_", "-")
	}
	say("actions", actions)
	say("workflow", cmp.Or(t.Workflow.URL, t.Workflow.ID))
	say("request", string(t.Request))
	_, _ = fmt.Fprintln(w)
	for _, e := range t.Events {
		_, _ = fmt.Fprintln(w, row(moment(e.At), e.What, e.Detail))
	}
	return w.Flush()
}

// tasksWatch prints each change of a task until its end. With a filter it prints the changes of all
// selected tasks until it is interrupted.
func tasksWatch(ctx context.Context, c *call) error {
	id, filter := c.target(), c.filter()
	if err := c.parse(); err != nil {
		return err
	}
	f, err := filter()
	if err != nil {
		return err
	}
	if id != "" && len(f) > 0 {
		return errUsage{"an id and a filter exclude each other"}
	}
	said := map[string]string{}
	say := func(t watched, state string) error {
		line := strings.ReplaceAll(row(moment(time.Now().Unix()), t.ID)+"\t"+state, "\t", "  ")
		if c.format == "json" {
			line = PrintableJSON(string(t.text))
		}
		_, err := fmt.Fprintln(c.out, line)
		return err
	}
	for {
		tasks, err := c.readTasks(ctx, id, f)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		for _, t := range slices.Backward(tasks) { // the oldest first
			state := row(t.Status, fmt.Sprintf("%d %%", t.Progress), t.stuck(), t.waits())
			if said[t.ID] == state {
				continue
			}
			said[t.ID] = state
			if err := say(t, state); err != nil {
				return err
			}
		}
		if id != "" && tasks[0].WaitsFor == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(watchPause):
		}
	}
}

// watched is a task and its text in the API's answer.
type watched struct {
	taskLine
	text json.RawMessage
}

// UnmarshalJSON keeps the text in addition to the decoded fields.
func (w *watched) UnmarshalJSON(text []byte) error {
	w.text = slices.Clone(text)
	return json.Unmarshal(text, &w.taskLine)
}

// readTasks reads the task, or the tasks that the filter selects.
func (c *call) readTasks(ctx context.Context, id string, filter map[string]string) ([]watched, error) {
	path := tasksQuery(filter, watchedAtOnce, "")
	if id != "" {
		path = "/tasks/" + url.PathEscape(id)
	}
	answer, err := c.client.do(ctx, http.MethodGet, path, nil)
	if err != nil {
		return nil, err
	}
	if id != "" {
		var t watched
		if err := json.Unmarshal(answer, &t); err != nil || t.ID != id {
			return nil, errNoTask(id, answer)
		}
		return []watched{t}, nil
	}
	var list struct {
		Data []watched `json:"data"`
	}
	if err := json.Unmarshal(answer, &list); err != nil {
		return nil, fmt.Errorf("the answer is not readable: %w", err)
	}
	return list.Data, nil
}

// errNoTask returns the error of an answer that is not the task, such as the page of a proxy.
func errNoTask(id string, answer []byte) error {
	return fmt.Errorf("the answer is not the task %s: %.200q", id, answer)
}

// taskAction returns the function of the command that gives an action to one task, or to all that a
// filter selects.
func taskAction(action string) func(context.Context, *call) error {
	return func(ctx context.Context, c *call) error {
		id, filter := c.target(), c.filter()
		reason, channel := c.flags.String("reason", "", ""), c.flags.String("channel", "", "")
		dry, pace := c.flags.Bool("dry-run", false, ""), c.flags.Int("per-second", 0, "")
		if err := c.parse(); err != nil {
			return err
		}
		f, err := filter()
		switch {
		case err != nil:
			return err
		case (id == "") == (len(f) == 0):
			return errUsage{"name a task, or select some with -where or -stuck"}
		case id != "" && (*dry || *pace != 0):
			return errUsage{"-dry-run and -per-second go with -where"}
		case *reason == "" && !*dry:
			return errUsage{"-reason is missing"}
		}
		body := map[string]any{"action": action, "reason": cmp.Or(*reason, "dry run")}
		if *channel != "" {
			body["channel"] = *channel
		}
		if id != "" {
			answer, err := c.client.do(ctx, http.MethodPost, "/tasks/"+url.PathEscape(id)+"/actions", body)
			if err != nil || c.format == "json" {
				return orShow(c, answer, err)
			}
			_, err = fmt.Fprintf(
				c.out, "%s: %s is on its way; `mediagate tasks show %s` tells what came of it\n", Printable(id), action,
				Printable(id),
			)
			return err
		}
		body["filter"] = f
		if *dry {
			body["dry_run"] = true
		}
		if *pace != 0 {
			body["per_second"] = *pace
		}
		answer, err := c.client.do(ctx, http.MethodPost, "/tasks/actions", body)
		if err != nil || c.format == "json" {
			return orShow(c, answer, err)
		}
		return c.printJob(action, answer)
	}
}

// printJob prints how many tasks a command matched and how to follow its job. Of a dry run it prints
// to how many of the tasks the command applies, and why the job would skip the others.
func (c *call) printJob(action string, answer []byte) error {
	var job struct {
		Matched int            `json:"matched"`
		Checked int            `json:"checked"`
		Applies int            `json:"applies"`
		Skipped map[string]int `json:"skipped"`
		Job     string         `json:"job"`
		Tasks   []string       `json:"tasks"`
	}
	if err := json.Unmarshal(answer, &job); err != nil {
		return fmt.Errorf("the answer is not readable: %w", err)
	}
	for _, id := range job.Tasks {
		_, _ = fmt.Fprintln(c.out, Printable(id))
	}
	text := fmt.Sprintf("%d tasks match, nothing was changed", job.Matched)
	if len(job.Tasks) > 0 && len(job.Tasks) < job.Matched {
		text += fmt.Sprintf("; these are the newest %d", len(job.Tasks))
	}
	if job.Job != "" {
		text = fmt.Sprintf("%d tasks match: %s is under way as workflow actions/%s", job.Matched, action, Printable(job.Job))
	}
	if _, err := fmt.Fprintln(c.out, text); err != nil || job.Checked == 0 {
		return err
	}
	of := "them"
	if job.Checked < job.Matched {
		of = fmt.Sprintf("the newest %d", job.Checked)
	}
	text = fmt.Sprintf("%s applies to %d of %s", action, job.Applies, of)
	var skipped []string
	for _, why := range slices.Sorted(maps.Keys(job.Skipped)) {
		skipped = append(skipped, fmt.Sprintf("%d (%s)", job.Skipped[why], Printable(why)))
	}
	if len(skipped) > 0 {
		text += "; skips " + strings.Join(skipped, ", ")
	}
	_, err := fmt.Fprintln(c.out, text)
	return err
}

// row joins cells with tabs and escapes unprintable characters in them.
func row(cells ...string) string {
	for i, cell := range cells {
		cells[i] = Printable(cell)
	}
	return strings.Join(cells, "\t")
}

// moment formats a time for people; empty for no time.
func moment(unix int64) string {
	if unix == 0 {
		return ""
	}
	return time.Unix(unix, 0).UTC().Format(time.RFC3339)
}
