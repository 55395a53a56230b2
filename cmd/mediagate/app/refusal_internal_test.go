package app

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/mediagate/mediagate/workflows"
)

// answers stands for a Temporal whose answers a test chooses by the call's name.
type answers struct {
	workflowservice.UnimplementedWorkflowServiceServer
	operatorservice.UnimplementedOperatorServiceServer
	fault func(call string) error
	types map[string]enumspb.IndexedValueType // of attributes that are there, over ours
}

func (*answers) GetSystemInfo(context.Context, *workflowservice.GetSystemInfoRequest) (*workflowservice.GetSystemInfoResponse, error) {
	return &workflowservice.GetSystemInfoResponse{}, nil
}

func (*answers) DescribeNamespace(context.Context, *workflowservice.DescribeNamespaceRequest) (*workflowservice.DescribeNamespaceResponse, error) {
	return &workflowservice.DescribeNamespaceResponse{}, nil
}

func (*answers) UpdateNamespace(context.Context, *workflowservice.UpdateNamespaceRequest) (*workflowservice.UpdateNamespaceResponse, error) {
	return &workflowservice.UpdateNamespaceResponse{}, nil
}

func (*answers) CountWorkflowExecutions(context.Context, *workflowservice.CountWorkflowExecutionsRequest) (*workflowservice.CountWorkflowExecutionsResponse, error) {
	return &workflowservice.CountWorkflowExecutionsResponse{}, nil
}

func (a *answers) ListSearchAttributes(context.Context, *operatorservice.ListSearchAttributesRequest) (*operatorservice.ListSearchAttributesResponse, error) {
	there := map[string]enumspb.IndexedValueType{workflows.AttrStuck.GetName(): enumspb.INDEXED_VALUE_TYPE_BOOL}
	for _, name := range []string{"Model", "Type", "Provider", "Account", "Status", "Reason"} {
		there["Mediagate"+name] = enumspb.INDEXED_VALUE_TYPE_KEYWORD
	}
	for name, kind := range a.types {
		there[name] = kind
		if kind == enumspb.INDEXED_VALUE_TYPE_UNSPECIFIED {
			delete(there, name)
		}
	}
	return &operatorservice.ListSearchAttributesResponse{CustomAttributes: there}, nil
}

func (*answers) AddSearchAttributes(context.Context, *operatorservice.AddSearchAttributesRequest) (*operatorservice.AddSearchAttributesResponse, error) {
	return &operatorservice.AddSearchAttributesResponse{}, nil
}

// gatewayAt is a gateway whose Temporal gives the answers.
func gatewayAt(t *testing.T, a *answers) *Gateway {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	server := grpc.NewServer(grpc.UnaryInterceptor(func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		if a.fault != nil {
			if err := a.fault(info.FullMethod[strings.LastIndexByte(info.FullMethod, '/')+1:]); err != nil {
				return nil, err
			}
		}
		return handle(ctx, req)
	}))
	workflowservice.RegisterWorkflowServiceServer(server, a)
	operatorservice.RegisterOperatorServiceServer(server, a)
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	c := Defaults()
	c.Temporal = Temporal{Address: l.Addr().String(), Namespace: "media", TLS: TemporalTLS{Mode: tlsOff}}
	return &Gateway{Config: c, Temporal: dialTemporal(t, c.Temporal), log: slog.New(slog.DiscardHandler)}
}

// TestTemporalSaysNo checks that a worker ends at a final answer of Temporal, with the reason and
// the server's message.
func TestTemporalSaysNo(t *testing.T) {
	t.Parallel()
	const gone = enumspb.INDEXED_VALUE_TYPE_UNSPECIFIED
	for name, test := range map[string]struct {
		call  string
		code  codes.Code
		types map[string]enumspb.IndexedValueType
		want  []string
	}{
		"a wrong API key":            {"DescribeNamespace", codes.Unauthenticated, nil, []string{"namespace media", "the words of the server"}},
		"retention is not ours":      {"UpdateNamespace", codes.PermissionDenied, nil, []string{"retention of namespace media", "the words of the server"}},
		"attributes are not ours":    {"AddSearchAttributes", codes.PermissionDenied, map[string]enumspb.IndexedValueType{"MediagateReason": gone}, []string{"MediagateReason", "the words of the server"}},
		"no room":                    {"AddSearchAttributes", codes.InvalidArgument, map[string]enumspb.IndexedValueType{"MediagateStuck": gone}, []string{"MediagateStuck of type Bool", "the words of the server"}},
		"another type":               {"", codes.OK, map[string]enumspb.IndexedValueType{"MediagateStatus": enumspb.INDEXED_VALUE_TYPE_INT}, []string{"MediagateStatus is of type Int and must be of type Keyword"}},
		"a server of something else": {"ListSearchAttributes", codes.Unimplemented, nil, []string{"search attributes of namespace media", "the words of the server"}},
		"no permission to count":     {"CountWorkflowExecutions", codes.PermissionDenied, nil, []string{"namespace media", "the words of the server"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := gatewayAt(t, &answers{types: test.types, fault: func(call string) error {
				if call != test.call {
					return nil
				}
				return grpcstatus.Error(test.code, "the words of the server")
			}})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			err := g.awaitTemporal(ctx)
			if err == nil || ctx.Err() != nil {
				t.Fatalf("it goes on: %v", err)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("want %q in %v", want, err)
				}
			}
		})
	}
}

// TestTemporalKeyThatMayOnlyWork checks that a key without administration rights suffices if
// everything is set up: a missing right causes a warning. A missing part is an error that names
// it.
func TestTemporalKeyThatMayOnlyWork(t *testing.T) {
	t.Parallel()
	denied := grpcstatus.Error(codes.PermissionDenied, "the words of the server")
	for name, test := range map[string]struct {
		refused map[string]error // by call
		lacks   string
		warns   int
	}{
		"the namespace":               {map[string]error{"DescribeNamespace": denied}, "", 1},
		"its attributes":              {map[string]error{"ListSearchAttributes": denied}, "", 1},
		"both":                        {map[string]error{"DescribeNamespace": denied, "ListSearchAttributes": denied}, "", 2},
		"in words of its frontend":    {map[string]error{"ListSearchAttributes": grpcstatus.Error(codes.Unavailable, "Unable to get namespace media info: Request unauthorized.")}, "", 1},
		"attributes that are missing": {map[string]error{"ListSearchAttributes": denied}, "MediagateReason is not a valid search attribute", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := gatewayAt(t, &answers{fault: func(call string) error {
				if call == "CountWorkflowExecutions" && test.lacks != "" {
					return grpcstatus.Error(codes.InvalidArgument, test.lacks)
				}
				return test.refused[call]
			}})
			patience := time.Minute
			if test.lacks != "" {
				patience = time.Second // it asks until then: what was added a moment ago is not known yet
			}
			var said bytes.Buffer
			ensure := func() error {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				said.Reset()
				return workflows.EnsureNamespace(ctx, g.Temporal, "media", slog.New(slog.NewTextHandler(&said, nil)))
			}
			err := ensure()
			for range 5 { // where the time ends while Temporal is asked, the error tells of the time alone
				if err == nil || strings.Contains(err.Error(), test.lacks) {
					break
				}
				err = ensure()
			}
			if (err != nil) != (test.lacks != "") || err != nil && !strings.Contains(err.Error(), test.lacks) {
				t.Errorf("it ends with %v", err)
			}
			if got := strings.Count(said.String(), "does not show"); got != test.warns {
				t.Errorf("%d warnings, want %d:\n%s", got, test.warns, said.String())
			}
			if err := g.pingTemporal(t.Context()); (err != nil) != (test.lacks != "") {
				t.Errorf("the API finds %v", err)
			}
		})
	}
}

// TestTemporalIsAway checks that a worker waits while a problem may pass.
func TestTemporalIsAway(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		call string
		code codes.Code
	}{
		"away":                          {"DescribeNamespace", codes.Unavailable},
		"busy":                          {"DescribeNamespace", codes.ResourceExhausted},
		"a fault of its own":            {"ListSearchAttributes", codes.Internal},
		"a namespace not yet known":     {"ListSearchAttributes", codes.NotFound},
		"an attribute not yet known":    {"CountWorkflowExecutions", codes.InvalidArgument},
		"a namespace of another second": {"CountWorkflowExecutions", codes.NotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int32
			g := gatewayAt(t, &answers{fault: func(call string) error {
				if call == test.call && asked.Add(1) == 1 {
					return grpcstatus.Error(test.code, "not now")
				}
				return nil
			}})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := g.awaitTemporal(ctx); err != nil || asked.Load() < 2 {
				t.Errorf("%d questions, %v", asked.Load(), err)
			}
		})
	}
}

// TestWorkerIsReadyOncePolling checks that a worker is ready once it polls, as long as the
// namespace is complete.
func TestWorkerIsReadyOncePolling(t *testing.T) {
	t.Parallel()
	a := &answers{types: map[string]enumspb.IndexedValueType{}}
	g := gatewayAt(t, a)
	if err := g.checkPolling(t.Context()); !errors.Is(err, errNotPolling) {
		t.Errorf("before it polls: %v", err)
	}
	g.polling.Store(true)
	if err := g.checkPolling(t.Context()); err != nil {
		t.Error(err)
	}
	a.types["MediagateModel"] = enumspb.INDEXED_VALUE_TYPE_UNSPECIFIED
	if err := g.checkPolling(t.Context()); err == nil || !strings.Contains(err.Error(), "MediagateModel") {
		t.Errorf("without an attribute: %v", err)
	}
	a.types["MediagateModel"] = enumspb.INDEXED_VALUE_TYPE_TEXT
	if err := g.checkPolling(t.Context()); err == nil || !strings.Contains(err.Error(), "MediagateModel is of type Text") {
		t.Errorf("with one of another type: %v", err)
	}
}
