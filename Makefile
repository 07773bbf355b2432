# The front door. `make help` lists what it can do; CMake and Ninja do the work.
BUILD ?= build
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)

.PHONY: all demo test check-prep check-onnx check-compat check-faults perf install clean help setup-build setup-run setup-models setup-test setup-perf
.DEFAULT_GOAL := all

all: setup-build build-release ## build ./build/telltale

demo: setup-run build-program ## serve a real model badly, then well, and see why
	@./scripts/demo

test: setup-test ## build and run every test
	@./scripts/run_tests

check-prep: setup-test build-release ## every comparison of pre- and postprocessing, in full
	@./scripts/check_prep --build $(BUILD)

check-onnx: setup-test build-release ## every node test of ONNX through the server
	@./scripts/check_onnx --build $(BUILD)

check-compat: setup-test build-release ## every client that is installed, against the server
	@./scripts/check_compat --build $(BUILD)

check-faults: setup-test build-release ## everything that tries to bring the server down
	@./scripts/check_faults --build $(BUILD)

perf: setup-perf build-release ## run every benchmark of perf/
	@./scripts/run_perf

install: setup-build build-release ## install below PREFIX (and DESTDIR)
	@cmake --install $(BUILD) --prefix $(PREFIX)

clean: ## remove what was built (.deps stays)
	rm -rf build build-*

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12 | sed 's/^/  make /'

setup-build:
	@./scripts/setup build
setup-run:
	@./scripts/setup run
setup-test:
	@./scripts/setup test
setup-models:
	@./scripts/setup models
setup-perf:
	@./scripts/setup perf

# The program alone: no tests, no benchmarks.
.PHONY: build-program
build-program:
	@test -e $(BUILD)/build.ninja || cmake -S . -B $(BUILD) -G Ninja -DCMAKE_INSTALL_PREFIX=$(PREFIX) $(CMAKE_FLAGS) >/dev/null
	@cmake --build $(BUILD) -j $(JOBS) --target telltale

.PHONY: build-release
build-release:
	@test -e $(BUILD)/build.ninja || cmake -S . -B $(BUILD) -G Ninja -DCMAKE_INSTALL_PREFIX=$(PREFIX) $(CMAKE_FLAGS) >/dev/null
	@cmake --build $(BUILD) -j $(JOBS)
