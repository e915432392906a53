# Everything a person or CI does with this repository. Needs Go and make;
# what else is missing leads to skipped tests that say so.

GO      ?= go
PARALLEL ?= 2
BIN     := bin
SHOTS   ?= $(BIN)/shots

# Long forms of tests, for prove-N. Lower them for a look. FIRST is the seed of the first simulated history.
RESTARTS ?= 1000
CUTS     ?= 400
ROUNDS   ?= 20
KILLS    ?= 500
SEED     ?= 0
CHECKS   ?= 5000
RULES    ?= 20
FUZZ     ?= 60s
HISTORIES ?= 300
COVERED ?= 80
FIRST    ?= 1
TIME     ?= 60s
BUSY     ?= 10m

.PHONY: help build demo test browser lint rules rules-all fuzz mutants coverage model chaos prove-1 prove-3 prove-4 prove-7 prove-hang prove-tui harness harness-install harness-newest bench cross docs dist clean

help:
	@echo 'make build     bin/muster'
	@echo 'make demo      three nodes on this machine, one of them killed, under a minute'
	@echo 'make test      format, vet, staticcheck, all tests; ends with what was skipped and why'
	@echo 'make browser   the page in Chromium against real nodes; pictures in $(SHOTS)'
	@echo 'make rules     breaks the product in $(RULES) ways that testdata/rules names, and shows the test that sees each'
	@echo 'make rules-all breaks it in every way that is named there, many in one build'
	@echo 'make mutants   applies each patch of testdata/mutants to a copy of the tree and shows the test that sees it'
	@echo 'make coverage  what the simulation alone executes of board, raftstore and scheduler, and which functions it never does; at least $(COVERED) %'
	@echo 'make fuzz      $(FUZZ) of hostile input for each fuzz target of what reads from the network or from a person'
	@echo 'make model     the long search over contact, lease, orders and keepers'
	@echo 'make prove-1   the long proofs: kill loop, power cuts, $(ROUNDS) rounds of a fleet with kills'
	@echo 'make prove-3   $(CHECKS) random fleets under caps of every kind, and $(ROUNDS) rounds of three real nodes'
	@echo 'make prove-4   $(KILLS) kills of nodes and keepers at points of their work'
	@echo 'make prove-7   $(HISTORIES) simulated histories from seed $(FIRST) on (a line of testdata/proof.jsonl); $(BUSY) without an election on busy cores'
	@echo 'make prove-hang  $(ROUNDS) times the leader'"'"'s disk hangs: how soon others answer (root, FUSE)'
	@echo 'make chaos     $(TIME) of faults on five real nodes, by SEED (0 takes one and prints it); adds a line to testdata/proof.jsonl'
	@echo 'make prove-tui a day of a user at the board in a terminal, driven through tmux'
	@echo 'make harness   the real agent programs (npm): presets against their options, whole cards against a fake model'
	@echo 'make harness-newest   what changed in the newest versions of the agent programs'
	@echo 'make bench     paired benchmarks with their baselines'
	@echo 'make docs      the pages of docs/reference, from the program itself'
	@echo 'make dist      dist/: tar.gz for linux and darwin, packages for Debian, checksums (VERSION=v1.2.3)'
	@echo 'make cross     linux and darwin, amd64 and arm64'

build:
	$(GO) build -o $(BIN)/muster ./cmd/muster

demo: build
	$(BIN)/muster demo

lint:
	@bad=$$(gofmt -l board mesh raftstore scheduler launcher cmd 2>/dev/null); if [ -n "$$bad" ]; then echo "not gofmt'd:"; echo "$$bad"; exit 1; fi
	$(GO) vet ./...
	$(GO) tool staticcheck ./...

test: lint
	$(GO) vet -tags failpoint ./launcher
	$(GO) run ./cmd/skips $(SKIPS) -- -tags failpoint -timeout=6m -run 'EveryPoint|Kills' ./launcher
	$(GO) run ./cmd/skips $(SKIPS) -- -shuffle=on -timeout=6m -p $(PARALLEL) ./...

# A stage of its own: it needs a browser, and axe-core from npm's registry.
browser:
	$(GO) run ./cmd/skips $(SKIPS) -- -timeout=15m ./cmd/muster/browser -browser -shots=$(abspath $(SHOTS))

rules:
	$(GO) run ./cmd/rules -n $(RULES) -seed $(SEED)

rules-all:
	$(GO) run ./cmd/rules -all -together -limit 10m

mutants:
	$(GO) run ./cmd/rules -mutants testdata/mutants -limit 10m

# Of the three rooms without what the simulation puts in the place of a machine (logstore, raftstoretest) and without what only looks at
# workflows (chart, scenario): each has its own tests.
coverage:
	@mkdir -p $(BIN)
	$(GO) test ./cmd/muster/sim -run TestFleetHistories -wide -histories=$(shell [ $(HISTORIES) -lt 60 ] && echo $(HISTORIES) || echo 60) -seed=$(FIRST) -timeout=2h -coverprofile=$(BIN)/sim.cover \
		-coverpkg=./board,./board/lease,./board/rule,./board/workflow,./raftstore,./scheduler
	@$(GO) tool cover -func=$(BIN)/sim.cover | awk '$$3 == "0.0%" {print "never executed: " $$1 " " $$2} $$1 == "total:" {all = $$3 + 0} \
		END {printf "coverage of the simulation alone: %.1f %%, wanted: $(COVERED)\n", all; exit all < $(COVERED)}'

# Seeds, and what was found, are in the packages' testdata/fuzz: make test plays them all.
fuzz:
	@grep -rn --include='*_test.go' '^func Fuzz' . | sed -E 's#^\./(.*)/[^/]*_test\.go:[0-9]+:func (Fuzz[A-Za-z0-9_]*)\(.*#\1 \2#' | sort -u | while read pkg fn; do \
		echo "fuzz $$pkg $$fn"; \
		$(GO) test ./$$pkg -run '^$$' -fuzz "^$$fn$$" -fuzztime $(FUZZ) || exit 1; \
	done

model:
	$(GO) test ./board/lease -run TestModel -model.long -v -timeout=60m

prove-1:
	@echo "prove-1: commit $$(git rev-parse HEAD 2>/dev/null || echo unknown), seed $(SEED) (0: each test prints the one it takes)"
	$(GO) test ./raftstore/logstore -run 'Kill|Power' -kill.disk -kill.restarts=$(RESTARTS) -power.cuts=$(CUTS) -power.every -v -timeout=3h
	$(GO) test ./cmd/muster/e2e -rounds=$(ROUNDS) -seed=$(SEED) -v -timeout=3h

prove-3:
	@echo "prove-3: commit $$(git rev-parse HEAD 2>/dev/null || echo unknown), seed $(SEED) (0: each test prints the one it takes)"
	$(GO) test ./scheduler -run 'TestCapsHold|TestDryRunIsTheNextRound|TestLoopMissesNothing' -rapid.checks=$(CHECKS) -rapid.seed=$(SEED) -v -timeout=6h
	$(GO) test ./cmd/muster/e2e -run 'TestCheckCaps|TestThreeNodesKeepTheirCaps' -rounds=$(ROUNDS) -seed=$(SEED) -v -timeout=3h

prove-4:
	@echo "prove-4: commit $$(git rev-parse HEAD 2>/dev/null || echo unknown), seed $(SEED) (0: each test prints the one it takes)"
	$(GO) test -tags failpoint ./launcher -run 'EveryPoint|Kills' -kills=$(KILLS) -kills.seed=$(SEED) -v -timeout=3h

prove-hang:
	$(GO) test ./cmd/muster/e2e -run TestLeadersDiskHangs -rounds=$(ROUNDS) -v -timeout=2h

prove-tui:
	$(GO) test ./cmd/muster/e2e -run TestADayAtTheTerminalsBoard -day -v

harness-install:
	$(GO) run ./cmd/harness install

harness: harness-install
	$(GO) run ./cmd/skips $(SKIPS) -- -timeout=10m ./launcher/fakemodel ./launcher/harnesstest
	$(GO) run ./cmd/skips $(SKIPS) -- -timeout=20m -run 'TestReal' ./cmd/muster/e2e -agents

harness-newest:
	$(GO) run ./cmd/harness newest

prove-7:
	$(GO) test ./cmd/muster/sim -run TestFleetHistories -histories=$(HISTORIES) -seed=$(FIRST) -proof=$(CURDIR)/testdata/proof.jsonl -commit=$$(git rev-parse HEAD 2>/dev/null || echo unknown) -v -timeout=6h
	$(GO) test ./cmd/muster/e2e -run TestNoElectionWithoutCause -elections=$(BUSY) -v -timeout=3h

chaos:
	$(GO) test ./cmd/muster/e2e -run 'TestChaos$$' -chaos=$(TIME) -seed=$(SEED) -proof=$(CURDIR)/testdata/proof.jsonl -commit=$$(git rev-parse HEAD 2>/dev/null || echo unknown) -v -timeout=2h

bench: build
	$(BIN)/muster bench

cross:
	@for os in linux darwin; do for arch in amd64 arm64; do \
		echo "build $$os/$$arch"; \
		CGO_ENABLED=0 GOOS=$$os GOARCH=$$arch $(GO) build -o /dev/null ./... || exit 1; \
	done; done
	@echo "vet darwin/arm64"; CGO_ENABLED=0 GOOS=darwin GOARCH=arm64 $(GO) vet $$($(GO) list ./... | grep -v /browser$$) # the browser's protocol alone takes a minute to compile

docs:
	$(GO) test ./cmd/muster/cli -run TestReferenceIsOfThisProgram -update
	$(GO) test ./cmd/muster/api -run TestOpenAPIFile -openapi.update

dist:
	$(GO) run ./cmd/dist -version "$(VERSION)"

clean:
	rm -rf $(BIN) dist
