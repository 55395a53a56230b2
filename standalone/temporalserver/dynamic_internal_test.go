package temporalserver

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/log"
	historyconfigs "go.temporal.io/server/service/history/configs"

	"github.com/mediagate/mediagate/standalone/compose"
)

// caches holds the history service's configuration of its caches.
type caches struct {
	RunsByBytes       bool
	RunsMaxBytes      int
	EventsOfAllShards bool
	EventsMaxBytes    int
	XDCMaxBytes       int
}

func cachesOf(client dynamicconfig.Client) caches {
	all := dynamicconfig.NewCollection(client, log.NewNoopLogger())
	c := historyconfigs.NewConfig(all, sqliteShards)
	return caches{
		RunsByBytes: c.HistoryCacheLimitSizeBased, RunsMaxBytes: c.HistoryHostLevelCacheMaxSizeBytes(),
		EventsOfAllShards: c.EnableHostLevelEventsCache(), EventsMaxBytes: c.EventsHostLevelCacheMaxSizeBytes(),
		XDCMaxBytes: dynamicconfig.XDCCacheMaxSizeBytes.Get(all)(),
	}
}

// TestCachesAreBounded checks, through the service's own configuration, that the limits are in
// force.
func TestCachesAreBounded(t *testing.T) {
	t.Parallel()
	want := caches{true, 2 << 20, true, 2 << 20, 64 << 10}
	if diff := cmp.Diff(want, cachesOf(dynamicSettings())); diff != "" {
		t.Errorf("caches (-want +got):\n%s", diff)
	}
}

// yamlSettings are dynamic settings from a file.
type yamlSettings dynamicconfig.ConfigValueMap

// GetValue implements dynamicconfig.Client.
func (s yamlSettings) GetValue(key dynamicconfig.Key) []dynamicconfig.ConstrainedValue { return s[key] }

// TestComposeFileBoundsTheSameCaches checks that the service in docker-compose.yml knows each of
// its settings and limits the same caches as this package.
func TestComposeFileBoundsTheSameCaches(t *testing.T) {
	t.Parallel()
	project, err := compose.Load(t.Context(), "../..", []string{
		"POSTGRES_PASSWORD=p", "GATEWAY_POSTGRES_PASSWORD=g", "TEMPORAL_POSTGRES_PASSWORD=t", "S3_ROOT_SECRET_KEY=r", "S3_SECRET_ACCESS_KEY=s",
		"MEDIAGATE_ADMIN_KEY=a", "MEDIAGATE_ENCRYPTION_KEYS=e",
	})
	if err != nil {
		t.Fatal(err)
	}
	file := dynamicconfig.LoadYamlFile([]byte(project.Configs["temporal-dynamic"].Content))
	if err := file.Err(); err != nil || len(file.Warnings) > 0 {
		t.Fatalf("dynamic settings: %v, %v", err, file.Warnings)
	}
	for key := range cacheSettings() {
		if got := file.Map[key]; len(got) != 1 || got[0].Constraints != (dynamicconfig.Constraints{}) {
			t.Errorf("%s is %v in docker-compose.yml, want one value for all", key, got)
		}
	}
	want := caches{true, 16 << 20, true, 16 << 20, 64 << 10}
	if diff := cmp.Diff(want, cachesOf(yamlSettings(file.Map))); diff != "" {
		t.Errorf("caches (-want +got):\n%s", diff)
	}
}
