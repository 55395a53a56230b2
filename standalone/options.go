package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mediagate/mediagate/cmd/mediagate/operator"
	"github.com/mediagate/mediagate/standalone/hostguard"
)

// The servers that -infra can name.
const (
	infraTemporal = "temporal"
	infraUI       = "ui"
	infraS3       = "s3"
	infraSandbox  = "sandbox"
)

func infraNames() []string { return []string{infraTemporal, infraUI, infraS3, infraSandbox} }

// errHelp means that the user asked for the usage and that it was printed.
var errHelp = errors.New("help")

// options holds the command line.
type options struct {
	data      string
	config    string
	startedIn string // the folder to which paths are relative

	api, temporal, ui, s3, sandbox, ops string

	// allowedHosts are hosts under which the UI and the sandbox are reachable, besides the loopback and
	// their own addresses.
	allowedHosts hostguard.Names

	temporalDatabaseURL string

	// settings are the given flags that are also settings of the product, in the form of the
	// product's flags.
	settings []string

	// infra lists the servers to start. It is nil if -infra was not given: then the whole
	// program starts.
	infra []string

	// restoredTo is the time of the backup from which the folder or its database was restored.
	// It is zero if it was not.
	restoredTo time.Time

	listFailpoints bool
	version        bool
}

// infraOnly reports whether only embedded servers are started, without the product.
func (o options) infraOnly() bool { return o.infra != nil }

// starts reports whether the options ask for the named server.
func (o options) starts(name string) bool {
	return !o.infraOnly() || slices.Contains(o.infra, name)
}

// parseOptions parses the command line. Its error lists all problems.
func parseOptions(args []string, usage io.Writer) (options, error) {
	var o options
	var infra, hosts, restoredTo string
	flags := flag.NewFlagSet("mediagate-standalone", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&o.data, "data", ".mediagate", "the data `folder`; it is made when absent")
	flags.StringVar(&o.config, "config", "", "settings of the product, a YAML `file`")
	flags.StringVar(&o.api, "api", "127.0.0.1:8080", "`address` of the API; port 0 takes a free one, here and below")
	flags.StringVar(&o.temporal, "temporal", "127.0.0.1:7233",
		"`address` of Temporal; with -infra ui alone, where it is already")
	flags.StringVar(&o.ui, "ui", "127.0.0.1:8233", "`address` of Temporal's web interface")
	flags.StringVar(&o.s3, "s3", "127.0.0.1:9000", "`address` of the S3 server")
	flags.StringVar(&o.sandbox, "sandbox", "127.0.0.1:9900", "`address` of the sandbox")
	flags.StringVar(&o.ops, "ops", "127.0.0.1:9090", "`address` of health and metrics")
	flags.String("database-url", "", "PostgreSQL `URL` for the product's tables instead of SQLite")
	flags.StringVar(&o.temporalDatabaseURL, "temporal-database-url", "",
		"PostgreSQL `URL` for Temporal's databases instead of SQLite")
	flags.StringVar(&infra, "infra", "", "start only these servers, a `list` of "+strings.Join(infraNames(), ","))
	flags.StringVar(&hosts, "allowed-hosts", "",
		"more `names` under which the UI and the sandbox may be reached, with commas")
	flags.StringVar(&restoredTo, "restored-to", "",
		"the `time` of the backup that the database was restored from: nothing of it is sent again by itself")
	flags.BoolVar(&o.listFailpoints, "list-failpoints", false, "print the names that MEDIAGATE_FAILPOINT takes")
	flags.BoolVar(&o.version, "version", false, "print the version")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			_, _ = fmt.Fprintln(usage, "Usage: mediagate-standalone [options]")
			flags.SetOutput(usage)
			flags.PrintDefaults()
			return o, errHelp
		}
		return o, err
	}
	var problems []error
	if flags.NArg() > 0 {
		problems = append(problems, fmt.Errorf("unexpected argument %q", flags.Arg(0)))
	}
	flags.Visit(func(f *flag.Flag) {
		switch f.Name {
		case "infra":
			o.infra = []string{}
		case "api", "ops":
			o.settings = append(o.settings, "-"+f.Name+"-listen="+f.Value.String())
		case "database-url":
			o.settings = append(o.settings, "-database-url="+f.Value.String())
		}
	})
	if restoredTo != "" {
		var err error
		if o.restoredTo, err = operator.PastTime("-restored-to", restoredTo); err != nil {
			problems = append(problems, err)
		}
	}
	if o.infraOnly() {
		problems = append(problems, o.setInfra(infra))
	}
	var hostsErr error
	if o.allowedHosts, hostsErr = hostguard.ParseNames(hosts); hostsErr != nil {
		problems = append(problems, fmt.Errorf("-allowed-hosts: %w", hostsErr))
	}
	for _, addr := range []struct{ name, value string }{
		{"api", o.api}, {"temporal", o.temporal}, {"ui", o.ui}, {"s3", o.s3}, {"sandbox", o.sandbox}, {"ops", o.ops},
	} {
		if _, _, err := net.SplitHostPort(addr.value); err != nil {
			problems = append(problems, fmt.Errorf("-%s: %q is not host:port", addr.name, addr.value))
		}
	}
	// The S3 server changes the working directory, so relative paths are resolved here.
	var err error
	if o.startedIn, err = os.Getwd(); err != nil {
		problems = append(problems, err)
	}
	if o.config != "" && !filepath.IsAbs(o.config) {
		o.config = filepath.Join(o.startedIn, o.config)
	}
	return o, errors.Join(problems...)
}

// setInfra parses the list of servers.
func (o *options) setInfra(list string) error {
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		if !slices.Contains(infraNames(), name) {
			return fmt.Errorf("-infra: %q is none of %s", name, strings.Join(infraNames(), ", "))
		}
		if !slices.Contains(o.infra, name) {
			o.infra = append(o.infra, name)
		}
	}
	if o.starts(infraUI) && !o.starts(infraTemporal) && strings.HasSuffix(o.temporal, ":0") {
		return errors.New("-infra ui without temporal: -temporal must say where Temporal is")
	}
	return nil
}
