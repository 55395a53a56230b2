package e2e_test

import (
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// The servers that our processes reach over links.
const (
	toPostgres = "postgres"
	toTemporal = "temporal"
	toS3       = "s3"
	toSandbox  = "sandbox"
)

// links holds the connections from each process to each server: links[process][server].
type links map[string]map[string]*toxiproxy.Proxy

// The troubles of a link.
const (
	linkCut  = "cut"  // connections break, and new ones are refused
	linkHole = "hole" // no data passes, but connections stay open
	linkSlow = "slow" // everything takes 400 ms longer
)

var toxics = map[string]string{
	linkHole: `{"name":%q,"type":"timeout","stream":%q,"attributes":{"timeout":0}}`,
	linkSlow: `{"name":%q,"type":"latency","stream":%q,"attributes":{"latency":400}}`,
}

// linked starts the links of a process. It returns the process's own copy of the settings, in
// which each server has the address of a link. Without the option links, it returns config.
func (w *world) linked(process, config string) string {
	w.t.Helper()
	if !w.opts.links {
		return config
	}
	text, err := os.ReadFile(config)
	if err != nil {
		w.t.Fatal(err)
	}
	proxies := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	own, settings := map[string]*toxiproxy.Proxy{}, string(text)
	for server, at := range map[string]string{
		toPostgres: w.databaseURL, toTemporal: "tcp://" + w.temporalAt, toS3: w.s3.Endpoint, toSandbox: w.sandbox,
	} {
		u, err := url.Parse(at)
		if err != nil {
			w.t.Fatal(err)
		}
		proxy := toxiproxy.NewProxy(proxies, process+" to "+server, freeAddr(w.t), u.Host)
		if err := proxy.Start(); err != nil {
			w.t.Fatal(err)
		}
		w.t.Cleanup(proxy.Stop)
		own[server] = proxy
		settings = strings.ReplaceAll(settings, u.Host, proxy.Listen)
	}
	if w.links == nil {
		w.links = links{}
	}
	w.links[process] = own
	name := filepath.Join(w.dir, process+".yaml")
	if err := os.WriteFile(name, []byte(settings), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return name
}

// processes returns the processes with links, in order.
func (l links) processes() []string { return slices.Sorted(maps.Keys(l)) }

// trouble starts a trouble of a link. The returned function ends it.
func (l links) trouble(t *testing.T, process, server, what string) func() {
	t.Helper()
	link := l[process][server]
	if what == linkCut {
		link.Stop()
		return func() {
			if err := link.Start(); err != nil {
				t.Errorf("%s: %v", link.Name, err)
			}
		}
	}
	directions := []string{"upstream", "downstream"}
	for _, d := range directions {
		if _, err := link.Toxics.AddToxicJson(strings.NewReader(fmt.Sprintf(toxics[what], d, d))); err != nil {
			t.Errorf("%s: %v", link.Name, err)
		}
	}
	return func() { link.Toxics.ResetToxics(t.Context()) }
}
