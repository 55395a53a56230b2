package temporalserver

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/membership/static"
	"go.temporal.io/server/common/primitives"

	"github.com/mediagate/mediagate/internal/freeport"
)

const (
	loopback    = "127.0.0.1"
	clusterName = "active"
	// clusterID is stored in the database and must be the same at every start.
	clusterID = "6f1d1c1e-8a0a-4d5e-9a53-0c6f5a1b7f10"
)

// portPlan holds the ports of the service's roles. Only the frontend is for clients; the other
// roles stay on the loopback. The roles need each other's ports before any of them listens, so
// all ports are chosen in advance. The roles speak only gRPC: the frontend's HTTP API would obey
// any web page in a browser on this machine.
type portPlan struct {
	host     string // of the frontend, as the operator wrote it
	bindIP   string
	frontend freeport.Port
	history  freeport.Port
	matching freeport.Port
	worker   freeport.Port
}

// planPorts returns a plan with the port of addr for the frontend and free ports for the other
// roles.
func planPorts(ctx context.Context, addr string) (p portPlan, err error) {
	if p.frontend, err = freeport.Take(addr); err != nil {
		return p, err
	}
	host := p.frontend.Host
	p.host = reachable(host)
	switch ip := net.ParseIP(host); {
	case host == "":
		p.bindIP = "0.0.0.0"
	case ip != nil:
		p.bindIP = ip.String()
	default:
		addrs, err := net.DefaultResolver.LookupIPAddr(ctx, host)
		if err != nil || len(addrs) == 0 {
			return p, fmt.Errorf("address %q names no address of this machine", host)
		}
		p.bindIP = addrs[0].String()
	}
	for _, port := range []*freeport.Port{&p.history, &p.matching, &p.worker} {
		if *port, err = freeport.Take(net.JoinHostPort(loopback, "0")); err != nil {
			return p, err
		}
	}
	return p, nil
}

// addr returns the address by which this machine reaches the frontend.
func (p portPlan) addr() string { return net.JoinHostPort(p.host, strconv.Itoa(p.frontend.Number)) }

// hosts returns the addresses of all roles, so that they need no gossip ring.
func (p portPlan) hosts() map[primitives.ServiceName]static.Hosts {
	return map[primitives.ServiceName]static.Hosts{
		primitives.FrontendService: static.SingleLocalHost(p.addr()),
		primitives.HistoryService:  static.SingleLocalHost(p.history.Addr()),
		primitives.MatchingService: static.SingleLocalHost(p.matching.Addr()),
		primitives.WorkerService:   static.SingleLocalHost(p.worker.Addr()),
	}
}

// serviceConfig returns the static configuration of all roles.
func serviceConfig(p portPlan, stores config.Persistence) *config.Config {
	frontendAddr := p.addr()
	local := func(port freeport.Port) config.Service {
		return config.Service{RPC: config.RPC{GRPCPort: port.Number, BindOnLocalHost: true}}
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
				GRPCPort: p.frontend.Number,
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
