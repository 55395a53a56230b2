package workflows

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	namespacepb "go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/mediagate/mediagate"
)

// Retention is how long Temporal keeps the history of a workflow that has ended (D16).
const Retention = 30 * 24 * time.Hour

// searchAttributes are the attributes by which operators find tasks. They are in the order of their
// names, so that errors are the same each time.
var searchAttributes = []temporal.SearchAttributeKey{
	AttrAccount, AttrModel, AttrProvider, AttrReason, AttrStatus, AttrStuck, AttrType,
}

// EnsureNamespace creates the namespace with its retention and attributes, or adds what an
// existing one lacks. It returns when workflows can be started there. If it fails, IsFinal reports
// whether Temporal has refused or may only be away. Some API keys may work in a namespace but not
// read its description. That causes only a warning if a query shows that everything is there.
func EnsureNamespace(ctx context.Context, c client.Client, namespace string, log *slog.Logger) error {
	service := c.WorkflowService()
	described, err := service.DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: namespace})
	_, missing := errors.AsType[*serviceerror.NamespaceNotFound](err)
	switch {
	case missing:
		_, err = service.RegisterNamespace(ctx, &workflowservice.RegisterNamespaceRequest{
			Namespace:                        namespace,
			Description:                      "Media generation tasks",
			WorkflowExecutionRetentionPeriod: durationpb.New(Retention),
		})
		// Another process may have registered it a moment ago.
		if _, exists := errors.AsType[*serviceerror.NamespaceAlreadyExists](err); err != nil && !exists {
			return fmt.Errorf("register namespace %s: %w", namespace, err)
		}
	case isReadDenied(err):
		log.WarnContext(ctx, "Temporal does not show the namespace to us: its retention is not known",
			"namespace", namespace, "error", err)
	case err != nil:
		return fmt.Errorf("describe namespace %s: %w", namespace, err)
	case described.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration() != Retention:
		_, err = service.UpdateNamespace(ctx, &workflowservice.UpdateNamespaceRequest{
			Namespace: namespace,
			Config:    &namespacepb.NamespaceConfig{WorkflowExecutionRetentionTtl: durationpb.New(Retention)},
		})
		if err != nil {
			return fmt.Errorf("set the retention of namespace %s: %w", namespace, err)
		}
	}
	// The same for the search attributes: if they cannot be read, the query below shows whether
	// they are there.
	switch err := ensureSearchAttributes(ctx, c, namespace); {
	case isReadDenied(err) && !errors.Is(err, errNotAdded):
		log.WarnContext(ctx,
			"Temporal does not show the search attributes to us: a query checks whether they are there",
			"namespace", namespace, "error", err)
	case err != nil:
		return err
	}
	return waitUntilUsable(ctx, c, namespace)
}

// errNotAdded marks an attribute that is known to be missing and cannot be added.
var errNotAdded = errors.New("is missing")

// ensureSearchAttributes adds the attributes that the namespace lacks, one by one, so that an error
// names the attribute. It retries, since Temporal's frontend may not know a namespace yet that was
// registered a moment ago. It returns once Temporal lists all of them.
func ensureSearchAttributes(ctx context.Context, c client.Client, namespace string) error {
	return retry(ctx, "search attributes of namespace "+namespace, func() error {
		missing, err := missingAttributes(ctx, c, namespace)
		if err != nil || len(missing) == 0 {
			return err
		}
		for _, a := range missing {
			name, kind := a.GetName(), a.GetValueType()
			_, err = c.OperatorService().AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{
				Namespace:        namespace,
				SearchAttributes: map[string]enumspb.IndexedValueType{name: kind},
			})
			if err != nil {
				return fmt.Errorf("%s of type %s %w: %w", name, kind, errNotAdded, err)
			}
		}
		// Not final, so retry calls again until the attributes are listed.
		return errors.New("added, not yet listed")
	})
}

// missingAttributes returns the attributes that the namespace lacks. It returns KindConflict if one
// exists with another type.
func missingAttributes(
	ctx context.Context, c client.Client, namespace string,
) (missing []temporal.SearchAttributeKey, err error) {
	request := &operatorservice.ListSearchAttributesRequest{Namespace: namespace}
	listed, err := c.OperatorService().ListSearchAttributes(ctx, request)
	if err != nil {
		return nil, err
	}
	for _, a := range searchAttributes {
		kind, there := listed.GetCustomAttributes()[a.GetName()]
		switch {
		case !there:
			missing = append(missing, a)
		case kind != a.GetValueType():
			return nil, mediagate.Errorf(mediagate.KindConflict,
				"%s is of type %s and must be of type %s: remove it, or take another namespace",
				a.GetName(), kind, a.GetValueType())
		}
	}
	return missing, nil
}

// CheckNamespace returns an error unless we can use the namespace and it has all search attributes.
// If it lacks one of them, no workflow of a task can be started. Unlike EnsureNamespace it changes
// nothing.
func CheckNamespace(ctx context.Context, c client.Client, namespace string) error {
	missing, err := missingAttributes(ctx, c, namespace)
	switch {
	case isReadDenied(err):
		if err := queryAttributes(ctx, c, namespace); err != nil {
			return fmt.Errorf("namespace %s: %w", namespace, err)
		}
		return nil
	case err != nil:
		return fmt.Errorf("search attributes of namespace %s: %w", namespace, err)
	case len(missing) > 0:
		var names []string
		for _, a := range missing {
			names = append(names, a.GetName())
		}
		return fmt.Errorf("namespace %s lacks the search attributes %s", namespace, strings.Join(names, ", "))
	default:
		return nil
	}
}

// unauthorized marks an error that has no code of its own: Temporal's frontend passed the request
// on, and was itself refused.
const unauthorized = "Request unauthorized"

// finalTexts mark final errors that have the code of a passing one. For example, gRPC reports an
// invalid certificate with the same code as a server that is away.
var finalTexts = []string{"tls: ", "x509: ", unauthorized}

// isReadDenied reports whether our API key may not read the settings of the namespace. It may be
// allowed to run workflows there all the same. Callers then find out by a query with all
// attributes.
func isReadDenied(err error) bool {
	return err != nil &&
		(serviceerror.ToStatus(err).Code() == codes.PermissionDenied || strings.Contains(err.Error(), unauthorized))
}

// finalCodes are the codes of answers that do not change by themselves.
var finalCodes = []codes.Code{
	codes.InvalidArgument, codes.PermissionDenied, codes.Unauthenticated, codes.FailedPrecondition, codes.Unimplemented,
}

// IsFinal reports whether Temporal has refused, and would refuse again however often it is asked.
// Any other error may pass: a server may be away, may be starting, or may be busy.
//
// For example, a worker that starts before its Temporal has to wait, and a worker with a wrong
// certificate has to report that at once.
func IsFinal(err error) bool {
	if err == nil {
		return false
	}
	return mediagate.Is(err, mediagate.KindConflict) ||
		slices.Contains(finalCodes, serviceerror.ToStatus(err).Code()) ||
		slices.ContainsFunc(finalTexts, func(words string) bool { return strings.Contains(err.Error(), words) })
}

// waitUntilUsable queries by the attributes until the namespace knows them. Attributes that were
// added a moment ago make the query invalid.
func waitUntilUsable(ctx context.Context, c client.Client, namespace string) error {
	return retry(ctx, "namespace "+namespace, func() error {
		err := queryAttributes(ctx, c, namespace)
		if _, ok := errors.AsType[*serviceerror.InvalidArgument](err); ok {
			return errors.New(err.Error()) // without its code, so that it is not final
		}
		return err
	})
}

// queryAttributes makes one query that contains all attributes, each with a value of its type.
// Temporal refuses the query as invalid if it does not know one of them. The count itself does not
// matter.
func queryAttributes(ctx context.Context, c client.Client, namespace string) error {
	var terms []string
	for _, a := range searchAttributes {
		value := `"none"`
		if a.GetValueType() == enumspb.INDEXED_VALUE_TYPE_BOOL {
			value = "true"
		}
		terms = append(terms, a.GetName()+" = "+value)
	}
	_, err := c.WorkflowService().CountWorkflowExecutions(ctx, &workflowservice.CountWorkflowExecutionsRequest{
		Namespace: namespace, Query: strings.Join(terms, " AND "),
	})
	return err
}

// retry calls f until it returns nil or a final error, or until ctx ends. If ctx ends, the error
// wraps the last error that f returned before that: a call that ctx cuts short says nothing about
// the cause. The pause between two calls is a tenth of a second.
func retry(ctx context.Context, what string, f func() error) error {
	var reason error
	for {
		err := f()
		if err == nil {
			return nil
		}
		if reason == nil || ctx.Err() == nil {
			reason = err
		}
		if IsFinal(err) {
			return fmt.Errorf("%s: %w", what, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w, and before it %w", what, ctx.Err(), reason)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
