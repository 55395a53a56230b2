package temporalserver

import (
	"maps"

	"go.temporal.io/server/common/dynamicconfig"
)

// dynamicSettings returns the settings whose defaults are wrong here. The defaults are made for
// many tenants on many machines, and this is one tenant on one machine.
func dynamicSettings() dynamicconfig.StaticClient {
	settings := dynamicconfig.StaticClient{
		// By default a shard's queue is polled 20 times a second. With few shards, that adds up
		// to 50 ms to every step of a workflow.
		dynamicconfig.TransferProcessorMaxPollRPS.Key(): 1000,
		// One process serves all partitions, so a second partition only adds forwarding.
		dynamicconfig.MatchingNumTaskqueueReadPartitions.Key():  1,
		dynamicconfig.MatchingNumTaskqueueWritePartitions.Key(): 1,
		// Fairness keys keep one account's backlog from starving the others.
		dynamicconfig.MatchingEnableFairness.Key(): true,
		// The default of 10 visibility calls a second is less than a UI in use needs.
		dynamicconfig.FrontendMaxNamespaceVisibilityRPSPerInstance.Key(): 500,
		dynamicconfig.FrontendMaxNamespaceRPSPerInstance.Key():           20000,
		dynamicconfig.FrontendRPS.Key():                                  20000,
		dynamicconfig.FrontendPersistenceMaxQPS.Key():                    20000,
		dynamicconfig.HistoryPersistenceMaxQPS.Key():                     50000,
		dynamicconfig.MatchingPersistenceMaxQPS.Key():                    20000,
		// New search attributes are usable at once.
		dynamicconfig.ForceSearchAttributesCacheRefreshOnRead.Key(): true,
		// The service must not report to anyone.
		dynamicconfig.EnableServerVersionCheck.Key(): false,
	}
	maps.Copy(settings, cacheSettings())
	return settings
}

// The sizes of the caches. The service counts the size of the entries in its database. In
// memory, a run takes about ten times that, so the caches hold about 1,000 runs and 5,000
// events.
const (
	historyCacheBytes = 2 << 20
	eventsCacheBytes  = 2 << 20
	xdcCacheBytes     = 64 << 10 // the smallest allowed size
)

// cacheSettings limits the caches of runs and of their events by bytes, for the whole process.
// By default the service keeps 128,000 runs, including ended ones, and half a megabyte of events
// for each shard. When a run that is not in the cache goes on, the service reads it from the
// database. The third cache is for other clusters, and there are none.
func cacheSettings() dynamicconfig.StaticClient {
	return dynamicconfig.StaticClient{
		dynamicconfig.HistoryCacheSizeBasedLimit.Key():        true,
		dynamicconfig.HistoryCacheHostLevelMaxSizeBytes.Key(): historyCacheBytes,
		dynamicconfig.EnableHostLevelEventsCache.Key():        true,
		dynamicconfig.EventsHostLevelCacheMaxSizeBytes.Key():  eventsCacheBytes,
		dynamicconfig.XDCCacheMaxSizeBytes.Key():              xdcCacheBytes,
	}
}
