package replay

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/mediagate/mediagate/cmd/mediagate/app"
	"github.com/mediagate/mediagate/cmd/mediagate/operator"
)

// Usage is the usage line of the command.
const Usage = "mediagate replay ID|FILE [-run RUN] [-config FILE] [-data DIR] [-temporal-address ADDR] [-temporal-namespace NAME] [-o json]"

const (
	// maxHistory is more than Temporal's limit for a history.
	maxHistory = 64 << 20
	// fetchTimeout limits reading a history from Temporal.
	fetchTimeout = time.Minute
)

// report is the output of the command.
type report struct {
	Workflow   string      `json:"workflow"`
	Run        string      `json:"run"`
	Type       string      `json:"type"`
	Steps      []line      `json:"steps"`
	Same       bool        `json:"same"`
	Difference *difference `json:"difference,omitempty"`
}

// Run replays the history that the arguments name and reports whether this build decides as the run
// did. The error is an *app.UsageError for wrong use, and flag.ErrHelp for -help.
func Run(ctx context.Context, args, environ []string, stdout io.Writer) (same bool, err error) {
	var name string
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		name, args = args[0], args[1:]
	}
	var run, data, format string
	src := app.Sources{Base: app.Defaults(), Env: environ, Role: app.RoleReplay, Embedded: true}
	flags := flag.NewFlagSet("replay", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&run, "run", "", "")
	flags.StringVar(&data, "data", "", "")
	flags.StringVar(&format, "o", "table", "")
	for _, setting := range []string{"config", "temporal-address", "temporal-namespace"} {
		flags.Func(setting, "", func(value string) error {
			src.Args = append(src.Args, "-"+setting+"="+value)
			return nil
		})
	}
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return false, err
	case err != nil:
		return false, app.WrongUse(err.Error())
	case flags.NArg() > 0 && name != "":
		return false, app.Unexpected(flags.Arg(0))
	case flags.NArg() > 1:
		return false, app.Unexpected(flags.Arg(1))
	case flags.NArg() == 1:
		name = flags.Arg(0)
	}
	switch {
	case name == "":
		return false, app.WrongUse("name a task, another workflow, or a file with a history")
	case format != "table" && format != "json":
		return false, app.WrongUse("-o is table or json")
	}
	history, err := load(ctx, name, run, data, src)
	if err != nil {
		return false, err
	}
	r, err := examine(history)
	if err != nil {
		return false, fmt.Errorf("%s: %w", name, err)
	}
	if r.Workflow == "" {
		r.Workflow = name
	}
	if format == "json" {
		text, err := json.Marshal(r)
		if err == nil {
			_, err = fmt.Fprintln(stdout, operator.PrintableJSON(string(text)))
		}
		return r.Same, err
	}
	return r.Same, r.print(stdout)
}

// load reads the history from the file of that name, or from Temporal if there is no such file.
func load(ctx context.Context, name, run, data string, src app.Sources) (*historypb.History, error) {
	file, err := os.Open(name)
	if err == nil {
		defer file.Close()
		return read(file)
	}
	if !errors.Is(err, os.ErrNotExist) || strings.HasSuffix(name, ".json") {
		return nil, err
	}
	src.File = operator.Variable(src.Env, "MEDIAGATE_CONFIG")
	if data != "" {
		address, err := standalone(data)
		if err != nil {
			return nil, err
		}
		src.Args = append([]string{"-temporal-address=" + address}, src.Args...)
	}
	c, err := app.Load(src)
	if err != nil {
		return nil, err
	}
	history, err := fetch(ctx, c.Temporal, name, run)
	if err != nil {
		return nil, errors.New(c.Scrub(err.Error()))
	}
	return history, nil
}

// standalone returns the address of the Temporal of a standalone's folder.
func standalone(dir string) (address string, err error) {
	where, err := operator.FindStandalone(dir)
	if err != nil {
		return "", err
	}
	if where.Temporal == "" {
		return "", fmt.Errorf("the standalone on %s runs no Temporal", dir)
	}
	return where.Temporal, nil
}

// read reads a history that Temporal's UI or command line saved.
func read(r io.Reader) (*historypb.History, error) {
	history, err := client.HistoryFromJSON(io.LimitReader(r, maxHistory), client.HistoryJSONOptions{})
	if err != nil {
		return nil, fmt.Errorf("this is no history as Temporal's UI saves it without decoding: %w", err)
	}
	return history, nil
}

// fetch reads the history of a run from Temporal. Without a run it reads the history of the newest
// one.
func fetch(ctx context.Context, t app.Temporal, id, run string) (*historypb.History, error) {
	c, err := t.Client(slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	history := &historypb.History{}
	events := c.GetWorkflowHistory(ctx, id, run, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		if _, ok := errors.AsType[*serviceerror.NotFound](err); ok {
			return nil, fmt.Errorf(
				"no history of %s in namespace %s of Temporal at %s: those of ended runs are kept for 30 days", id, t.Namespace,
				t.Address,
			)
		}
		if err != nil {
			return nil, fmt.Errorf("read the history of %s from Temporal at %s: %w", id, t.Address, err)
		}
		history.Events = append(history.Events, event)
	}
	return history, nil
}

// examine lists the steps of the history and compares it with this build. Temporal's SDK expects a
// complete history and panics over a broken one. That says nothing about the build.
func examine(history *historypb.History) (r report, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			r, err = report{}, fmt.Errorf("the history is damaged: Temporal's SDK fails over it: %v", fault)
		}
	}()
	events := history.GetEvents()
	if len(events) == 0 || events[0].GetWorkflowExecutionStartedEventAttributes() == nil {
		return report{}, errors.New("the history does not begin with the start of a workflow")
	}
	if len(events) < 3 {
		return report{}, errors.New("no worker has taken up the run yet: there is nothing to replay")
	}
	started := events[0].GetWorkflowExecutionStartedEventAttributes()
	r = report{
		Workflow: started.GetWorkflowId(), Run: started.GetOriginalExecutionRunId(),
		Type:  started.GetWorkflowType().GetName(),
		Steps: story(events), Difference: compare(history),
	}
	r.Same = r.Difference == nil
	// The SDK does not name the events of some differences.
	if d := r.Difference; d != nil && d.History == "" && d.Build == "" {
		var did []string
		for _, l := range r.Steps {
			if l.Event > d.After && l.Event <= d.last {
				did = append(did, l.What)
			}
		}
		d.History, d.Build = strings.Join(did, ", "), "something else"
	}
	return r, nil
}

// print writes the report for a person, with a mark where this build would differ.
func (r report) print(out io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(
		&b, "%s, a run of %s: %s\n\n", operator.Printable(r.Workflow), operator.Printable(r.Type), operator.Printable(r.Run),
	)
	w := tabwriter.NewWriter(&b, 0, 4, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "TIME\tEVENT\tWHAT\tDETAIL")
	marked := r.Same
	for _, l := range r.Steps {
		if !marked && r.Difference.begins(l.Event) {
			marked = true
			_, _ = fmt.Fprintln(w, "\t\tTHIS BUILD DIFFERS\tfrom here on")
		}
		_, _ = fmt.Fprintf(
			w, "%s\t%d\t%s\t%s\n", l.At.UTC().Format(time.RFC3339), l.Event, operator.Printable(l.What),
			operator.Printable(l.Detail),
		)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if r.Same {
		b.WriteString("\nThis build decides as the run did.\n")
	} else {
		r.Difference.print(&b)
	}
	_, err := io.WriteString(out, b.String())
	return err
}
