package temporalserver

import (
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	sqliteschema "go.temporal.io/server/schema/sqlite"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/mediagate/mediagate/workflows"
)

// DefaultNamespace is the namespace if the configuration names none.
const DefaultNamespace = "mediagate"

// newNamespace describes the namespace in the state that workflows.EnsureNamespace produces, so
// that a start with a new file need not wait for changes.
func newNamespace(name string) (*sqliteschema.NamespaceConfig, error) {
	attributes := map[string]enumspb.IndexedValueType{
		workflows.AttrStuck.GetName(): workflows.AttrStuck.GetValueType(),
	}
	for _, a := range []temporal.SearchAttributeKeyKeyword{
		workflows.AttrModel, workflows.AttrType, workflows.AttrProvider,
		workflows.AttrAccount, workflows.AttrStatus, workflows.AttrReason,
	} {
		attributes[a.GetName()] = a.GetValueType()
	}
	described, err := sqliteschema.NewNamespaceConfig(clusterName, name, false, attributes)
	if err != nil {
		return nil, err
	}
	described.Detail.Config.Retention = durationpb.New(workflows.Retention)
	return described, nil
}
