package e2e_test

import (
	"cmp"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/mediagate/mediagate/api/openapitest"
	"github.com/mediagate/mediagate/internal/failpoint"
	"github.com/mediagate/mediagate/providers/all"
	"github.com/mediagate/mediagate/sandbox"
)

// options configures a world.
type options struct {
	shape     string         // standalone or production
	failpoint string         // armed in the process that passes it; see world.victim
	settings  map[string]any // override the settings of every world
	env       []string       // added to the environment of the processes

	// The options below are for production only.
	apis        int              // 0: one
	workers     int              // 0: one
	workersOff  bool             // the test starts the workers
	bin         string           // program for migration, API and workers; empty: bin/mediagate
	channels    []map[string]any // instead of the sandbox's, without base_url
	armed       int              // number of the worker with the failpoint; 0: all
	ownTemporal bool             // this and the next: own processes, which the test may kill
	ownS3       bool
	ownPostgres bool
	oneServer   bool // put Temporal's databases on the world's own PostgreSQL
	ownSandbox  bool
	links       bool                          // connect processes through links that can be cut; see linked
	prepare     []string                      // SQL statements that prepare the database
	alter       func(settings map[string]any) // last change to the settings
}

const (
	standalone = "standalone"
	production = "production"
)

// world is one gateway under test, with everything around it.
type world struct {
	t    *testing.T
	opts options
	name string
	dir  string

	apis     []*service // in the standalone shape, apis and workers hold the same process
	workers  []*service
	temporal *service // nil if Temporal is shared
	s3Server *service
	database *outage
	links    links // nil without the option links

	apiURLs     []string
	adminKey    string
	account     string
	key         string
	temporalAt  string
	ui          string // standalone only
	namespace   string
	sandbox     string
	s3          s3Place
	databaseURL string         // production only
	settings    map[string]any // production only: content of the settings file

	contract *openapitest.Contract
	hooks    *receiver
	media    mediaServer
	tasks    []*task // acknowledged

	uploads map[string]bool // by object key
}

var worlds atomic.Int64

func newWorld(t *testing.T, o options) *world {
	t.Helper()
	w := &world{
		t: t, opts: o, dir: t.TempDir(), namespace: "mediagate",
		name: fmt.Sprintf("e2e_%d_%d", os.Getpid(), worlds.Add(1)),
	}
	w.hooks, w.media = newReceiver(t), newMediaServer(t)
	if o.shape == standalone {
		w.startStandalone()
	} else {
		w.startProduction()
	}
	w.checkContract()
	w.openAccount()
	return w
}

// base returns the settings of every world. Their waits are short.
func (w *world) base() map[string]any {
	settings := map[string]any{"park_retry": "5s", "shutdown_grace": "12s"}
	maps.Copy(settings, w.opts.settings)
	return settings
}

func (w *world) writeSettings(settings map[string]any) string {
	w.t.Helper()
	text, err := yaml.Marshal(settings)
	if err != nil {
		w.t.Fatal(err)
	}
	name := filepath.Join(w.dir, "mediagate.yaml")
	if err := os.WriteFile(name, text, 0o600); err != nil {
		w.t.Fatal(err)
	}
	return name
}

// arm returns the environment that arms the world's failpoint.
func (w *world) arm() []string {
	if w.opts.failpoint == "" {
		return nil
	}
	return []string{"MEDIAGATE_FAILPOINT=" + w.opts.failpoint, "MEDIAGATE_FAILPOINT_DIR=" + w.dir}
}

func (w *world) startStandalone() {
	w.t.Helper()
	data := filepath.Join(w.dir, "data")
	p := program{name: "standalone", bin: "mediagate-standalone", dir: w.dir, env: slices.Concat(w.opts.env, w.arm())}
	settings, api := w.base(), freeAddr(w.t)
	if settings["oidc"] != nil { // the sign-in redirects to it
		settings["public_url"] = "http://" + api
	}
	p.args = []string{"-data", data, "-config", w.writeSettings(settings)}
	p.args = append(p.args, "-ui", anyAddr, "-ops", anyAddr, "-api", api)
	for _, server := range []string{"temporal", "s3", "sandbox"} {
		p.args = append(p.args, "-"+server, freeAddr(w.t))
	}
	p.ready = "http://" + api + "/readyz"
	s := launch(w.t, p)
	at, err := announced(w.t.Context(), s, data)
	if err != nil {
		w.t.Fatal(err)
	}
	w.apis, w.workers = []*service{s}, []*service{s}
	w.apiURLs, w.adminKey, w.sandbox, w.temporalAt, w.ui, w.s3 = []string{at.API}, at.AdminKey, at.Sandbox, at.Temporal, at.UI, *at.S3
}

func (w *world) startProduction() {
	w.t.Helper()
	shared := suite.shared.get(w.t)
	w.sandbox, w.temporalAt, w.s3 = shared.place.Sandbox, shared.place.Temporal, *shared.place.S3
	w.s3.Bucket = strings.ReplaceAll(w.name, "_", "-")
	w.namespace = w.name
	cluster := shared.postgres
	if w.opts.ownPostgres {
		w.database = ownPostgres(w.t)
		cluster = w.database.cluster
	}
	w.databaseURL = newDatabase(w.t, cluster, w.name)
	w.exec(w.opts.prepare...)
	if w.opts.ownTemporal {
		var more []string
		if w.opts.oneServer {
			more = []string{"-temporal-database-url", cluster.URL("postgres")}
		}
		w.temporal = w.ownInfra("temporal", more...)
		at, err := announced(w.t.Context(), w.temporal, filepath.Join(w.dir, "temporal"))
		if err != nil {
			w.t.Fatal(err)
		}
		w.temporalAt = at.Temporal
	}
	if w.opts.ownS3 {
		w.s3Server = w.ownInfra("s3")
		at, err := announced(w.t.Context(), w.s3Server, filepath.Join(w.dir, "s3"))
		if err != nil {
			w.t.Fatal(err)
		}
		bucket := w.s3.Bucket
		w.s3 = *at.S3
		w.s3.Bucket = bucket
	}

	if w.opts.ownSandbox {
		at, err := announced(w.t.Context(), w.ownInfra("sandbox"), filepath.Join(w.dir, "sandbox"))
		if err != nil {
			w.t.Fatal(err)
		}
		w.sandbox = at.Sandbox
	}

	w.adminKey = randomText(32)
	settings := w.base()
	settings["database_url"] = w.databaseURL
	settings["temporal"] = map[string]any{"address": w.temporalAt, "namespace": w.namespace}
	settings["s3"] = map[string]any{
		"endpoint": w.s3.Endpoint, "region": w.s3.Region, "bucket": w.s3.Bucket,
		"access_key_id": w.s3.AccessKeyID, "secret_access_key": w.s3.SecretAccessKey, "path_style": true,
	}
	settings["admin_key"] = w.adminKey
	settings["encryption_keys"] = []string{base64.StdEncoding.EncodeToString([]byte(randomText(32)))}
	settings["outbound"] = map[string]any{"allow": []string{"127.0.0.0/8"}}
	settings["channels"] = sandboxChannels(w.sandbox)
	if w.opts.channels != nil {
		settings["channels"] = w.withSandboxURL(w.opts.channels)
	}
	if w.opts.alter != nil {
		w.opts.alter(settings)
		w.adminKey = settings["admin_key"].(string)
	}
	config := w.writeSettings(settings)
	w.settings = settings

	w.once("migrate", "migrate", "-config", config)
	for i := range max(w.opts.apis, 1) {
		name := fmt.Sprintf("api%d", i+1)
		w.addAPI(name, w.linked(name, config))
	}
	for i := range max(w.opts.workers, 1) {
		w.addWorker(i+1, w.linked(fmt.Sprintf("worker%d", i+1), config))
	}
}

// ownInfra starts one embedded server in a process of this world.
func (w *world) ownInfra(name string, more ...string) *service {
	w.t.Helper()
	p := infraProgram(name, w.dir, name, func() string { return freeAddr(w.t) })
	p.args = append(p.args, more...)
	return launch(w.t, p)
}

// sandboxChannels returns a channel for each vendor of the sandbox that has an adapter and a
// built-in model with a route to it.
func sandboxChannels(url string) []map[string]any {
	var channels []map[string]any
	for _, c := range sandbox.Channels(url) {
		if c.Provider != "fal" && slices.Contains(all.Builtin().Names(), c.Provider) {
			channels = append(channels, map[string]any{
				"name": c.Provider + "-a", "provider": c.Provider, "base_url": url + c.Path, "credentials": c.Credentials,
				"requests_per_second": 50, "poll_interval": map[string]string{"min": "500ms", "max": "1s"},
			})
		}
	}
	return channels
}

// bin returns the program to start next.
func (w *world) bin() string { return cmp.Or(w.opts.bin, "mediagate") }

// once runs a command of bin/mediagate to its end.
func (w *world) once(name string, args ...string) {
	w.t.Helper()
	s := launch(w.t, program{name: name, bin: w.bin(), dir: w.dir, args: args})
	<-s.ended
	if code := s.cmd.ProcessState.ExitCode(); code != 0 {
		w.t.Fatalf("%s exits with %d:\n%s", name, code, tail(s.logFile()))
	}
}

func (w *world) addAPI(name, config string) {
	w.t.Helper()
	addr := freeAddr(w.t)
	p := program{name: name, bin: w.bin(), dir: w.dir, args: []string{"api", "-config", config, "-api-listen", addr, "-ops-listen", anyAddr}}
	p.ready = "http://" + addr + "/readyz"
	p.env = w.opts.env
	if strings.HasPrefix(w.opts.failpoint, failpoint.SubmitCommitted) {
		p.env = slices.Concat(p.env, w.arm())
	}
	w.apis = append(w.apis, launch(w.t, p))
	w.apiURLs = append(w.apiURLs, "http://"+addr)
}

func (w *world) addWorker(n int, config string) {
	w.t.Helper()
	p := program{
		name: fmt.Sprintf("worker%d", n), bin: w.bin(), dir: w.dir, listens: "ops",
		args: []string{"worker", "-config", config, "-ops-listen", anyAddr},
	}
	p.env = w.opts.env
	if w.opts.armed == 0 || w.opts.armed == n {
		p.env = slices.Concat(p.env, w.arm())
	}
	if !w.opts.workersOff {
		w.workers = append(w.workers, launch(w.t, p))
		return
	}
	s := &service{program: p}
	w.t.Cleanup(func() {
		s.kill()
		if w.t.Failed() {
			w.t.Logf("log of %s, its end:\n%s", s.name, tail(s.logFile()))
		}
	})
	w.workers = append(w.workers, s)
}

// victim returns the process that passes the world's failpoint.
func (w *world) victim() *service {
	switch {
	case strings.HasPrefix(w.opts.failpoint, failpoint.SubmitCommitted):
		return w.apis[0]
	default:
		return w.workers[max(w.opts.armed-1, 0)]
	}
}

func randomText(n int) string {
	text := rand.Text() + rand.Text()
	return text[:n]
}
