package e2e_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/mediagate/mediagate/storage/pgtest"
)

// TestPooler runs several processes behind a pooler with five connections to PostgreSQL, which
// it assigns by transaction. Each process alone would use fifty. The settings do not mention the
// pooler. A worker and an API process die in the middle.
func TestPooler(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{shape: production, apis: 2, workers: 2, alter: func(settings map[string]any) {
		url := settings["database_url"].(string)
		settings["database_url"] = pgtest.NewPooler(t, url).URL(url)
	}})
	w.submitMany(60, job{model: alpha, directive: "duration=2s"})
	w.workers[0].kill()
	w.apis[0].kill()
	w.apis[0].start(t)
	w.workers[0].start(t)
	w.submitMany(60, job{model: alpha, directive: "duration=1s", noHook: true})
	w.verify(recoverTime)

	broken := regexp.MustCompile(`SQLSTATE (42P05|26000|34000|42P03|08P01|57014|40001)|"status":500|"kind":"internal"`)
	found := regexp.MustCompile(`"database_pooler":"transaction"`)
	for _, s := range append(w.apis, w.workers...) {
		text, err := os.ReadFile(s.logFile())
		if err != nil {
			t.Fatal(err)
		}
		if line := broken.Find(text); line != nil {
			t.Errorf("%s logs %s", s.name, line)
		}
		if !found.Match(text) {
			t.Errorf("%s has not found the pooler", s.name)
		}
	}
}
