package operator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// Exit codes of the commands.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// errUsage is the error of a wrong command line.
type errUsage struct{ text string }

func (e errUsage) Error() string { return e.text }

// command is one command: its name, the usage of its arguments, and its function.
type command struct {
	name  string // "accounts list"
	usage string
	run   func(ctx context.Context, c *call) error
}

// oneOrMany is the usage of the commands that act on one task or on many.
const oneOrMany = "(ID | -stuck | -where FILTER [-dry-run] [-per-second N]) -reason TEXT"

func commands() []command {
	return []command{
		{"accounts list", "[-q TEXT] [-limit N] [-after ID]", accountsList},
		{"accounts show", "ID", accountsShow},
		{"accounts create", "-name NAME [-group GROUP] [-rate N] [-in-flight N] [-unpaid AMOUNT] [-uploads-per-day BYTES] [-erase-inputs]", accountsCreate},
		{"accounts grant", "-account ID -amount AMOUNT -reference TEXT", accountsGrant},
		{"accounts suspend", "ID -reason TEXT", accountsSuspend},
		{"accounts resume", "ID [-reason TEXT]", accountsResume},
		{"accounts usage", "[-account ID] [-from TIME] [-to TIME] [-group-by day,model,key,account,provider]", accountsUsage},
		{"accounts statement", "-account ID [-from TIME] [-to TIME] [-limit N] [-after ID]", accountsStatement},
		{"keys list", "[-account ID] [-limit N] [-after ID]", keysList},
		{"keys create", "-account ID -name NAME (-unlimited | -quota AMOUNT) [-models A,B] [-group GROUP] [-expires TIME] [-allow-ips A,B] " +
			"[-caps-day AMOUNT] [-caps-week AMOUNT] [-caps-month AMOUNT] [-rate N] [-in-flight N] [-scopes A,B]", keysCreate},
		{"keys rotate", "-key ID [-grace TIME]", keysRotate},
		{"keys revoke", "-key ID", keysRevoke},
		{"tasks list", "[-stuck] [-where FILTER] [-limit N] [-after ID]", tasksList},
		{"tasks show", "ID [-prompt]", tasksShow},
		{"tasks watch", "[ID | -stuck | -where FILTER]", tasksWatch},
		{"tasks retry", oneOrMany, taskAction("retry")},
		{"tasks reroute", oneOrMany + " [-channel NAME]", taskAction("reroute")},
		{"tasks fail", oneOrMany, taskAction("fail")},
		{"tasks poll-now", oneOrMany, taskAction("poll_now")},
		{"tasks redeliver", oneOrMany, taskAction("redeliver")},
		{"channels list", "[-limit N] [-after NAME]", channelsList},
		{"channels enable", "NAME [-reason TEXT]", channelsEnable},
		{"channels disable", "NAME [-reason TEXT]", channelsDisable},
		{"vendors list", "[-limit N] [-after NAME]", vendorsList},
		{"ledger check", "", ledgerCheck},
		{"recover", "-restored-to TIME", recoverRestored},
		{"audit list", "[-account ID] [-by NAME|KEY] [-action ACTION] [-object ID] [-from TIME] [-to TIME] [-limit N] [-after ID]", auditList},
	}
}

// Has reports whether there are commands for the name, such as "accounts".
func Has(name string) bool {
	return slices.ContainsFunc(
		commands(), func(c command) bool { return c.name == name || strings.HasPrefix(c.name, name+" ") },
	)
}

// Names returns the names of the commands, such as "accounts list".
func Names() []string {
	names := make([]string, 0, len(commands()))
	for _, c := range commands() {
		names = append(names, c.name)
	}
	return names
}

// Summary lists the commands, with a line for each object such as accounts.
func Summary() string {
	var b strings.Builder
	before := ""
	for _, cmd := range commands() {
		name, verb, _ := strings.Cut(cmd.name, " ")
		switch before {
		case name:
			b.WriteString("|" + verb)
		case "":
			b.WriteString("  " + cmd.name)
		default:
			b.WriteString("\n  " + cmd.name)
		}
		before = name
	}
	return b.String() + "\n"
}

// call is one run of a command.
type call struct {
	flags   *flag.FlagSet
	args    []string
	out     io.Writer
	notes   io.Writer // progress of long commands
	format  string
	data    string
	environ []string
	client  *client
}

// parse parses the command's flags and connects.
func (c *call) parse() error {
	if err := c.flags.Parse(c.args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return errUsage{err.Error()}
	}
	if c.flags.NArg() > 0 {
		return errUsage{fmt.Sprintf("unexpected argument %q", c.flags.Arg(0))}
	}
	if c.format != "table" && c.format != "json" {
		return errUsage{"-o is table or json"}
	}
	var err error
	c.client, err = connect(c.environ, c.data)
	return err
}

// Run runs the command that the arguments name and returns the exit code: 0 done, 1 failed, 2 wrong
// use. Help ends with 0.
func Run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) int {
	name := strings.Join(args[:min(2, len(args))], " ")
	for _, cmd := range commands() {
		words := 1 + strings.Count(cmd.name, " ")
		if len(args) < words || strings.Join(args[:words], " ") != cmd.name {
			continue
		}
		name = cmd.name
		c := &call{
			flags: flag.NewFlagSet(name, flag.ContinueOnError), args: args[words:], out: stdout, notes: stderr,
			environ: environ,
		}
		c.flags.SetOutput(io.Discard)
		c.flags.StringVar(&c.data, "data", "", "folder of a standalone")
		c.flags.StringVar(&c.format, "o", "table", "table or json")
		err := cmd.run(ctx, c)
		var usage errUsage
		switch {
		case errors.Is(err, flag.ErrHelp):
			_, _ = fmt.Fprintf(stdout, "usage: %s\n", cmd.line())
			return exitDone
		case errors.As(err, &usage):
			_, _ = fmt.Fprintf(stderr, "mediagate %s: %s\nusage: %s\n", name, usage, cmd.line())
			return exitUsage
		case err != nil:
			_, _ = fmt.Fprintf(stderr, "mediagate %s: %s\n", name, Printable(err.Error()))
			return exitFailed
		}
		return exitDone
	}
	of := ""
	if len(args) > 0 && Has(args[0]) {
		of = args[0]
	}
	switch {
	case of == "":
		_, _ = fmt.Fprintf(stderr, "mediagate: %q is no command. There are:\n", name)
	case len(args) == 1:
		_, _ = fmt.Fprintf(stderr, "mediagate %s: a verb is missing. There are:\n", of)
	case slices.Contains([]string{"help", "-h", "-help", "--help"}, args[1]):
		list(stdout, of)
		return exitDone
	default:
		_, _ = fmt.Fprintf(stderr, "mediagate %s: %q is no verb. There are:\n", of, args[1])
	}
	list(stderr, of)
	return exitUsage
}

// line returns the usage line of the command.
func (c command) line() string {
	return strings.Join(strings.Fields("mediagate "+c.name+" "+c.usage+" [-data DIR] [-o json]"), " ")
}

// list prints the usage of the commands for an object, or of all commands.
func list(w io.Writer, of string) {
	for _, cmd := range commands() {
		if of == "" || strings.HasPrefix(cmd.name, of+" ") {
			_, _ = fmt.Fprintf(w, "  %s\n", cmd.line())
		}
	}
}

// show prints the answer: unchanged for scripts, as a table for people.
func (c *call) show(answer []byte, columns ...string) error {
	if c.format == "json" {
		_, err := fmt.Fprintln(c.out, PrintableJSON(strings.TrimSpace(string(answer))))
		return err
	}
	var list struct {
		Data    []map[string]any `json:"data"`
		HasMore bool             `json:"has_more"`
	}
	var one map[string]any
	if err := json.Unmarshal(answer, &one); err != nil {
		return fmt.Errorf("the answer is not readable: %w", err)
	}
	if _, ok := one["data"]; ok {
		if err := json.Unmarshal(answer, &list); err != nil {
			return fmt.Errorf("the answer is not readable: %w", err)
		}
	} else {
		list.Data = []map[string]any{one}
	}
	if err := c.table(list.Data, columns); err != nil || !list.HasMore || len(list.Data) == 0 {
		return err
	}
	last := list.Data[len(list.Data)-1]
	_, err := fmt.Fprintln(c.out, "… more: -after", Printable(fmt.Sprint(cmp.Or(last["id"], last["name"]))))
	return err
}

// table prints rows for people.
func (c *call) table(rows []map[string]any, columns []string) error {
	columns = slices.DeleteFunc(columns, func(column string) bool {
		return slices.Contains(rareColumns, column) &&
			!slices.ContainsFunc(rows, func(row map[string]any) bool { return cell(column, row) != "" })
	})
	w := tabwriter.NewWriter(c.out, 0, 4, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, strings.ToUpper(strings.Join(columns, "\t")))
	for _, row := range rows {
		cells := make([]string, len(columns))
		for i, column := range columns {
			cells[i] = Printable(cell(column, row))
		}
		_, _ = fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	return w.Flush()
}

// timeColumns and dayColumns hold Unix seconds. A cell of dayColumns shows only the day. rareColumns
// are left out if they are empty in every row.
var (
	timeColumns = []string{"since", "next_probe_at", "oldest", "at"}
	dayColumns  = []string{"expires_at", "last_used_at"}
	rareColumns = []string{"retired"}
)

// cell formats a value for people.
func cell(column string, row map[string]any) string {
	v := row[column]
	seconds, ok := v.(float64)
	switch {
	case v == nil && column == "quota" && row["unlimited"] == true:
		return "unlimited"
	case v == nil:
		return ""
	case ok && slices.Contains(timeColumns, column):
		return time.Unix(int64(seconds), 0).UTC().Format(time.RFC3339)
	case ok && slices.Contains(dayColumns, column):
		return time.Unix(int64(seconds), 0).UTC().Format(time.DateOnly)
	case column == "retired":
		return retiredCell(v)
	default:
		return fmt.Sprint(v)
	}
}

// retiredCell lists retired models with the times until which they get no jobs.
func retiredCell(v any) string {
	models, _ := v.([]any)
	texts := make([]string, len(models))
	for i, model := range models {
		row, _ := model.(map[string]any)
		texts[i] = fmt.Sprintf("%v until %s", row["upstream"], cell("at", map[string]any{"at": row["until"]}))
	}
	return strings.Join(texts, ", ")
}

// required returns an error if one of the flags is missing.
func required(values map[string]*string) error {
	var missing []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if *values[name] == "" {
			missing = append(missing, "-"+name+" is missing")
		}
	}
	if len(missing) > 0 {
		return errUsage{strings.Join(missing, ", ")}
	}
	return nil
}

// list reads a page of a list. Each of the filters is the name of a flag and of a parameter.
func (c *call) list(ctx context.Context, path string, filters ...string) ([]byte, error) {
	flags := map[string]*string{}
	for _, name := range filters {
		flags[name] = c.flags.String(name, "", "")
	}
	limit, after := c.flags.Int("limit", 100, ""), c.flags.String("after", "", "")
	if err := c.parse(); err != nil {
		return nil, err
	}
	query := page(*limit, *after)
	addGiven(query, flags)
	return c.client.do(ctx, http.MethodGet, path+"?"+query.Encode(), nil)
}

// page returns the query of a page.
func page(limit int, after string) url.Values {
	query := url.Values{}
	if limit > 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	addGiven(query, map[string]*string{"after": &after})
	return query
}

// addGiven adds the flags that are not empty to a query.
func addGiven(query url.Values, flags map[string]*string) {
	for name, value := range flags {
		if *value != "" {
			query.Set(name, *value)
		}
	}
}

// orShow shows an answer unless there was an error.
func orShow(c *call, answer []byte, err error, columns ...string) error {
	if err != nil {
		return err
	}
	return c.show(answer, columns...)
}
