package temporalserver_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/mediagate/mediagate/standalone/temporalserver"
	"github.com/mediagate/mediagate/workflows"
)

const queue = "test"

func TestServerPreparesNamespace(t *testing.T) {
	t.Parallel()
	server := start(t, filepath.Join(t.TempDir(), "temporal.db"))
	t.Cleanup(func() { stop(t, server) })
	c := dial(t, server)
	t.Cleanup(c.Close)

	// EnsureNamespace corrects an existing namespace, too.
	const other = "other"
	_, err := c.WorkflowService().RegisterNamespace(t.Context(), &workflowservice.RegisterNamespaceRequest{
		Namespace: other, WorkflowExecutionRetentionPeriod: durationDay,
	})
	if err != nil {
		t.Fatalf("register: %v", err)
	}
	deadline, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for i := range 2 { // the second call has nothing to do
		if err := workflows.EnsureNamespace(deadline, c, other, slog.New(slog.DiscardHandler)); err != nil {
			t.Fatalf("EnsureNamespace, call %d: %v", i+1, err)
		}
	}

	for _, namespace := range []string{temporalserver.DefaultNamespace, other} {
		described, err := c.WorkflowService().DescribeNamespace(t.Context(),
			&workflowservice.DescribeNamespaceRequest{Namespace: namespace})
		if err != nil {
			t.Fatalf("describe %s: %v", namespace, err)
		}
		if got := described.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration(); got != 720*time.Hour {
			t.Errorf("retention of %s = %v, want 720h", namespace, got)
		}
		listed, err := c.OperatorService().ListSearchAttributes(t.Context(),
			&operatorservice.ListSearchAttributesRequest{Namespace: namespace})
		if err != nil {
			t.Fatalf("search attributes of %s: %v", namespace, err)
		}
		want := map[string]enumspb.IndexedValueType{
			"MediagateModel":    enumspb.INDEXED_VALUE_TYPE_KEYWORD,
			"MediagateType":     enumspb.INDEXED_VALUE_TYPE_KEYWORD,
			"MediagateProvider": enumspb.INDEXED_VALUE_TYPE_KEYWORD,
			"MediagateAccount":  enumspb.INDEXED_VALUE_TYPE_KEYWORD,
			"MediagateStatus":   enumspb.INDEXED_VALUE_TYPE_KEYWORD,
			"MediagateReason":   enumspb.INDEXED_VALUE_TYPE_KEYWORD,
			"MediagateStuck":    enumspb.INDEXED_VALUE_TYPE_BOOL,
		}
		if diff := cmp.Diff(want, listed.GetCustomAttributes()); diff != "" {
			t.Errorf("search attributes of %s (-want +got):\n%s", namespace, diff)
		}
	}
}

// TestServerRefusesAttributes checks that EnsureNamespace returns at once if the server refuses
// a search attribute, with the attribute and the server's message.
func TestServerRefusesAttributes(t *testing.T) {
	t.Parallel()
	server := start(t, filepath.Join(t.TempDir(), "temporal.db"))
	t.Cleanup(func() { stop(t, server) })
	c := dial(t, server)
	t.Cleanup(c.Close)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	const keyword = enumspb.INDEXED_VALUE_TYPE_KEYWORD
	full := map[string]enumspb.IndexedValueType{}
	for i := range 10 {
		full[fmt.Sprintf("Theirs%d", i)] = keyword
	}
	for namespace, test := range map[string]struct {
		attributes map[string]enumspb.IndexedValueType
		want       []string
	}{
		"typed": {map[string]enumspb.IndexedValueType{"MediagateStuck": keyword}, []string{"MediagateStuck is of type Keyword and must be of type Bool"}},
		"full":  {full, []string{"MediagateAccount of type Keyword", "cannot have more than 10 search attribute of type Keyword"}},
	} {
		_, err := c.WorkflowService().RegisterNamespace(ctx, &workflowservice.RegisterNamespaceRequest{
			Namespace: namespace, WorkflowExecutionRetentionPeriod: durationDay,
		})
		if err != nil {
			t.Fatal(err)
		}
		for {
			_, err := c.OperatorService().AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{
				Namespace: namespace, SearchAttributes: test.attributes,
			})
			if err == nil {
				break
			}
			if ctx.Err() != nil {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond) // the new namespace may not be visible yet
		}
		err = workflows.EnsureNamespace(ctx, c, namespace, slog.New(slog.DiscardHandler))
		if ctx.Err() != nil || !workflows.IsFinal(err) {
			t.Fatalf("%s: %v", namespace, err)
		}
		for _, want := range test.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: want %q in %v", namespace, want, err)
			}
		}
	}
	if err := workflows.CheckNamespace(ctx, c, temporalserver.DefaultNamespace); err != nil {
		t.Error(err)
	}
	_, err := c.OperatorService().RemoveSearchAttributes(ctx, &operatorservice.RemoveSearchAttributesRequest{
		Namespace: temporalserver.DefaultNamespace, SearchAttributes: []string{"MediagateModel"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := workflows.CheckNamespace(ctx, c, temporalserver.DefaultNamespace); err == nil || !strings.Contains(err.Error(), "MediagateModel") {
		t.Errorf("without an attribute: %v", err)
	}
	if err := workflows.CheckNamespace(ctx, c, "nowhere"); err == nil {
		t.Error("a namespace that is not there passes")
	}
}

func TestServerStartsOverAfterAnInterruptedFirstStart(t *testing.T) {
	t.Parallel()
	// The folder's name has every character with a meaning in SQLite's URIs.
	file := filepath.Join(t.TempDir(), "a b%20c?d#e&f", "temporal.db")
	if err := errors.Join(os.Mkdir(filepath.Dir(file), 0o700), os.WriteFile(file+".new", []byte("half a database"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second start takes the database of the first
		stop(t, start(t, file))
	}
	if _, err := os.Stat(file); err != nil {
		t.Errorf("the database is not where it was asked for: %v", err)
	}
	if _, err := os.Stat(file + ".new"); !os.IsNotExist(err) {
		t.Errorf("the unfinished file is still there (stat: %v)", err)
	}
}

func TestStartRefuses(t *testing.T) {
	t.Parallel()
	busy, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = busy.Close() })
	file := filepath.Join(t.TempDir(), "temporal.db")
	for name, cfg := range map[string]temporalserver.Config{
		"no database":       {Addr: "127.0.0.1:0"},
		"two databases":     {Addr: "127.0.0.1:0", File: file, PostgresURL: "postgres://127.0.0.1/postgres"},
		"no port":           {Addr: "127.0.0.1", File: file},
		"port out of range": {Addr: "127.0.0.1:65536", File: file},
		"port taken":        {Addr: busy.Addr().String(), File: file},
		"no folder":         {Addr: "127.0.0.1:0", File: filepath.Join(filepath.Dir(file), "absent", "temporal.db")},
		"not PostgreSQL":    {Addr: "127.0.0.1:0", PostgresURL: "mysql://127.0.0.1/x"},
		"socket folder":     {Addr: "127.0.0.1:0", PostgresURL: "postgres:///x?host=/run"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, err := temporalserver.Start(t.Context(), cfg)
			if err == nil {
				stop(t, server)
				t.Fatal("started")
			}
		})
	}
}

func start(t *testing.T, file string) *temporalserver.Server {
	t.Helper()
	server, err := temporalserver.Start(t.Context(), temporalserver.Config{
		Addr: "127.0.0.1:0", File: file, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	return server
}

func stop(t *testing.T, server *temporalserver.Server) {
	t.Helper()
	// t.Context has ended when cleanups run.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Second)
	defer cancel()
	if err := server.Stop(ctx); err != nil {
		t.Errorf("stop: %v", err)
	}
}

func dial(t *testing.T, server *temporalserver.Server) client.Client {
	t.Helper()
	c, err := client.Dial(client.Options{HostPort: server.Addr(), Namespace: temporalserver.DefaultNamespace, Logger: discard})
	if err != nil {
		t.Fatalf("dial: %v", err)
	}
	return c
}
