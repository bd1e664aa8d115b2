# Everything a newcomer needs: `make demo` and `make test`.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
CARGO ?= cargo
STATEPLANE := target/release/stateplane
SUDO := $(shell [ "$$(id -u)" = 0 ] || command -v sudo)

# Seconds that `make soak` gives each fuzz target.
FUZZ_SECONDS ?= 300

# Where `make install` puts what, below DESTDIR.
PREFIX ?= /usr/local
DESTDIR ?=

# Commands that the demo and the tests run, with the Debian packages that bring them.
TOOLS = ip:iproute2 ethtool:ethtool iperf3:iperf3

FUZZ_TARGETS = $(basename $(notdir $(wildcard fuzz/fuzz_targets/*.rs)))

# Crates that `make quick` looks at: those with changes that are not committed.
CRATE ?= $(sort $(shell for manifest in $$(find crates -name Cargo.toml); do \
  folder=$${manifest%/Cargo.toml}; \
  [ -z "$$(git status --porcelain -- $$folder)" ] || basename $$folder; done))

# P4 programs and applications with changes that are not committed.
P4_CHANGED = $(shell git status --porcelain -- p4 apps)

# The test that the P4 programs are formatted: seconds, where the whole `make test` takes an hour to come to it.
FORMAT_P4 = $(CARGO) test --quiet --package stateplane-syntax --lib format::tests::the_programs_we_ship

# Crates of whose tests `make quick` runs only those beside the code: worlds, processes and
# namespaces take minutes.
LARGE = bench coordination-sim eval fuzz generate host lab multicast-sim native sim sync-sim

# Crates whose tests read the P4 programs that come with Stateplane: `make quick` runs them if one has changed.
P4_READERS = apps hazards library p4info protect stf synchronise

# Scenarios of the coordination service's simulation, of which `make soak` runs 1,000 seeds each.
COORDINATION = quiet lossy failover zombies restarts recovery clocks controller-restarts \
  full-tables small-ring last-numbers mixed chaos cut-members saturated watches sessions refounding lists

# Scenarios of sync's simulation, of which `make soak` runs 2,000 seeds each.
SYNC = quiet overload slow-sweep lossy storm exact restarts cuts snapshots writes staged mixed kinds kinds-mixed \
  kinds-writes kinds-staged continued continued-lossy continued-mixed standby standby-mixed

# Scenarios of multicast's simulation, of which `make soak` runs 1,000 seeds each.
MULTICAST = quiet lossy leaders two-leaders lost-memory exchanges receivers dying-senders \
  several-groups last-numbers small-window mixed store

# Crates with golden files.
GOLDEN = check hazards multicast-store p4info protect store synchronise syntax top trace wire

# Histories of coordination as JSON lines (docs/coordination-histories.md) that `make porcupine` judges.
HISTORIES ?=

# One part of several (PART=2/4), or those of some names (ONLY=lease,gate), of what `make mutants` runs.
PART ?=
ONLY ?=

.PHONY: help demo demo-coordination test quick goldens soak mutants models porcupine fuzz bench eval eval-netchain eval-p4mcast build install deb package-test setup rust tools peers lint clean

help:
	@echo 'make demo    build, then cut a switch from under live TCP connections and show the result'
	@echo 'make demo-coordination  a lock that survives killed switches, beside etcd'
	@echo 'make test    every check: format, lints, unit, simulation and namespace tests'
	@echo 'make quick   format, lints and tests of the crates with changes (CRATE="store wire" names them), and of those that read P4 programs if one has changed'
	@echo 'make goldens write golden files anew; look at the difference before you commit it'
	@echo 'make soak    the demo ten times, every application in the lab, many simulation seeds, 100 killed servers, generated programs, attacks, make package-test, make mutants, make models, make fuzz'
	@echo 'make mutants the code that keeps state broken rule by rule; a test has to object each time (PART=1/4, ONLY=lease,gate)'
	@echo 'make models  TLC on the TLA+ model of coordination, and on the model with rules left out (needs Maven and Java)'
	@echo 'make porcupine  Porcupine on histories of coordination (HISTORIES="a.jsonl b.jsonl"; needs Go)'
	@echo 'make fuzz    every fuzz target for FUZZ_SECONDS ($(FUZZ_SECONDS)) seconds'
	@echo 'make bench   committed benchmarks, results in target/bench'
	@echo 'make eval    the experiments of the RedPlane paper, tables and plots in target/eval (about an hour)'
	@echo 'make eval-netchain  those of the NetChain paper, beside etcd, ZooKeeper, Redis (an hour)'
	@echo 'make eval-p4mcast   that of the P4mCast poster, beside etcd and others that order messages (an hour)'
	@echo 'make build   the release binary, $(STATEPLANE)'
	@echo 'make install the binary, units of systemd, man pages, completions, examples (PREFIX=$(PREFIX), DESTDIR=)'
	@echo 'make deb     Debian packages of them, in target/package'
	@echo 'make package-test  the packages in a fresh Debian: first program, demo, purge (about five minutes)'
	@echo 'make setup   install what the demo and the tests need (Debian packages)'

# The demo makes network namespaces: as root, or in a user namespace where there is no sudo.
demo: build tools
	$(SUDO) $(STATEPLANE) lab demo

# etcd, with which it compares, is built with Go where none or an old one is installed.
demo-coordination: build tools
	$(SUDO) $(STATEPLANE) lab demo-coordination

test: rust tools peers lint
	@echo '== all tests, built first (from a clean clone half an hour); each is told when it ends'
	$(CARGO) test --workspace

quick: rust
	@[ -n "$(CRATE)$(P4_CHANGED)" ] || { echo 'no crate has changes: make quick CRATE="store wire"'; exit 2; }
	$(CARGO) fmt --all --check
	$(FORMAT_P4)
	$(if $(P4_CHANGED),$(CARGO) test --quiet $(P4_READERS:%=--package stateplane-%))
	$(if $(CRATE),$(CARGO) clippy $(CRATE:%=--package stateplane-%) --all-targets --quiet -- --deny warnings)
	$(if $(filter-out $(LARGE) cli,$(CRATE)),$(CARGO) test --quiet \
	  $(patsubst %,--package stateplane-%,$(filter-out $(LARGE) cli,$(CRATE))))
	$(if $(filter $(LARGE),$(CRATE)),$(CARGO) test --quiet --lib \
	  $(patsubst %,--package stateplane-%,$(filter $(LARGE),$(CRATE))))
	$(if $(filter cli,$(CRATE)),$(CARGO) test --quiet --bins --package stateplane-cli)
	$(CARGO) test --quiet --package stateplane-mutants

goldens: rust
	UPDATE_GOLDEN=1 $(CARGO) test --quiet $(GOLDEN:%=--package stateplane-%)
	UPDATE_GOLDEN=1 $(CARGO) test --quiet --package stateplane-cli --test reference
	git diff --stat

lint: rust
	@echo '== layout and lints of all crates (from a clean clone ten minutes)'
	$(CARGO) fmt --all --check
	$(FORMAT_P4)
	$(CARGO) clippy --workspace --all-targets -- --deny warnings

soak: build tools
	for run in 1 2 3 4 5 6 7 8 9 10; do \
	  echo "demo $$run of 10"; $(SUDO) $(STATEPLANE) lab demo; \
	done
	$(SUDO) $(STATEPLANE) lab run all
	$(SUDO) $(STATEPLANE) lab run all --faults server-stand-still,power-cut
	$(SUDO) $(STATEPLANE) lab run all --faults long-stand-still,server-long-stand-still --interval-ms 200 --phase-ms 6000
	$(SUDO) $(STATEPLANE) lab run view --faults kill,restart,kill,restart,kill,restart,kill
	$(SUDO) $(STATEPLANE) lab run coordination --kills 10
	$(SUDO) $(STATEPLANE) lab run coordination --runs 200
	$(SUDO) $(STATEPLANE) lab run multicast --kills 100
	$(SUDO) $(STATEPLANE) lab run multicast --kills 20 --several 0
	$(SUDO) $(STATEPLANE) lab run multicast --stops 20 --lanes 32
	$(SUDO) $(STATEPLANE) lab run multicast --runs 60 --seconds 20
	$(SUDO) $(STATEPLANE) lab run multicast --store --runs 60 --seconds 20
	for seed in $$(seq 1 200); do \
	  $(MAKE) --no-print-directory porcupine HISTORIES=target/lab/coordination/history-$$seed.jsonl || exit 1; \
	done
	$(STATEPLANE) sim --program counter --first-seed 100000 --seeds 5000
	$(STATEPLANE) sim --program nat --first-seed 100000 --seeds 5000
	$(STATEPLANE) sim --program model --scenario failing-stores --first-seed 100000 --seeds 5000
	$(STATEPLANE) sim --program model --scenario lossy-chains --first-seed 100000 --seeds 2000
	$(STATEPLANE) sim --program model --scenario moving-shards --first-seed 100000 --seeds 2000
	$(STATEPLANE) sim --program model --scenario power-cuts --first-seed 100000 --seeds 5000
	$(STATEPLANE) sim --program model --scenario cluster-power-cuts --first-seed 100000 --seeds 2000
	$(STATEPLANE) sim --program nat --scenario cluster-power-cuts --first-seed 100000 --seeds 1000
	$(STATEPLANE) sim --program model --scenario rotten-disks --first-seed 100000 --seeds 2000
	$(STATEPLANE) sim --program model --scenario failing-disks --first-seed 100000 --seeds 5000
	$(STATEPLANE) sim --program model --scenario cluster-failing-disks --first-seed 100000 --seeds 2000
	$(STATEPLANE) sim --program nat --scenario failing-stores --first-seed 100000 --seeds 2000
	$(STATEPLANE) sim --program nat --scenario port-churn --first-seed 100000 --seeds 240
	$(STATEPLANE) sim --program dependent-nat --first-seed 100000 --seeds 2000
	$(STATEPLANE) sim --program dependent-nat --scenario port-churn --first-seed 100000 --seeds 240
	for scenario in $(COORDINATION); do \
	  $(STATEPLANE) sim --program coordination --scenario $$scenario --first-seed 100000 --seeds 1000; \
	done
	for scenario in $(MULTICAST); do \
	  $(STATEPLANE) sim --program multicast --scenario $$scenario --first-seed 100000 --seeds 1000; \
	done
	for scenario in $(SYNC); do \
	  $(STATEPLANE) sim --program sync --scenario $$scenario --first-seed 100000 --seeds 2000; \
	done
	STATEPLANE_OBSERVED=5000 $(CARGO) test --release --quiet --package stateplane-observe --test walk
	STATEPLANE_KILLS=100 $(CARGO) test --release --quiet --package stateplane-cli --test cluster -- \
	  --nocapture any_server_may_be_killed
	STATEPLANE_DOCS=1 $(CARGO) test --release --quiet --package stateplane-cli --test docs
	$(CARGO) run --release --quiet --package stateplane-generate --example soak -- 100000 20000 500
	$(CARGO) run --release --quiet --package stateplane-generate --example semantics -- 1000000 100000
	$(CARGO) run --release --quiet --package stateplane-generate --example compare -- 100000 1000 10000
	STATEPLANE_ATTACKS=1000000 $(CARGO) test --release --quiet --package stateplane-host --test sealed attacks
	STATEPLANE_ATTACKS=1000000 STATEPLANE_SESSIONS=100000 $(CARGO) test --release --quiet \
	  --package stateplane-coordination-sim --lib
	$(MAKE) package-test
	$(MAKE) mutants
	$(MAKE) models
	$(MAKE) fuzz

models:
	docs/models/coordination/run.sh

# The judge is a Go module; its one dependency comes through the Go module proxy.
porcupine:
	@command -v go >/dev/null || { echo 'stateplane: no Go (Debian: apt-get install golang-go); nothing was judged'; exit 1; }
	@[ -n "$(HISTORIES)" ] || { echo 'stateplane: name files of JSON lines: make porcupine HISTORIES="a.jsonl b.jsonl"'; exit 2; }
	@mkdir -p target
	@cd crates/history/porcupine && go build -o $(CURDIR)/target/porcupine-judge . \
	  || { echo 'stateplane: the judge cannot be built (is the module proxy reachable?); nothing was judged'; exit 1; }
	target/porcupine-judge $(HISTORIES)

mutants: rust
	$(CARGO) run --release --quiet --package stateplane-mutants -- \
	  $(if $(PART),--part $(PART)) $(if $(ONLY),--only $(ONLY))

# With coverage where nightly Rust and cargo-fuzz are installed, else with inputs damaged at random.
fuzz: rust
	@if $(CARGO) +nightly fuzz --version >/dev/null 2>&1; then \
	  $(CARGO) run --release --quiet --package stateplane-fuzz --example seeds >/dev/null; \
	  for target in $$($(CARGO) +nightly fuzz list); do \
	    echo "fuzz target $$target"; \
	    $(CARGO) +nightly fuzz run $$target -- -max_total_time=$(FUZZ_SECONDS) -timeout=10 \
	      -rss_limit_mb=4096 -verbosity=0 -dict=fuzz/dictionaries/$$target; \
	  done; \
	else \
	  echo 'no nightly Rust with cargo-fuzz (rustup toolchain install nightly; cargo install cargo-fuzz):'; \
	  echo 'the fuzz targets run without coverage'; \
	  for target in $(FUZZ_TARGETS); do \
	    $(CARGO) run --release --quiet --package stateplane-fuzz --example mutate -- $$target 1 1000 200; \
	  done; \
	fi

# The ports are measured beside Linux's own NAT; replication beside Redis where it can be installed.
bench: TOOLS += nft:nftables
bench: rust tools
	@$(MAKE) --no-print-directory tools TOOLS='redis-server:redis-server' \
	  || echo 'stateplane: the rows that compare with Redis are left out'
	$(CARGO) bench --package stateplane-bench --quiet

# Linux's NAT with its connections in sync is measured beside ours.
eval: TOOLS += nft:nftables conntrack:conntrack conntrackd:conntrackd keepalived:keepalived
eval: build tools
	$(SUDO) $(STATEPLANE) eval redplane

# The coordination service is measured beside Redis and ZooKeeper where these can be installed, and
# beside etcd, which is built with Go where none or an old one is installed.
eval-netchain: TOOLS += nft:nftables
eval-netchain: build tools
	@$(MAKE) --no-print-directory tools TOOLS='redis-server:redis-server' \
	  || echo 'stateplane: the rows that compare with Redis are left out'
	@[ -e /usr/share/java/zookeeper.jar ] \
	  || $(MAKE) --no-print-directory tools TOOLS='zkServer.sh:zookeeper' \
	  || echo 'stateplane: the rows that compare with ZooKeeper are left out'
	$(SUDO) $(STATEPLANE) eval netchain

# Multicast is measured beside etcd, which is built with Go where none or an old one is installed.
eval-p4mcast: TOOLS += nft:nftables
eval-p4mcast: build tools
	$(SUDO) $(STATEPLANE) eval p4mcast

build: rust
	$(CARGO) build --release --package stateplane-cli

# Networks are cut and controllers elected by tests where these can be installed.
peers:
	@$(MAKE) --no-print-directory tools TOOLS='nft:nftables etcd:etcd-server' \
	  || echo 'stateplane: the tests that need them say so and do not run'

install: build
	packaging/install.sh $(STATEPLANE) $(PREFIX) $(DESTDIR)

deb: build
	packaging/deb.sh $(STATEPLANE) target/package

package-test: deb
	@$(MAKE) --no-print-directory tools TOOLS='mmdebstrap:mmdebstrap' \
	  || echo 'stateplane: the packages are not tried in a fresh root'
	$(SUDO) packaging/test.sh target/package

setup: rust tools

rust:
	@command -v $(CARGO) >/dev/null || { \
	  echo 'stateplane: no Rust toolchain. Install rustup (Debian: apt-get install rustup && rustup default stable;'; \
	  echo 'elsewhere: https://rustup.rs), then run make again.'; exit 1; }

tools:
	@missing=''; \
	for tool in $(TOOLS); do \
	  PATH="$$PATH:/usr/sbin:/sbin" command -v "$${tool%:*}" >/dev/null || missing="$$missing $${tool#*:}"; \
	done; \
	[ -z "$$missing" ] && exit 0; \
	command -v apt-get >/dev/null || { echo "stateplane: install$$missing with your package manager"; exit 1; }; \
	echo "installing$$missing"; \
	$(SUDO) apt-get update -qq && $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $$missing >/dev/null \
	  || { echo "stateplane: could not install$$missing; install by hand and run make again"; exit 1; }

clean:
	$(CARGO) clean
