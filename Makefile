# The one door. Every target sets up what it needs: an own .venv with everything from PyPI, the native half in build/dev.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PY := $(BIN)/python
BUILD := build/dev
VERSION := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)
STAMP := $(VENV)/ready-$(VERSION)
# Objects that are compiled for one build are there for the others: wheels, other interpreters.
ONCE := $(CURDIR)/$(PY);-S;-E;$(CURDIR)/tools/compile_once.py
NATIVE_SOURCES := $(shell find native -name '*.[ch]' -o -name '*.[ch]pp' -o -name '*.cuh' 2>/dev/null)
ARGS ?=
# Set by CI: warnings of the compiler are errors. Off for users, whose compiler may be newer than ours.
WERROR ?= OFF
# Files of integration tests that run side by side: most of their time they wait for programs. 0: one after the other, in one process.
JOBS ?= 4

.PHONY: help demo looks ready venv test test-all check recording-tests compilers torture lint format tidy types native web web-check unit peers test-dsl upstream-tests cupti-abi torch-abi docs docs-check site bench judge gpu gpu-probe gpu-pack wheels release-check upgrade clean
.DEFAULT_GOAL := help

help: ## show this list
	@grep -E '^[a-z-]+:.*## ' Makefile | sed -E 's/^([a-z-]+):.*## /\1\t/' | awk -F '\t' '{ printf "  make %-14s %s\n", $$1, $$2 }'
	@echo "  PYTHON=python3.12 selects the interpreter; ARGS='-k name' goes to pytest or the benchmarks."

$(STAMP): pyproject.toml tools/requirements.lock tools/preflight.sh tools/setup.py
	@sh tools/preflight.sh "$(PYTHON)"
	@"$(PYTHON)" tools/setup.py $(VENV)
	@rm -f $(VENV)/ready-* && touch $@

$(BUILD)/build.ninja: $(STAMP) CMakeLists.txt
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/cmake -S . -B $(BUILD) -G Ninja -UWARPLENS_PARTS -DPython_EXECUTABLE="$(CURDIR)/$(PY)" -DWARPLENS_WERROR=$(WERROR) \
	  -DCMAKE_C_COMPILER_LAUNCHER="$(ONCE)" -DCMAKE_CXX_COMPILER_LAUNCHER="$(ONCE)" \
	  -DCMAKE_INSTALL_MESSAGE=LAZY --log-level=WARNING && touch $@

native: $(BUILD)/build.ninja ## build the agent and the libraries into src/
	@MAKEFLAGS= $(BIN)/cmake --build $(BUILD) -- --quiet
	@$(BIN)/cmake --install $(BUILD) --prefix src >$(BUILD)/install.log
	@$(PY) tools/web.py bundle --fetch
	@$(PY) -m compileall -q src/warplens

web: $(STAMP) ## build the page of `warplens view` into src/ (Node.js of the machine, else from PyPI)
	@$(PY) tools/web.py build --fetch

web-check: $(STAMP) ## types, lint and tests of the page; left out where there is no Node.js
	@$(PY) tools/web.py check

demo: native ## profile a training program and show where its time went
	@PATH="$(CURDIR)/$(BIN):$$PATH" sh tools/demo.sh

venv: $(STAMP)

# What looks at the text, beside the build: half of the time they wait, or keep one core busy.
looks: lint types docs-check web-check
ready: $(STAMP)
	@$(MAKE) --no-print-directory --output-sync -j3 looks native

test: ready ## everything: check, slow unit tests, integration tests
	@JOBS=$(JOBS) $(PY) tools/run_tests.py unit integration -- $(ARGS)

test-all: ready ## all of what `test` shows by example: every CPython that is here, whole sanitizer suites, long fuzzing
	@JOBS=$(JOBS) WARPLENS_THOROUGH=1 $(PY) tools/run_tests.py all-unit all-integration -- $(ARGS)

check: ready ## what to run before a commit: style, layers, types, fast tests
	@$(PY) tools/run_tests.py check -- $(ARGS)

lint: $(STAMP) ## format, lint, prose, layers (Python and C++)
	@$(BIN)/ruff format --check --quiet . || { echo "run: make format"; exit 1; }
	@$(BIN)/ruff check --quiet .
	@$(if $(NATIVE_SOURCES),$(BIN)/clang-format --dry-run -Werror $(NATIVE_SOURCES) || { echo "run: make format"; exit 1; })
	@$(PY) tools/check_includes.py
	@$(PY) tools/check_words.py
	@mkdir -p build; PYTHONPATH=src $(BIN)/lint-imports --no-cache >build/layers.log 2>&1 || { cat build/layers.log; exit 1; }

format: $(STAMP) ## rewrite what `lint` would complain about
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(PY) tools/wrap_markdown.py
	$(if $(NATIVE_SOURCES),$(BIN)/clang-format -i $(NATIVE_SOURCES))

tidy: native ## clang-tidy over the native half (slow; not part of check)
	@$(BIN)/clang-tidy -p $(BUILD) --quiet $(filter-out native/tests/%,$(filter %.cpp,$(NATIVE_SOURCES)))

types: $(STAMP) ## mypy --strict
	@$(BIN)/mypy

unit: native ## unit and conformance tests, without slow ones
	@$(PY) tools/run_tests.py check -- $(ARGS)

recording-tests: ## tests of recording with CPythons of Debian's unstable and free-threaded ones (ARGS="here --only 3.12,3.13")
	@"$(PYTHON)" tools/recording_tests.py $(ARGS)

compilers: native ## the native half with each compiler here, and with those of Debian's unstable
	@$(PY) tools/compilers.py --werror $(ARGS)
	@$(PY) tools/compilers.py --werror --unstable $(ARGS)

torture: native ## kill, fill, signal and delete at random moments (ARGS="--rounds 500 --seed N")
	@PYTHONPATH=src:. $(PY) -m tests.torture $(ARGS)

peers: $(STAMP) ## other tools and libraries for `bench` and `test`, into build/peers (several GB; optional)
	@$(PY) tools/peers.py $(ARGS)

test-dsl: native ## environments of the in-kernel languages into build/dsl, then their tests (GROUPS=all: older releases too)
	@$(PY) tools/dsl.py $(GROUPS)
	@$(PY) -m pytest -q -n $(JOBS) --dist loadfile tests/dsl $(ARGS)

cupti-abi: $(STAMP) ## compare our declarations with CUPTI's own headers (downloads its wheels; not part of test)
	@$(PY) tools/cupti_abi.py $(ARGS)

torch-abi: $(STAMP) ## compare our declarations with PyTorch's headers, and write the table of versions (downloads its wheels; not part of test)
	@$(PY) tools/torch_abi.py $(ARGS)

upstream-tests: native ## PyPI nvtx's own tests against us (downloads its sdist; not part of test)
	@$(PY) tools/upstream_tests.py $(ARGS)

docs: $(STAMP) ## write the generated parts of the pages: tested Pythons, figures of the benchmarks
	@$(PY) tools/gen_docs.py
	@PYTHONPATH=src $(PY) benchmarks/run.py --page

docs-check: $(STAMP)
	@$(PY) tools/gen_docs.py --check

site: native ## build the documentation site into site/ (records its live examples, draws its screenshots; a broken link fails)
	@$(PY) tools/docs_site.py --pictures

bench: native ## measure, write docs/performance.md and the pages below; fails when a budget is missed
	@$(PY) benchmarks/run.py $(ARGS)

judge: native ## ask all rules about the reports of tests/judged: how much of what they say is true (ARGS=--page writes docs/dev/judged.md)
	@$(PY) tools/judge.py $(ARGS)

gpu: ## what needs a CUDA device, with this machine's own Python packages and no network (ARGS=--list, WHEELS=folder for more)
	@"$(PYTHON)" tools/gpu.py --wheels "$(WHEELS)" $(ARGS)

gpu-probe: ## how the CUPTI of this machine behaves, before warplens runs on it: half a minute, one screen
	@"$(PYTHON)" tools/gpu_probe.py $(ARGS)

gpu-pack: native ## what a machine with a GPU lacks, into build/gpu: libraries, wheels, kernels, a script (ARGS="--python 3.12")
	@$(PY) tools/gpu_pack.py $(ARGS)

wheels: $(STAMP) ## sdist and wheels into dist/, tried (ARGS="--headers 3.14=FOLDER" adds a Python)
	@$(PY) tools/wheels.py $(ARGS)

release-check: $(STAMP) ## what keeps dist/ from being a release, offline (docs/dev/releasing.md)
	@$(PY) tools/release_check.py

upgrade: $(STAMP) ## the newest versions of all packages of .venv into tools/requirements.lock (then: make test)
	@$(PY) tools/upgrade.py

clean: ## remove what was built (not .venv)
	rm -rf build dist site src/warplens/viewer/_bundle src/warplens/_lib src/warplens/nvtx/_binding*.so
