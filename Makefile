# Every target installs what it needs. `make` alone lists the targets.
.DEFAULT_GOAL := help
PREFIX ?= /usr/local
.PHONY: help setup demo demo-clean build install docs memory-curves dram-judge test torture lint fuzz fuzz-long bench bench-live bench-daemon bench-lab live-trial sources adaptation score score-quick lab-setup lab-test lab-neoprof lab-programs alloc-programs hw-test hw-test-quick hw-library hw-synth pace streams edit edit-loop growth isotherm-policy isotherm-ablation jenga-figures package-build deb static image package-test wheel python-test bench-python clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## Install what demo and tests need (apt, and a Python environment in build/)
	@scripts/setup.sh all

build: ## Build the isotherm binary, the recorder's plugin, libisotherm.so and libisotherm_alloc.so in target/release
	@scripts/setup.sh demo
	cargo build --release -p isotherm -p isotherm-recorder-plugin -p isotherm-lab-plugin -p isotherm-preload -p isotherm-alloc

install: build ## Copy the binary and its libraries to PREFIX (/usr/local)
	install -D -t $(PREFIX)/bin target/release/isotherm
	install -D -t $(PREFIX)/lib target/release/libisotherm.so target/release/libisotherm_alloc.so
	install -D -t $(PREFIX)/lib/isotherm target/release/libisotherm_recorder_plugin.so target/release/libisotherm_lab_plugin.so

# Zig links against the symbols of an old glibc.
package-build:
	@scripts/setup.sh package
	PATH="$(CURDIR)/build/zig/bin:$$PATH" cargo-zigbuild zigbuild --release --target x86_64-unknown-linux-gnu.2.31 \
	-p isotherm -p isotherm-recorder-plugin -p isotherm-lab-plugin -p isotherm-preload -p isotherm-alloc

deb: package-build ## Build a package for Debian and Ubuntu in build/packages
	@scripts/package.sh deb

static: package-build ## Build a tarball that runs with glibc 2.31 or newer
	@scripts/package.sh static

image: package-build ## Build an OCI image for packaging/kubernetes.yaml
	@scripts/package.sh image

package-test: deb static image ## Install, run, upgrade and purge the packages in roots of Debian 11 and 12 (as root; five minutes)
	@scripts/package-test.sh

wheel: ## Build the Python package's wheel in build/wheels
	@scripts/setup.sh python
	@scripts/wheel.sh

python-test: setup ## Install the wheel in a fresh environment, run the README's example and the package's tests
	@scripts/python-test.sh

bench-python: wheel ## Measure the Python package beside the binary, and sweeps (ten minutes)
	cargo build --release -p isotherm
	build/python/bin/pip install --quiet --force-reinstall --no-deps build/wheels/*.whl
	@build/python/bin/python scripts/bench-python.py
	@build/python/bin/python scripts/bench-sweep.py

docs: setup ## Write the documents' tables of policies, workloads and machines from the registries
	ISOTHERM_WRITE_DOCS=1 cargo test -p isotherm --test cli documents

demo: build ## Record sqlite3 and sort, replay them for ten minutes, write reports to build/demo
	@scripts/demo.sh

demo-clean: ## Remove the demo's recording and report
	rm -rf build/demo

test: setup ## Format, lints, documents, every test, a short fuzz run
	@scripts/test.sh

torture: setup ## Fail every call once, kill the engine a thousand times, observe real programs (an hour and a half)
	ISOTHERM_TORTURE=all ISOTHERM_TORTURE_POINTS=$${ISOTHERM_TORTURE_POINTS:-all} ISOTHERM_TORTURE_KILLS=$${ISOTHERM_TORTURE_KILLS:-1000} \
	cargo test -p isotherm --test torture -- --nocapture --test-threads=1
	RECORD_FAULTS=all cargo test -p isotherm --test cli record_faults -- --nocapture

lint: setup ## Format, lints and documents only
	@scripts/lint.sh

fuzz: setup ## Fuzz every parser of foreign bytes (FUZZ_SECONDS=30 each, two at a time)
	@scripts/fuzz.sh

fuzz-long: setup ## The same for an hour each (seven hours)
	@FUZZ_SECONDS=$${FUZZ_SECONDS:-3600} scripts/fuzz.sh

bench: ## Measure what SPECIFICATION.md promises
	@scripts/setup.sh bench
	cargo bench --workspace --bench '*'

bench-live: setup ## Measure what `isotherm run` costs the planted program and redis (LIVE="--pairs 7"; ten minutes)
	cargo build --release -p isotherm -p isotherm-preload
	cargo build --release -p isotherm-linux --example target
	@python3 scripts/bench-live.py $(LIVE)

bench-daemon: setup ## Measure what the daemon costs beside 50 idle programs and 10 busy ones (two minutes)
	cargo build --release -p isotherm
	cargo build --release -p isotherm --example live-target
	@python3 scripts/bench-daemon.py $(DAEMON)

bench-lab: setup lab-setup ## Measure the accesses a second that the lab counts, guests side by side, and snapshots (BENCH="--against PLUGIN"; 15 minutes)
	cargo build --release -p isotherm -p isotherm-lab-plugin
	cargo build --release -p isotherm --example live-target
	@python3 scripts/bench-lab.py $(BENCH)

edit: ## Build a policy of the tree alone, as a library that runs beside what is built: make edit POLICY=lru (seconds)
	ISOTHERM_EDIT=$(or $(POLICY),isotherm) cargo build -p isotherm-policies --example edited
	@echo 'isotherm simulate --policy target/debug/examples/libedited.so,$(or $(POLICY),isotherm) ...'

edit-loop: ## Measure from a changed line of a policy to its simulation, in the tree and out of it (a minute)
	cargo build -p isotherm
	@scripts/edit-loop.py

live-trial: setup ## Run one server again and again and hold the figures against each other and its own counts (25 minutes)
	cargo build --release -p isotherm -p isotherm-preload
	cargo build --release -p isotherm --example live-target
	@python3 scripts/live-trial.py $(TRIAL)

sources: setup ## Measure what each access source costs and finds, of 4 GiB; --write lets sessions choose by it (SOURCES="--write"; 20 minutes)
	cargo build --release -p isotherm -p isotherm-preload
	cargo build --release -p isotherm --example live-target
	@python3 scripts/sources.py $(SOURCES)

streams: ## Check that every workload's accesses at its defaults are, to the byte, what they were (some minutes)
	cargo test --release -p isotherm-workloads --test streams -- --include-ignored

pace: setup ## Measure the workloads' pace beside their sources, and which instructions these ask for (15 minutes)
	cargo run --release -p isotherm-score --example pace -- $(WORKLOADS)

adaptation: build ## Measure how long policies need after a change of the hot set (HybridTier, Table 3; two minutes)
	@python3 scripts/adaptation.py --binary target/release/isotherm

growth: ## Measure how time and memory grow with misses and memory, into docs/generated/growth.md (GROWTH="--quick"; an hour)
	@mkdir -p build
	cargo build --release -p isotherm -p isotherm-recorder-plugin
	cargo build --release -p isotherm-workloads --example synthetic
	@scripts/growth.py --binary target/release/isotherm --synthetic target/release/examples/synthetic $(GROWTH)

isotherm-policy: build ## Compare our own policy with the others on both halves of the inputs (an hour)
	@python3 scripts/isotherm-policy.py dev
	@python3 scripts/isotherm-policy.py held

isotherm-ablation: build ## Switch off each mechanism of our own policy on the same inputs (40 minutes)
	@scripts/isotherm-ablation.py build
	@scripts/isotherm-ablation.py run

jenga-figures: build ## Draw Jenga's figures on grouping, cooling and depth into docs/papers/jenga (half an hour)
	@test -d build/figures || { python3 -m venv build/figures && build/figures/bin/pip install -q -r scripts/requirements-figures.txt; }
	@build/figures/bin/python scripts/jenga-figures.py

memory-curves: ## Draw the simulated curves of memory beside the measured ones into docs/pictures (seconds)
	@mkdir -p build
	cargo run --release -p isotherm-machine --example curves > build/memory-curves.csv
	@python3 scripts/memory-curves.py build/memory-curves.csv

dram-judge: ## Compare the modelled DDR4 with DRAMsim3 on the same stream (cmake, g++; three minutes)
	@scripts/dram-judge.sh

score: build ## Run the papers' comparisons, write docs/generated/scoreboard.md and .json, build/scoreboard.html
	@mkdir -p build
	target/release/isotherm score --report build/scoreboard.html

score-quick: build ## The same in minutes, written to build/score-quick
	@mkdir -p build/score-quick
	target/release/isotherm score --quick --output build/score-quick --report build/score-quick/scoreboard.html

lab-setup: ## Fetch Debian's kernel and QEMU for `isotherm lab` into a cache folder (nothing is installed)
	@scripts/lab-setup.sh

lab-test: setup lab-setup ## Everything that is tested in the lab's virtual machine (at most 15 minutes)
	@scripts/lab-test.sh

lab-neoprof: setup lab-setup ## NeoMem with a NeoProf in the guest, simulated cycle by cycle (five minutes)
	@scripts/lab-test.sh --neoprof

lab-programs: setup ## Real programs in the lab, as outside, and the table of docs/generated/lab-programs.md (half an hour)
	@scripts/lab-programs.sh

alloc-programs: setup ## Real programs with and without libisotherm_alloc.so, stress, valgrind, and the table of docs/reference/alloc.md (half an hour)
	@scripts/alloc-programs.sh

hw-test: ## Verify the NeoProf hardware: lint, a bench for each unit, 50M random accesses against the model, mutations
	@scripts/hw-test.sh all

hw-test-quick: ## The same with 2M accesses and without mutations, as in make test
	@scripts/hw-test.sh quick

hw-library: ## Build the simulated NeoProf for the lab's machine neoprof-rtl (verilator; two minutes)
	@scripts/hw-setup.sh test
	CARGO_TARGET_DIR=$${CARGO_TARGET_DIR:-$(CURDIR)/target}/hw cargo build --release --lib --manifest-path hardware/neoprof/verilated/Cargo.toml

hw-synth: ## Synthesize, place and route the NeoProf hardware: sizes and clock rates (six minutes of CPU time)
	@scripts/hw-setup.sh synth
	@build/neoprof/venv/bin/python hardware/neoprof/synth.py

clean: ## Remove everything that was built
	cargo clean
	rm -rf build dram-judge/target fuzz/target fuzz/corpus fuzz/artifacts hardware/neoprof/verilated/target
