# A thin front over CMake, pytest and tools/*.sh. `make demo` and `make test` start from a bare machine.
PREFIX ?= /usr/local
PYTHON ?= python3
export PYTHON

.PHONY: help setup setup-demo setup-conformance build demo test test-all conformance conformance-programs bench lint tidy docs site formal install sources deb checksums wheel manifests clean

help:
	@echo "make demo             install what is needed, build, run a job plain and sealed on two nodes, compare"
	@echo "make test             install what is needed, build, run the tests (those that take long: make test-all)"
	@echo "make test-all         the same with the tests that take long (every point at which a rank can die, …)"
	@echo "make conformance      run programs that others wrote plain and sealed, write docs/conformance.md (two hours;"
	@echo "                      CONFORMANCE=\"hpcc lammps\" runs these suites alone)"
	@echo "make conformance-programs  5,200 random programs over four MPIs, plain against sealed (about an hour on two cores)"
	@echo "make build            build/release: bin/mpisec and its libraries"
	@echo "make install PREFIX=… install them (relocatable; DESTDIR=… for packagers)"
	@echo "make sources          dist/mpisec-…-sources.tar.xz: unpacked here, no build downloads anything"
	@echo "make deb              Debian packages in dist/deb, from a source package, without a network"
	@echo "make checksums        dist/SHA256SUMS of what is in dist"
	@echo "make wheel            dist/mpisec-….whl for pip: every Linux on x86-64 with glibc 2.28 or newer"
	@echo "make manifests        what kubeconform says of deploy/kubernetes (fetches it, kustomize and the operator's schema by go)"
	@echo "make bench            MPIsec, WireGuard and IPsec against plain MPI, with a report"
	@echo "make formal           install Verifpal and Spin, check the protocol's formal models and their broken variants"
	@echo "make site             the documentation as a web site in build/site (index.html), with a page for each command"
	@echo "make tidy             what clang-tidy finds in the C++ sources (minutes; only what changed is judged again; FILES=\"src/a.cpp\": these)"
	@echo "make lint | docs | clean"

setup:
	@tools/setup.sh test

setup-demo:
	@tools/setup.sh demo

setup-conformance:
	@tools/setup.sh conformance

build:
	@tools/build.sh release

demo: setup-demo
	@tools/demo.sh

test: setup
	@tools/test.sh

test-all: setup
	@MPISEC_LAB_TEST_ALL=1 FUZZ_SECONDS=$${FUZZ_SECONDS:-60} tools/test.sh

conformance: setup-conformance
	@tools/conformance.sh $(CONFORMANCE)
conformance-programs: setup build
	@PYTHONPATH=tests .deps/test-venv/bin/python -m programs all --programs 1300 -o docs/results/programs.json; \
	result=$$?; PYTHONPATH=tests .deps/test-venv/bin/python -m programs page && exit $$result

bench: setup
	@tools/bench.sh

lint:
	@tools/lint.sh

tidy:
	@tools/build.sh release programs
	@$(PYTHON) tools/tidy.py $(FILES)

docs:
	@tools/docs.sh

site:
	@tools/site.sh

formal:
	@tools/formal.sh

install:
	@tools/build.sh release programs
	DESTDIR=$(DESTDIR) cmake --install build/release --prefix $(PREFIX)

# Everything that is not in the tree, as one archive: with it unpacked here no build needs a network.
sources: setup-demo
	@tools/sources.sh

deb: setup-demo
	@tools/deb.sh

checksums:
	@cd dist && find . -type f ! -name 'SHA256SUMS*' ! -name notes.md -printf '%P\n' | LC_ALL=C sort | xargs -d '\n' sha256sum > SHA256SUMS && cat SHA256SUMS

wheel: setup-demo
	@tools/wheel.sh

manifests:
	@tools/venv.sh .deps/test-venv tests/requirements.txt
	@.deps/test-venv/bin/python tools/manifests.py

clean:
	rm -rf build
