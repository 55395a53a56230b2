package temporalserver

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/membership/static"
	"go.temporal.io/server/common/primitives"

	"github.com/mediagate/mediagate/standalone/freeport"
)

const (
	loopback    = "127.0.0.1"
	clusterName = "active"
	// clusterID is kept in the database and must be the same at every start.
	clusterID = "6f1d1c1e-8a0a-4d5e-9a53-0c6f5a1b7f10"
)

// portPlan is where the roles of the service listen. Only the frontend is
// meant for others; the rest stays on the loopback.
type portPlan struct {
	host     string // of the frontend, as the operator wrote it
	bindIP   string
	frontend int
	http     int
	history  int
	matching int
	worker   int
}

// planPorts takes a free port for every role but the frontend's own.
func planPorts(host string, frontend int) (portPlan, error) {
	p := portPlan{host: reachable(host), frontend: frontend}
	switch ip := net.ParseIP(host); {
	case host == "":
		p.bindIP = "0.0.0.0"
	case ip != nil:
		p.bindIP = ip.String()
	default:
		addrs, err := net.DefaultResolver.LookupIPAddr(context.Background(), host)
		if err != nil || len(addrs) == 0 {
			return portPlan{}, fmt.Errorf("address %q names no address of this machine", host)
		}
		p.bindIP = addrs[0].String()
	}
	for _, port := range []*int{&p.http, &p.history, &p.matching, &p.worker} {
		free, err := freeport.Find(loopback)
		if err != nil {
			return portPlan{}, err
		}
		*port = free
	}
	return p, nil
}

// hosts tells each role where the others are, so that no gossip ring is needed.
func (p portPlan) hosts() map[primitives.ServiceName]static.Hosts {
	at := func(host string, port int) static.Hosts {
		return static.SingleLocalHost(net.JoinHostPort(host, strconv.Itoa(port)))
	}
	return map[primitives.ServiceName]static.Hosts{
		primitives.FrontendService: at(p.host, p.frontend),
		primitives.HistoryService:  at(loopback, p.history),
		primitives.MatchingService: at(loopback, p.matching),
		primitives.WorkerService:   at(loopback, p.worker),
	}
}

// serviceConfig is the static configuration of all roles.
func serviceConfig(p portPlan, stores config.Persistence) *config.Config {
	frontendAddr := net.JoinHostPort(p.host, strconv.Itoa(p.frontend))
	local := func(port int) config.Service {
		return config.Service{RPC: config.RPC{GRPCPort: port, BindOnLocalHost: true}}
	}
	return &config.Config{
		Global: config.Global{
			Membership: config.Membership{MaxJoinDuration: 30 * time.Second, BroadcastAddress: loopback},
		},
		Persistence: stores,
		ClusterMetadata: &cluster.Config{
			FailoverVersionIncrement: 10,
			MasterClusterName:        clusterName,
			CurrentClusterName:       clusterName,
			ClusterInformation: map[string]cluster.ClusterInformation{
				clusterName: {
					Enabled:                true,
					InitialFailoverVersion: 1,
					RPCAddress:             frontendAddr,
					ClusterID:              clusterID,
				},
			},
		},
		DCRedirectionPolicy: config.DCRedirectionPolicy{Policy: "noop"},
		Services: map[string]config.Service{
			string(primitives.FrontendService): {RPC: config.RPC{
				GRPCPort: p.frontend,
				HTTPPort: p.http,
				BindOnIP: p.bindIP,
			}},
			string(primitives.HistoryService):  local(p.history),
			string(primitives.MatchingService): local(p.matching),
			string(primitives.WorkerService):   local(p.worker),
		},
		Archival: config.Archival{
			History:    config.HistoryArchival{State: config.ArchivalDisabled},
			Visibility: config.VisibilityArchival{State: config.ArchivalDisabled},
		},
		NamespaceDefaults: config.NamespaceDefaults{
			Archival: config.ArchivalNamespaceDefaults{
				History:    config.HistoryArchivalNamespaceDefaults{State: config.ArchivalDisabled},
				Visibility: config.VisibilityArchivalNamespaceDefaults{State: config.ArchivalDisabled},
			},
		},
		PublicClient: config.PublicClient{HostPort: frontendAddr},
	}
}

// dynamicSettings are where the service's defaults, made for many tenants on
// many machines, are wrong for one tenant on one.
func dynamicSettings() dynamicconfig.StaticClient {
	return dynamicconfig.StaticClient{
		// The default polls a shard's queue 20 times a second: up to 50 ms for
		// every step of a workflow when there are few shards.
		dynamicconfig.TransferProcessorMaxPollRPS.Key(): 1000,
		// One process serves all partitions: more than one only adds forwarding.
		dynamicconfig.MatchingNumTaskqueueReadPartitions.Key():  1,
		dynamicconfig.MatchingNumTaskqueueWritePartitions.Key(): 1,
		// Fairness keys keep one account's backlog from starving the others.
		dynamicconfig.MatchingEnableFairness.Key(): true,
		// The default of 10 visibility calls a second is less than a UI in use.
		dynamicconfig.FrontendMaxNamespaceVisibilityRPSPerInstance.Key(): 500,
		dynamicconfig.FrontendMaxNamespaceRPSPerInstance.Key():           20000,
		dynamicconfig.FrontendRPS.Key():                                  20000,
		dynamicconfig.FrontendPersistenceMaxQPS.Key():                    20000,
		dynamicconfig.HistoryPersistenceMaxQPS.Key():                     50000,
		dynamicconfig.MatchingPersistenceMaxQPS.Key():                    20000,
		// A search attribute made a moment ago is usable at once.
		dynamicconfig.ForceSearchAttributesCacheRefreshOnRead.Key(): true,
		// Nothing is reported to anyone.
		dynamicconfig.EnableServerVersionCheck.Key(): false,
	}
}
