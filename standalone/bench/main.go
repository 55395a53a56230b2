package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
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

// measure takes some rows. What it opens on the machine is closed after it.
type measure func(ctx context.Context, m *machine) ([]row, error)

// chapter answers one question of a user.
type chapter struct {
	name     string
	question string
	measure  measure
}

func chapters() []chapter {
	return []chapter{
		{"submit", "How soon is a submit acknowledged?", measureSubmits},
		{"read", "How fast is a task read?", measureReads},
		{"history", "Does it get slower with what an account has had before?", measureHistory},
		{"full", "What does a whole task cost the machine?", measureFullTasks},
		{"mirror", "How fast is a file copied into the bucket?", measureMirror},
		{"visible", "How soon after the vendor's end is a task completed?", measureVisible},
		{"waiting", "What do thousands of waiting tasks cost, and are they polled in time?", measureWaiting},
		{"memory", "How much memory does the standalone program take?", measureMemory},
		{"console", "How much does a first visit of the console load?", measureConsole},
		{"fairness", "What does one account notice of another one's crowd?", measureFairness},
	}
}

// options are the command line.
type options struct {
	only  []string
	quick bool
	part  string // this process is that part of another bench
}

func parse(args []string, stderr io.Writer) (options, error) {
	var known []string
	for _, c := range chapters() {
		known = append(known, c.name)
	}
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.BoolVar(&o.quick, "quick", false, "shorter, with more noise: 1,000 waiting tasks instead of 10,000")
	flags.StringVar(&o.part, "part", "", "be the process `NAME` of another bench, which writes the settings to the standard input: worker, api, crowd")
	only := flags.String("only", "", "measure these chapters only, `NAMES` separated by commas: "+strings.Join(known, ", "))
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
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
	if o.part != "" {
		return servePart(ctx, o.part, bufio.NewReader(stdin), stdout)
	}
	began, shared := time.Now(), startShare()
	m, err := startMachine(ctx, o.quick)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.close(0)) }()
	for _, c := range chapters() {
		if len(o.only) > 0 && !slices.Contains(o.only, c.name) {
			continue
		}
		if _, err := fmt.Fprintf(stdout, "%s: %s\n", c.name, c.question); err != nil {
			return err
		}
		rows, err := m.measure(ctx, c.measure)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		if err := printTable(stdout, rows); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(stdout, "%d cores, %s, %s/%s, %s; others had %.0f %% of the machine.\nRatios say how much of the floor's rate is left, × how many times its time it takes.\n",
		runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH, time.Since(began).Round(time.Second), 100*shared.others())
	return err
}
