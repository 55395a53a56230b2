# mediagate: everything is done through make. `make help` lists the targets.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.version=$(VERSION)
GO ?= go
# Debian's Python, because it has mypy and setuptools.
PYTHON ?= /usr/bin/python3
TOOLS := $(CURDIR)/.cache/bin
export CGO_ENABLED ?= 0
# Temporal's server imports clients of Kubernetes and of Google's storage over gRPC, which the
# programs never use. With these build tags of the imported modules a first build compiles a
# fifth less. All commands set the tags, so that builds and tests share compiled packages.
export GOFLAGS := $(shell $(GO) env GOFLAGS) -tags=disable_grpc_modules,release

GOLANGCI := v2.15.0
GOFUMPT := v0.12.0
WORKFLOWCHECK := v0.6.0
GOVULNCHECK := v1.9.0
CYCLONEDX := v1.10.0

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z/]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F':.*## ' '{printf "  %-14s %s\n", $$1, $$2}'

.PHONY: dev
dev: build ## build and run everything on one machine, until interrupted
	exec bin/mediagate-standalone

.PHONY: demo
demo: build/standalone ## run the main job once, on real parts, in a fresh temporary folder
	$(GO) run ./client/demo -standalone bin/mediagate-standalone

.PHONY: build build/product build/standalone
build: build/product build/standalone ## build bin/mediagate and bin/mediagate-standalone
build/product: console/dist/index.html
	$(GO) build -ldflags '$(LDFLAGS)' -o bin/mediagate ./cmd/mediagate
build/standalone: console/dist/index.html
	cd standalone && $(GO) build -ldflags '$(LDFLAGS)' -o ../bin/mediagate-standalone .

# The web application, which is embedded in the programs. Without Node the programs are built
# without it, and say so at /console.
console/dist/index.html: $(filter-out %.go,$(shell git ls-files console)) api/openapi.yaml api/openapi_admin.yaml
	scripts/console

.PHONY: deps
deps: ## install or name what the tests need besides Go
	scripts/deps

# Most tests wait for a database, a server or a timeout longer than they compute, so twice as
# many run at once as there are processors. On a busy machine a package may take long: the
# timeout only ends tests that hang.
TESTFLAGS := -timeout 30m -parallel $(shell echo $$((2 * $$(getconf _NPROCESSORS_ONLN))))

# RACE matches the packages whose goroutines share memory. The race detector makes tests five
# times slower and has everything compiled a second time, so only CI runs it, and only there. In
# package storage it is the database where goroutines meet.
RACE := mediagate/(activities|api|channel|client|cmd|internal|worker)(/|$$)|/(blob|inline|kernel|media|vendorhttp|vertex)$$

# PLAYS is how many random plays of each kind run. `make verify` runs thousands.
PLAYS := -rapid.checks=25

# The end-to-end tests run many real processes against the clock, so no other package is
# tested at the same time.
define test-alone
	$(GO) test $(TESTFLAGS) $(1) $$($(GO) list ./... | grep -vE '$(RACE)|/(workflows|storage)$$')
	$(GO) test $(TESTFLAGS) $(1) -count=1 ./workflows ./storage $(PLAYS)
endef
define test-standalone
	cd standalone && $(GO) test $(TESTFLAGS) $(1) $$($(GO) list ./... | grep -v '/e2e$$')
	cd standalone && $(GO) test $(1) -timeout 30m ./e2e
endef

.PHONY: client/python
client/python: ## build the wheel and the sdist of the Python client in bin/python
	rm -rf bin/python
	cd client/python && $(PYTHON) -W ignore -c 'from setuptools import build_meta as b; b.build_wheel("../../bin/python"); b.build_sdist("../../bin/python")' >/dev/null
	rm -rf client/python/build client/python/mediagate.egg-info

.PHONY: test test/console test/python test/short test/race test/replay
test: deps build test/console test/python ## run all tests
	$(call test-alone,)
	$(GO) test $(TESTFLAGS) $$($(GO) list ./... | grep -E '$(RACE)')
	$(call test-standalone,)

test/console: console/dist/index.html ## test the console's functions; TestConsole walks through its pages
	cd console && npm test --silent

test/python: client/python ## test the Python client, from its wheel
	cd client/python/tests && PYTHONPATH=$$(echo $(CURDIR)/bin/python/*.whl) $(PYTHON) -W error -m unittest

test/short: ## tests that need neither PostgreSQL nor the embedded servers
	$(GO) test -short . ./catalog/... ./internal/failpoint ./internal/freeport ./internal/outbound ./internal/webhook ./providers/... ./sandbox/... ./workflows/... ./cmd/...

# `make test/race` runs neither vet nor the tests with Redocly, Spectral and oapi-codegen, since
# `make lint` does. The embedded servers are not our code and take minutes to compile and run under
# the race detector, so the packages that link them, and SQLite, are compiled without it. GORM's
# driver links another SQLite, in C, which nothing calls: it need not be optimized.
test/race: deps build test/console test/python ## run all tests, under the race detector and shuffled where goroutines share memory
	$(call test-alone,-vet=off)
	CGO_ENABLED=1 CGO_CFLAGS=-O0 $(GO) test $(TESTFLAGS) -race -gcflags='modernc.org/...=-race=false' -shuffle=on -vet=off \
		-skip 'TestOpenAPI(Lint|GoClient)' $$($(GO) list ./... | grep -E '$(RACE)')
	$(call test-standalone,-shuffle=on -vet=off)

test/replay: ## replay the recorded histories
	cd standalone && $(GO) test -run 'TestReplay' ./durable

.PHONY: verify verify/fuzz verify/storm
verify: deps build verify/fuzz verify/storm ## the crash tests of every failpoint, and the long tests
	cd standalone && MEDIAGATE_VERIFY=1 $(GO) test -count=1 -timeout 60m ./e2e -parallel 4 -run 'TestCrash|TestVerify|TestKill|TestLeak|TestRestore|TestSpeech|TestD|TestClock|TestTemporalIsAway'

verify/fuzz: ## thousands of random plays of the workflow; a seed that breaks a rule is printed
	$(GO) test -count=1 -timeout 60m ./workflows -run TestFuzz -rapid.checks=2000

verify/storm: deps ## many clients that spend at once, and thousands of holds compared with a model, on both databases; seeds are printed
	MEDIAGATE_VERIFY=1 $(GO) test -count=1 -timeout 60m ./storage -run 'Facts$$/pooled$$'
	MEDIAGATE_VERIFY=1 $(GO) test -count=1 -timeout 60m ./storage -run 'Test(Model|Crowd)Facts$$/(postgres|sqlite)$$' -rapid.checks=300 -crowd.ops=400

SEED ?= 0
RUNS ?= 3
.PHONY: chaos
chaos: deps build ## minutes: hundreds of tasks while every part is killed, stopped and cut off; SEED= to repeat a run, RUNS= for more
	cd standalone && $(GO) test -count=1 -v -timeout 180m ./e2e -run TestChaos -chaos.seed=$(SEED) -chaos.runs=$(RUNS)

FUZZTIME ?= 1m
.PHONY: fuzz
fuzz: ## nightly: run each fuzz target for a minute (or FUZZTIME=); inputs that fail are kept in testdata/fuzz
	GO=$(GO) scripts/fuzz $(FUZZTIME)

.PHONY: bench
bench: deps build ## measure against floors taken in the same run
	cd standalone && $(GO) run ./bench

.PHONY: tools lint lint/openapi lint/python
tools: $(TOOLS)/golangci-lint-$(GOLANGCI) $(TOOLS)/workflowcheck-$(WORKFLOWCHECK)
lint: tools lint/openapi lint/python ## static checks
	$(TOOLS)/golangci-lint-$(GOLANGCI) run --allow-parallel-runners ./...
	cd standalone && $(TOOLS)/golangci-lint-$(GOLANGCI) run --allow-parallel-runners --config ../.golangci.yml ./...
	$(TOOLS)/workflowcheck-$(WORKFLOWCHECK) ./workflows

lint/openapi: deps ## check the OpenAPI documents with Redocly and Spectral, and generate a Go client
	$(GO) test -vet=off ./api -run 'TestOpenAPI(Lint|GoClient)'

lint/python: deps ## check the types of the Python client
	cd client/python && $(PYTHON) -m mypy

.PHONY: pictures
pictures: deps build ## walk through the console in a browser, and keep a picture of each page in docs/pictures
	cd standalone && MEDIAGATE_PICTURES=$(CURDIR)/docs/pictures $(GO) test -count=1 ./e2e -run TestConsole

.PHONY: audit
audit: build $(TOOLS)/cyclonedx-gomod-$(CYCLONEDX) ## known vulnerabilities of the programs' modules, and their bills of materials
	scripts/audit $(TOOLS)/cyclonedx-gomod-$(CYCLONEDX) $(TOOLS)/govulncheck-$(GOVULNCHECK) $(VERSION) bin/mediagate bin/mediagate-standalone

.PHONY: fmt
fmt: $(TOOLS)/gofumpt-$(GOFUMPT) ## format
	$(TOOLS)/gofumpt-$(GOFUMPT) -w $$(git ls-files '*.go')

.PHONY: generate
generate: ## rewrite golden files from what the code does now; read the diff
	$(GO) test $$(grep -rlF 'flag.Bool("update"' --include=*_test.go --exclude-dir=standalone . | xargs -n1 dirname | sort -u) -update

.PHONY: ci
ci: ## what continuous integration runs
	$(MAKE) -j2 deps tools
	$(MAKE) lint
	$(MAKE) test/race
	$(MAKE) demo
	$(MAKE) audit

.PHONY: clean
clean: ## remove what was built
	rm -rf bin .cache console/node_modules
	git clean -fdXq console/dist

$(TOOLS)/golangci-lint-$(GOLANGCI):
	GOBIN=$(TOOLS) $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI)
	mv $(TOOLS)/golangci-lint $@
$(TOOLS)/gofumpt-$(GOFUMPT):
	GOBIN=$(TOOLS) $(GO) install mvdan.cc/gofumpt@$(GOFUMPT)
	mv $(TOOLS)/gofumpt $@
$(TOOLS)/workflowcheck-$(WORKFLOWCHECK):
	GOBIN=$(TOOLS) $(GO) install go.temporal.io/sdk/contrib/tools/workflowcheck@$(WORKFLOWCHECK)
	mv $(TOOLS)/workflowcheck $@
$(TOOLS)/govulncheck-$(GOVULNCHECK):
	GOBIN=$(TOOLS) $(GO) install golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK)
	mv $(TOOLS)/govulncheck $@
$(TOOLS)/cyclonedx-gomod-$(CYCLONEDX):
	GOBIN=$(TOOLS) $(GO) install github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@$(CYCLONEDX)
	mv $(TOOLS)/cyclonedx-gomod $@
