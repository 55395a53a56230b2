package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

// options are the command line.
type options struct {
	only    []string
	quick   bool
	long    bool
	profile string
	worker  bool // this process is the worker of another bench
	api     bool // this process is the API of another bench
	flood   bool // this process is the crowd of another bench
	verbose io.Writer
}

// measurement is one chapter of the run. It owns its rows.
type measurement struct {
	name string
	run  func(ctx context.Context, m *machine, o options) ([]row, error)
}

func measurements() []measurement {
	return []measurement{
		{"submit", measureSubmits},
		{"limits", measureLimits},
		{"read", measureReads},
		{"history", measureHistory},
		{"check", measureCheck},
		{"full", measureFullTasks},
		{"mirror", measureMirror},
		{"visible", measureVisible},
		{"kill", measureKill},
		{"waiting", measureWaiting},
		{"memory", measureResident},
		{"bodies", measureBodies},
		{"newcomer", measureNewcomer},
		{"neighbour", measureNeighbour},
		{"tarpit", measureTarpit},
		{"crawl", measureCrawl},
	}
}

func parse(args []string, stderr io.Writer) (options, error) {
	known := make([]string, 0, len(measurements()))
	for _, m := range measurements() {
		known = append(known, m.name)
	}
	o := options{verbose: io.Discard}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.BoolVar(&o.quick, "quick", false, "shorter, with more noise: 1,000 waiting tasks instead of 10,000")
	flags.BoolVar(&o.long, "long", false, "an hour of memory: 100,000 tasks through the standalone instead of 20,000")
	flags.StringVar(&o.profile, "cpuprofile", "", "write a CPU profile of the measurements to `FILE`, and of the worker and API processes to FILE.worker and FILE.api")
	flags.BoolVar(&o.worker, "worker", false, "be the worker process of another bench, which writes the settings to the standard input")
	flags.BoolVar(&o.api, "api", false, "be the API process of another bench, likewise")
	flags.BoolVar(&o.flood, "flood", false, "be the clients with the worst bodies of another bench, likewise")
	verbose := flags.Bool("v", false, "write each round's figures to the standard error")
	only := flags.String("only", "", "measure these only, `NAMES` separated by commas: "+strings.Join(known, ", "))
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if *verbose {
		o.verbose = stderr
	}
	for name := range strings.SplitSeq(*only, ",") {
		switch {
		case name == "":
		case !slices.Contains(known, name):
			return o, fmt.Errorf("-only: %q is none of %s", name, strings.Join(known, ", "))
		default:
			o.only = append(o.only, name)
		}
	}
	return o, nil
}

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) (err error) {
	o, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	if o.worker {
		return serveWorker(ctx, stdin, stdout, o)
	}
	if o.api {
		return serveAPI(ctx, stdin, stdout, o)
	}
	if o.flood {
		return serveFlood(ctx, stdin, stdout)
	}
	began, shared := time.Now(), startShare()
	m, err := startMachine(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	stopProfile, err := profile(o.profile)
	if err != nil {
		return err
	}
	defer stopProfile()

	var rows []row
	for _, measure := range measurements() {
		if len(o.only) > 0 && !slices.Contains(o.only, measure.name) {
			continue
		}
		_, _ = fmt.Fprintf(stderr, "bench: %s …\n", measure.name)
		found, err := measure.run(ctx, m, o)
		if err != nil {
			return fmt.Errorf("%s: %w", measure.name, err)
		}
		rows = append(rows, found...)
	}
	return printTable(stdout, rows, shared.others(), fmt.Sprintf("%d cores, %s, %s/%s, %s", runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH,
		time.Since(began).Round(time.Second)))
}

// profile writes a CPU profile from now until the returned function is called.
func profile(file string) (stop func(), err error) {
	if file == "" {
		return func() {}, nil
	}
	f, err := os.Create(file)
	if err != nil {
		return nil, fmt.Errorf("-cpuprofile: %w", err)
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(fmt.Errorf("-cpuprofile: %w", err), f.Close())
	}
	return func() {
		pprof.StopCPUProfile()
		_ = f.Close()
	}, nil
}
