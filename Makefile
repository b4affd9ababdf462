# Everything here works from a fresh clone with Go, git and make. Run `make` to see what there is.

GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS ?= -s -w -X main.version=$(VERSION)

# Extra arguments to go test, e.g. make test TESTFLAGS='-run TestGate -v'. Tests wait up to five minutes for what must
# happen; on a machine that is slower still, KAUSALITY_PATIENCE=15m lets them wait for longer. CONTRIBUTING.md has more.
TESTFLAGS ?=
# How often each benchmark runs; benchstat wants at least 6 to give a confidence interval.
COUNT ?= 6
# Seed of `make soak`, one that it draws by default, how long it lasts, and which plays it plays, by default all
# but those of PLAYS=busy.
SEED     ?=
DURATION ?= 1h
PLAYS    ?=
# Least coverage of engine/ in percent, which make test-unit measures.
COVERAGE ?= 90
# Where `make demo` records itself: files that end in .svg (a picture of its highlights) or .cast (all of it).
RECORD ?=
# Where `make up` keeps kubeconfigs, logs and state.
LOCAL ?= .local

# Modules of their own: what they need must not meet what the others do. Argo CD and its users replace dependencies.
# Code of UPJET is generated for the most part, into the cache of the stack.
MODULES = hack/package package/monitoring/check docs/workflows/check test/oldprovider
UPJET   = test/upjet
GITOPS  = test/gitops/flux test/gitops/argocd
BINARIES = function-kausality kausality-manager kubectl-kausality
STACK    = $(GO) run ./test/stack/cmd/stack

# Prints the directory of the pinned tools and builds them first where need be; see hack/tools.sh.
# To be used inside a recipe, so that targets without tools do not wait for them.
TOOLS = tools=$$(hack/tools.sh)

.DEFAULT_GOAL := help
.SUFFIXES:

.PHONY: help
help: ## Show this list.
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  %-15s %s\n", $$1, $$2 }' Makefile

.PHONY: demo
demo: ## Start the local stack, show the Crossplane example on it, stop it again.
	@echo 'The first run takes about 20 minutes on two cores: etcd, kube-apiserver, Crossplane and the others are built from'
	@echo 'source, as no image is used. Later runs take a minute. Nothing is left running.'
	@GO='$(GO)' hack/run.sh ./test/demo/offline examples/claim-with-ticket/tests
	@GO='$(GO)' hack/run.sh ./test/demo $(RECORD:%=--record=%)

.PHONY: record
record: RECORD = docs/demo.svg
record: demo ## Record the demo anew: the picture in the README.

# WITH=postgresql adds a PostgreSQL server and the provider for it.
WITH ?=

.PHONY: up
up: ## Start the local stack and leave it running; returns when all is ready. WITH=postgresql adds a database server.
	@GO='$(GO)' hack/run.sh ./test/stack/cmd/stack up --dir $(LOCAL) --manager-flags=--settle=5s --with=$(WITH)

.PHONY: down
down: ## Stop the local stack.
	$(STACK) down --dir $(LOCAL)

.PHONY: build
build: ## Build the programs into bin/.
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/ $(BINARIES:%=./cmd/%)
	ln -sf kubectl-kausality bin/kubectl_complete-kausality # What kubectl asks to complete its plugin's arguments.

# Each ends with a table of what took how long.
TEST = hack/test.sh
export GO TESTFLAGS COVERAGE

.PHONY: test
test: stack ## Run what a change needs: unit tests, judge, and of each mechanism a test on a real control plane.
	$(TEST) unit short

.PHONY: test-all
test-all: stack stack-older gitops postgresql ## Run all tests; needed before an issue is closed.
	$(TEST) unit all bench race

.PHONY: test-unit
test-unit: ## Run the tests that need no stack.
	$(TEST) unit

.PHONY: test-stack
test-stack: stack ## Run the stack tests of make test.
	$(TEST) short

# PART=draw draws one by the hash of the commit's tree.
PART ?=

.PHONY: test-part
test-part: stack ## Run PART of what only make test-all runs; without it, print the parts.
	@$(TEST) $(if $(PART),rest-$(PART),parts)

.PHONY: test-race
test-race: stack ## Race gates against stale observations: 40 rounds.
	$(TEST) race

.PHONY: judge
judge: ## Decide again what was decided at the baseline, and name each decision that is another one now.
	$(GO) test ./test/judge -count=1 $(TESTFLAGS)

# Outside CI: each version of Kubernetes is built from source once, in about ten minutes. MINORS=1.35 plays one.
MINORS ?=

.PHONY: matrix
matrix: ## Play the demo on each supported version of Kubernetes and Crossplane, and print what passes.
	GO='$(GO)' LOCAL='$(LOCAL)' hack/matrix.sh $(MINORS)

# What `make test-all` has a sample of. Which plays there are, and how to add one: see hack/soak.sh.
.PHONY: soak
soak: stack postgresql ## Play the long random runs: SEED=n goes on with an earlier soak, DURATION=8h says for how long.
	GO='$(GO)' LOCAL='$(LOCAL)' SEED='$(SEED)' DURATION='$(DURATION)' PLAYS='$(PLAYS)' hack/soak.sh

SIZES ?= 40 100 300
TIMES ?= 3

.PHONY: fleet
fleet: stack ## Time fleets of XRs with Kausality, without, and beside a peer that does nothing: SIZES='40 100', TIMES=3.
	GO='$(GO)' LOCAL='$(LOCAL)' SIZES='$(SIZES)' TIMES='$(TIMES)' hack/fleet.sh

# Without the cache of results: it does not see files outside the module.
.PHONY: test-monitoring
test-monitoring: ## Check alert rules and dashboard with Prometheus' engine and Grafana's model.
	$(GO) -C package/monitoring/check test -count=1 ./...

# A step of its own because go test would swallow the progress of a build that takes minutes.
.PHONY: stack
stack: ## Build the parts of the local stack: kube-apiserver, etcd, Crossplane, providers.
	$(STACK) build

.PHONY: stack-older
stack-older: ## Build Crossplane 1.20, for the tests of older versions.
	$(STACK) build --with=older

# Likewise: the provider is generated with upjet, whose libraries are many.
.PHONY: postgresql
postgresql: ## Build the provider for PostgreSQL; install PostgreSQL's server where that can be done.
	hack/postgres.sh >/dev/null
	$(STACK) postgresql >/dev/null

# Likewise. Of Argo CD's libraries there are many.
.PHONY: gitops
gitops: ## Build what compares and applies as Argo CD and Flux do, for the tests.
	for module in $(GITOPS); do GOWORK=off $(GO) -C $$module build -o /dev/null . || exit; done

# SEED=2 draws other mutants. It goes on where it was interrupted: after a change, remove mutants.txt*.
.PHONY: mutate
mutate: ## Change 150 places of engine/, one at a time, and list the changes that no test fails for; takes half an hour.
	$(GO) run ./hack/mutate $(SEED:%=-seed=%)

.PHONY: bench
bench: ## Run the benchmarks; results in bench/results.json and as a table.
	COUNT=$(COUNT) VERSION=$(VERSION) hack/bench.sh

.PHONY: lint
lint: lint-own lint-libraries ## Run the linters and check formatting and go.mod.

.PHONY: lint-own
lint-own: ## Of these, those that need no libraries of upjet, Argo CD and Flux.
	$(TOOLS) && "$$tools/golangci-lint" run ./... && \
		for module in $(MODULES); do (cd $$module && "$$tools/golangci-lint" run ./...) || exit; done
	tool=$$(hack/tools.sh tools/actionlint) && "$$tool/actionlint" -shellcheck= -pyflakes=
	hack/vuln.sh
	for module in . $(MODULES); do $(GO) -C $$module mod tidy -diff || exit; done

# UPJET is linted as a copy with what is generated, without which it does not compile. The settings are copied, too:
# paths in them are relative to where they are.
.PHONY: lint-libraries
lint-libraries: ## Of these, those that do: on a new machine they take long.
	$(TOOLS) && for module in $(GITOPS); do (cd $$module && "$$tools/golangci-lint" run --disable=gomoddirectives ./...) || exit; done
	$(TOOLS) && generated=$$($(STACK) postgresql) && copy=$$(mktemp -d) && trap 'rm -rf "$$copy"' EXIT && \
		cp -R "$$generated/source/." .golangci.yml "$$copy" && cd "$$copy/$(UPJET)" && "$$tools/golangci-lint" run ./...
	for module in $(UPJET) $(GITOPS); do $(GO) -C $$module mod tidy -diff || exit; done

# The stack is built before: on a new machine that takes longer than go test lets a package take.
.PHONY: chart
chart: stack ## Check the Helm chart: lint it, render it, have the API server's schemas judge it.
	tool=$$(hack/tools.sh tools/helm) && "$$tool/helm" lint --strict package/chart
	$(GO) test -tags stack ./test/chart -count=1 -skip TestTheChartIsInstalled $(TESTFLAGS)

.PHONY: fix
fix: ## Format, and fix what the linters can fix by themselves.
	$(TOOLS) && "$$tools/golangci-lint" run --fix ./...
	$(GO) mod tidy

.PHONY: house
house: ## Print how much of the code somebody has to hold in their head, beside commit ea921c02.
	$(GO) run ./hack/house

.PHONY: generate
generate: ## Generate deepcopy functions, CRDs, RBAC and docs/reference from the Go sources.
	hack/generate.sh

# Of a commit without a tag: after all earlier commits, and before the release.
PACKAGE_VERSION ?= $(shell git describe --tags --exact-match --match 'v[0-9]*' 2>/dev/null || \
	TZ=UTC git log -1 --date=format-local:%Y%m%d%H%M%S --format=v0.1.0-0.%cd-%h --abbrev=12)
PACKAGE = $(GO) run -C hack/package .

.PHONY: package
package: ## Build images and Crossplane packages into dist/.
	SOURCE_DATE_EPOCH=$(shell git log -1 --format=%ct) $(PACKAGE) build \
		--root $(CURDIR) --out $(CURDIR)/dist --version $(PACKAGE_VERSION) --revision $(shell git rev-parse HEAD) \
		$(if $(REPOSITORY),--repository $(REPOSITORY))
	@echo 'Push them with: make package-push REPOSITORY=registry.example.org/kausality-io'

.PHONY: package-push
package-push: ## Push what `make package` built to REPOSITORY, and have dist/install.yaml and dist/mirror.yaml name it.
	$(PACKAGE) push --dist $(CURDIR)/dist $(REPOSITORY)

.PHONY: clean
clean: ## Remove what the other targets built here; the caches outside the tree stay.
	rm -rf bin dist coverage.out
