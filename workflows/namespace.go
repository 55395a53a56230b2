package workflows

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	namespacepb "go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Retention is how long the history of an ended workflow is kept (D16).
const Retention = 30 * 24 * time.Hour

// searchAttributes are those by which operators find tasks.
func searchAttributes() map[string]enumspb.IndexedValueType {
	attributes := map[string]enumspb.IndexedValueType{AttrStuck.GetName(): AttrStuck.GetValueType()}
	for _, a := range []temporal.SearchAttributeKeyKeyword{AttrModel, AttrType, AttrProvider, AttrAccount, AttrStatus, AttrReason} {
		attributes[a.GetName()] = a.GetValueType()
	}
	return attributes
}

// EnsureNamespace makes the namespace with its retention and attributes, or
// adds what an existing one lacks, and returns when workflows can be started
// in it.
func EnsureNamespace(ctx context.Context, c client.Client, namespace string) error {
	service := c.WorkflowService()
	described, err := service.DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: namespace})
	var missing *serviceerror.NamespaceNotFound
	switch {
	case errors.As(err, &missing):
		_, err = service.RegisterNamespace(ctx, &workflowservice.RegisterNamespaceRequest{
			Namespace:                        namespace,
			Description:                      "Media generation tasks",
			WorkflowExecutionRetentionPeriod: durationpb.New(Retention),
		})
		var exists *serviceerror.NamespaceAlreadyExists
		if err != nil && !errors.As(err, &exists) {
			return fmt.Errorf("register namespace %s: %w", namespace, err)
		}
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
	if err := ensureSearchAttributes(ctx, c, namespace); err != nil {
		return err
	}
	return waitUsable(ctx, c, namespace)
}

// ensureSearchAttributes adds those that the namespace lacks. The frontend may
// not have heard of a namespace registered a moment ago, so it is asked again.
func ensureSearchAttributes(ctx context.Context, c client.Client, namespace string) error {
	return retry(ctx, "search attributes of namespace "+namespace, func() error {
		operator := c.OperatorService()
		listed, err := operator.ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: namespace})
		if err != nil {
			return err
		}
		wanted := searchAttributes()
		maps.DeleteFunc(wanted, func(name string, kind enumspb.IndexedValueType) bool {
			return listed.GetCustomAttributes()[name] == kind
		})
		if len(wanted) == 0 {
			return nil
		}
		_, err = operator.AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{
			Namespace:        namespace,
			SearchAttributes: wanted,
		})
		if err != nil {
			return err
		}
		return errors.New("added, not yet listed")
	})
}

// waitUsable asks by one of the attributes until the namespace knows it.
func waitUsable(ctx context.Context, c client.Client, namespace string) error {
	return retry(ctx, "namespace "+namespace, func() error {
		_, err := c.WorkflowService().CountWorkflowExecutions(ctx, &workflowservice.CountWorkflowExecutionsRequest{
			Namespace: namespace,
			Query:     `MediagateStatus = "pending" AND MediagateStuck = true`,
		})
		return err
	})
}

// retry calls f until it returns nil or ctx ends.
func retry(ctx context.Context, what string, f func() error) error {
	for {
		err := f()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, errors.Join(ctx.Err(), err))
		case <-time.After(100 * time.Millisecond):
		}
	}
}
