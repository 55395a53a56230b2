package temporalserver

import (
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	sqliteschema "go.temporal.io/server/schema/sqlite"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/mediagate/mediagate/workflows"
)

// DefaultNamespace is the namespace when none is named.
const DefaultNamespace = "mediagate"

// newNamespace describes the namespace as workflows.EnsureNamespace would
// leave it, so that in a new file there is nothing to wait for.
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
