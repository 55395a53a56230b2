package runner

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/mediagate/mediagate/client"
	"github.com/mediagate/mediagate/cmd/mediagate/operator"
)

// Exit codes.
const (
	exitDone   = 0
	exitFailed = 1 // the task did not complete
	exitUsage  = 2 // the request was refused, or the command line is wrong
	exitLeft   = 3 // interrupted, or the gateway cannot be reached: the task may go on
)

// usage is the help text of the command.
const usage = `usage: mediagate run MODEL [-p PROMPT] [-image|-video|-audio FILE|URL|TASK[#N]]... [-set FIELD=VALUE]...
                     [-endpoint PATH] [-out DIR] [-o text|json] [-yes] [-key IDEMPOTENCY-KEY] [-data DIR]
       mediagate run -resume TASK [-out DIR] [-o text|json] [-data DIR]

A FILE is uploaded. TASK is the id of a task of yours, which may still run, and #N the number of its file, 1 without it.
A file whose name is a task's id is ./NAME.
MEDIAGATE_URL and MEDIAGATE_API_KEY name the gateway and a key, or -data the folder of a standalone.
`

// Streams are the streams of the process.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	Terminal bool // a person reads Err and can answer on In
}

// command is one run of the command.
type command struct {
	Streams
	gateway *client.Client

	model, prompt, endpoint, key, resume string
	media                                map[string][]string // files and addresses by the kind of upload
	set                                  [][2]string         // fields and values in the given order
	out, format, data                    string
	yes                                  bool
}

// errUsage is the error of a wrong command line.
type errUsage struct{ text string }

func (e errUsage) Error() string { return e.text }

func (c *command) flags() *flag.FlagSet {
	f := flag.NewFlagSet("run", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&c.prompt, "p", "", "the prompt")
	c.media = map[string][]string{}
	for name, kind := range map[string]string{"image": client.Images, "video": client.Videos, "audio": client.Audios} {
		f.Func(name, "a file, which is uploaded, its address, or a task that makes it", func(s string) error {
			address, err := client.ParseFile(s)
			c.media[kind] = append(c.media[kind], address)
			return err
		})
	}
	f.Func("set", "FIELD=VALUE: a field of the request", func(s string) error {
		name, value, ok := strings.Cut(s, "=")
		if !ok || name == "" {
			return errors.New("it is FIELD=VALUE")
		}
		c.set = append(c.set, [2]string{name, value})
		return nil
	})
	f.StringVar(&c.endpoint, "endpoint", "", "the path of the submit, where the model has no contract")
	f.StringVar(&c.out, "out", ".", "the folder of the files")
	f.StringVar(&c.format, "o", "text", "text or json")
	f.BoolVar(&c.yes, "yes", false, "do not ask about the price")
	f.StringVar(&c.key, "key", "", "the idempotency key")
	f.StringVar(&c.resume, "resume", "", "a task to wait for")
	f.StringVar(&c.data, "data", "", "the folder of a standalone")
	return f
}

func (c *command) parse(args []string) error {
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		c.model, args = args[0], args[1:]
	}
	f := c.flags()
	err := f.Parse(args)
	if err == nil && c.model == "" && f.NArg() > 0 { // flags came first
		c.model = f.Arg(0)
		err = f.Parse(f.Args()[1:])
	}
	if errors.Is(err, flag.ErrHelp) {
		return err
	}
	if err != nil {
		return errUsage{err.Error()}
	}
	asked := len(c.media) + len(c.set) + len(c.prompt) + len(c.endpoint) + len(c.key)
	switch {
	case f.NArg() > 0:
		return errUsage{fmt.Sprintf("unexpected argument %q: a prompt follows -p", f.Arg(0))}
	case c.format != "text" && c.format != "json":
		return errUsage{"-o is text or json"}
	case c.resume != "" && (c.model != "" || asked > 0):
		return errUsage{"-resume continues a task: it takes no request"}
	case c.resume == "" && c.model == "":
		return errUsage{"name a model"}
	case c.key != "" && slices.ContainsFunc(slices.Concat(slices.Collect(maps.Values(c.media))...), isFile):
		return errUsage{"-key takes no files, since each upload has another address: upload it once and name its address"}
	case strings.HasPrefix(c.endpoint, "/v1/audio/"):
		return errUsage{"a speech has no task: POST /v1/audio/speech answers with the sound itself"}
	}
	if info, err := os.Stat(c.out); err != nil || !info.IsDir() {
		return errUsage{fmt.Sprintf("-out must be a folder, and %s is none", c.out)}
	}
	return nil
}

// Run runs the command and returns the exit code: 0 done, 1 the task failed, 2 refused or wrong use,
// 3 interrupted or the gateway cannot be reached.
func Run(ctx context.Context, args, environ []string, streams Streams) int {
	c := &command{Streams: streams}
	err := c.parse(args)
	if err == nil {
		c.gateway, err = connect(environ, c.data)
	}
	if err == nil {
		err = c.run(ctx)
	}
	code := exitLeft
	if refused, ok := errors.AsType[*client.Error](err); ok && !refused.Temporary() {
		code = exitUsage
	}
	if _, ok := errors.AsType[*client.TaskError](err); ok {
		code = exitFailed
	}
	if _, ok := errors.AsType[errUsage](err); ok {
		code = exitUsage
	}
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, flag.ErrHelp):
		_, _ = io.WriteString(c.Out, usage)
		return exitDone
	}
	if ctx.Err() != nil {
		err = errors.New("interrupted")
	}
	c.say("mediagate run: %s\n", err)
	return code
}

// say prints a message for the person. It escapes unprintable characters in values.
func (c *command) say(format string, values ...any) {
	for i, v := range values {
		switch v := v.(type) {
		case string:
			values[i] = operator.Printable(v)
		case error:
			values[i] = operator.Printable(v.Error())
		}
	}
	_, _ = fmt.Fprintf(c.Err, format, values...)
}

// connect finds the address and the key in a standalone's folder or in the environment.
func connect(environ []string, data string) (*client.Client, error) {
	c := &client.Client{
		URL: operator.Variable(environ, "MEDIAGATE_URL"), Key: operator.Variable(environ, "MEDIAGATE_API_KEY"),
		Strict: true, // a mistyped -set would cost money
	}
	if data != "" {
		where, err := operator.FindStandalone(data)
		if err != nil {
			return nil, errUsage{err.Error()}
		}
		c.URL, c.Key = where.API, where.Key
	}
	if u, err := url.Parse(c.URL); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || c.Key == "" {
		return nil, errUsage{
			"set MEDIAGATE_URL (http or https) and MEDIAGATE_API_KEY, or name a standalone's folder with -data",
		}
	}
	return c, nil
}

// run makes the request, or resumes one made before, waits for its end and saves the files.
func (c *command) run(ctx context.Context) error {
	id := c.resume
	if id == "" {
		request, err := c.request(ctx)
		if err == nil {
			err = c.agree(ctx, request)
		}
		if err != nil {
			return err
		}
		request.IdempotencyKey = cmp.Or(c.key, rand.Text())
		if id, err = c.gateway.Submit(ctx, request); err != nil {
			if refused, ok := errors.AsType[*client.Error](err); !ok || refused.Temporary() {
				c.say(
					"whether the task was made is unknown: to find it, and make no second one, run the same command with %s\n",
					c.same(request.IdempotencyKey),
				)
			}
			return err
		}
	}
	t, err := c.wait(ctx, id)
	var paths []string
	if err == nil {
		paths, err = c.gateway.Save(ctx, t, c.out)
	}
	if refused, ok := errors.AsType[*client.Error](err); ok && refused.Status == http.StatusBadRequest {
		return err // there is no such task
	}
	if err != nil {
		again := "mediagate run -resume " + id + " -out " + quoted(c.out)
		if c.data != "" {
			again += " -data " + quoted(c.data)
		}
		c.say("the task is not lost; to continue: %s\n", again)
		return err
	}
	if err := c.print(t, paths); err != nil {
		return err
	}
	if t.Status != "completed" {
		return &client.TaskError{Task: t}
	}
	return nil
}

// quoted quotes a word for a shell if it needs quotes.
func quoted(word string) string {
	if !strings.ContainsFunc(word, func(r rune) bool {
		return !strings.ContainsRune("/._-+:@%", r) && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// same returns the flags that make the command ask for the same task: its key and the addresses of
// uploaded files.
func (c *command) same(key string) string {
	flags := []string{"-key", key}
	for _, kind := range slices.Sorted(maps.Keys(c.media)) {
		for _, address := range c.media[kind] {
			flags = append(flags, "-"+singular(kind), address)
		}
	}
	return strings.Join(flags, " ")
}

// request builds the request of the arguments and uploads its files.
func (c *command) request(ctx context.Context) (client.Request, error) {
	r := client.Request{Model: c.model, Endpoint: c.endpoint, Fields: map[string]any{}}
	var contract struct {
		Endpoint string
		Schema   struct{ Properties map[string]struct{ Type any } } `json:"input_schema"`
	}
	text, err := c.gateway.Schema(ctx, c.model)
	refused, ok := errors.AsType[*client.Error](err)
	switch {
	case err == nil:
		if err := json.Unmarshal(text, &contract); err != nil {
			return r, err
		}
		r.Endpoint = cmp.Or(r.Endpoint, contract.Endpoint)
	case !ok || refused.Status != http.StatusNotFound:
		return r, err
	case r.Endpoint == "": // music, or an unknown model
		return r, errUsage{refused.Message + "; if there is such a model, name its path: -endpoint /v1/music/generations"}
	}
	if c.prompt != "" {
		r.Fields["prompt"] = c.prompt
	}
	for kind, given := range c.media {
		list, fields, err := placesOf(kind, len(given), func(name string) bool {
			_, ok := contract.Schema.Properties[name]
			return ok
		})
		if err != nil {
			return r, errUsage{c.model + " " + err.Error()}
		}
		addresses := make([]string, len(given))
		for i, one := range given {
			if addresses[i], err = c.address(ctx, kind, one); err != nil {
				return r, err
			}
			given[i] = addresses[i] // a second upload would change the address and so the request
			if list == "" {
				r.Fields[fields[i]] = addresses[i]
			}
		}
		if list != "" {
			r.Fields[list] = addresses
		}
	}
	for _, field := range c.set {
		name, value := field[0], field[1]
		var parsed any
		if contract.Schema.Properties[name].Type == "string" || json.Unmarshal([]byte(value), &parsed) != nil {
			parsed = value
		}
		r.Fields[name] = parsed
	}
	return r, nil
}

// isFile reports whether an argument is a file and not an address or a task.
func isFile(given string) bool {
	isAddress := func(prefix string) bool { return strings.HasPrefix(given, prefix) }
	return !slices.ContainsFunc([]string{"http://", "https://", "data:", "/v1/tasks/"}, isAddress)
}

// singular returns a kind of upload as flags and fields name it.
func singular(kind string) string { return strings.TrimSuffix(kind, "s") }

// placesOf returns the list field for n files, or a field for each file.
func placesOf(kind string, n int, has func(name string) bool) (list string, fields []string, err error) {
	if list = singular(kind) + "_urls"; has(list) {
		return list, nil, nil
	}
	fields = []string{singular(kind) + "_url"}
	if kind == client.Images {
		fields = []string{"first_frame_image", "last_frame_image"}
	}
	if n > len(fields) || slices.ContainsFunc(fields[:n], func(name string) bool { return !has(name) }) {
		return "", nil, fmt.Errorf("does not say where %d %s go: name their field with -set", n, kind)
	}
	return "", fields[:n], nil
}

// address returns the address of an argument. It uploads a file.
func (c *command) address(ctx context.Context, kind, given string) (string, error) {
	if !isFile(given) {
		return given, nil
	}
	file, err := os.Open(given)
	if err != nil {
		return "", errUsage{fmt.Sprintf("-%s: %s", singular(kind), err)}
	}
	defer file.Close()
	return c.gateway.Upload(ctx, kind, filepath.Base(given), file)
}

// errDeclined ends the command after the person declined the price.
var errDeclined = errUsage{"nothing was made"}

// agree prints the price, and asks for consent if a person can answer.
func (c *command) agree(ctx context.Context, r client.Request) error {
	q, err := c.gateway.Quote(ctx, r)
	if err != nil {
		return err
	}
	c.say("%s costs at most %s %s\n", c.model, q.Cost, q.Currency)
	if c.yes || !c.Terminal {
		return nil
	}
	c.say("Go on? [y/N] ")
	said := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(c.In).ReadString('\n')
		said <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case <-ctx.Done():
		return errDeclined
	case answer := <-said:
		if !slices.Contains([]string{"y", "yes"}, answer) {
			return errDeclined
		}
		return nil
	}
}

// wait waits for the end of a task and prints its progress.
func (c *command) wait(ctx context.Context, id string) (client.Task, error) {
	began, before := time.Now(), ""
	c.say("task %s\n", id)
	t, err := c.gateway.Wait(ctx, id, func(t client.Task) {
		const width = 30
		switch done := min(max(t.Progress, 0), 100) * width / 100; {
		case c.Terminal:
			c.say(
				"\r%s [%s%s] %d %% after %s ", t.Status, strings.Repeat("#", done), strings.Repeat(".", width-done), t.Progress,
				time.Since(began).Round(time.Second),
			)
		case t.Status != before:
			c.say("%s\n", t.Status)
			before = t.Status
		}
	})
	if c.Terminal {
		c.say("\n")
	}
	if err == nil {
		c.say("%s after %s, %s charged\n", t.Status, time.Since(began).Round(time.Second), t.Cost)
	}
	return t, err
}

// print prints the paths of the task's files, or the task as JSON.
func (c *command) print(t client.Task, paths []string) error {
	if c.format == "json" {
		text, err := json.Marshal(struct {
			Task  json.RawMessage `json:"task"`
			Files []string        `json:"files"`
		}{t.Raw, append([]string{}, paths...)})
		if err == nil {
			_, err = fmt.Fprintln(c.Out, operator.PrintableJSON(string(text)))
		}
		return err
	}
	for _, path := range paths {
		if _, err := fmt.Fprintln(c.Out, path); err != nil {
			return err
		}
	}
	return nil
}
