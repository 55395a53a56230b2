package temporalserver

import (
	"maps"

	"go.temporal.io/server/common/dynamicconfig"
)

// dynamicSettings are where the service's defaults, made for many tenants on
// many machines, are wrong for one tenant on one.
func dynamicSettings() dynamicconfig.StaticClient {
	settings := dynamicconfig.StaticClient{
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
	maps.Copy(settings, cacheSettings())
	return settings
}

// What the caches may hold, as the service counts it: by the size of what it
// keeps in its database. In memory a run takes some ten times that. So it is about
// 1,000 runs and 5,000 events.
const (
	historyCacheBytes = 2 << 20
	eventsCacheBytes  = 2 << 20
	xdcCacheBytes     = 64 << 10 // the least that it takes
)

// cacheSettings bound the caches of runs and of their events by bytes, each for
// the whole process. By default 128,000 runs are kept, ended ones too, and of
// events half a megabyte for each shard. What has left the cache is read from
// the database when its run goes on. The third holds what other clusters would ask
// for, and there are none.
func cacheSettings() dynamicconfig.StaticClient {
	return dynamicconfig.StaticClient{
		dynamicconfig.HistoryCacheSizeBasedLimit.Key():        true,
		dynamicconfig.HistoryCacheHostLevelMaxSizeBytes.Key(): historyCacheBytes,
		dynamicconfig.EnableHostLevelEventsCache.Key():        true,
		dynamicconfig.EventsHostLevelCacheMaxSizeBytes.Key():  eventsCacheBytes,
		dynamicconfig.XDCCacheMaxSizeBytes.Key():              xdcCacheBytes,
	}
}
