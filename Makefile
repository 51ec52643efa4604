# SPDX-License-Identifier: Apache-2.0
# A thin front for Meson. The two commands a newcomer needs: `make run` and `make test`.
#   make           build build/rorqual (make release: build-release/rorqual, optimised)      make run      build and serve ./data in the foreground
#                  (make run DATA=/somewhere ARGS='--zk-port 12181 …': arguments of rorqual server)
#   make cluster   a cluster of three servers on this machine, with ZooKeeper, in the foreground (DATA=./data-cluster, SERVERS=3);
#                  STORE=ceph: on a Ceph on this machine
#   make install   build-release/rorqual, manual pages, completions and librorqual into PREFIX (/usr/local) below DESTDIR
#   make static    build-static/rorqual, without shared libraries
#   make deb       a Debian package in build-deb/       make rpm      an rpm in build-rpm/
#   make image     a container image in build-image/
#   make package-test  installs, uses, upgrades and removes the package, and runs the image
#   make pages     the status page and the page of rorqual design in headless Chromium, light and dark
#   make test      every test                    make unit     unit tests whose programs changed, checks of the sources (ALL=1: all)
#   make asan      C tests under Address- and UndefinedBehaviorSanitizer, built by clang
#   make tsan      C tests under ThreadSanitizer
#   make aarch64   unit tests of a cross build, under qemu-user
#   make fuzz      each fuzz target for FUZZ_SECONDS (default 60)
#   make fuzz-wire the structured fuzzer over the wire, against sanitized servers for SECONDS (default 3600)
#   make hbase-tests  HBase's own JUnit classes against build/rorqual
#   make snapshots-move   snapshots of Rorqual cloned by a real HBase, and the other way round
#   make snapshots-load SECONDS=3600   a snapshot every second beside writes, clones compared
#   make bench     the comparisons with a real HBase, into docs/benchmarks.md: make bench-rpc (our own
#                  generator, redis, floors; PARTS=get,put,… some) and make bench-java (PerformanceEvaluation)
#   make bench-engine   the engine alone against RocksDB, likewise
#   make bench-large    data larger than memory: Rorqual, HBase and RocksDB in 2 GB each, most of a day (SCALE=0.01, PARTS=load,get,…,
#                  PEERS=rorqual,…; bench/large/run says more)
#   make bench-library  librorqual against its goals: embedded beside the engine alone, SQLite, RocksDB; first answers; salted
#                  scans; HBASE=1: its client beside HBase's, and Python (SCALE=0.01, PARTS=embedded,…; bench/library/run says more)
#   make bench-apps     applications: events in rows or in columns, a Weibo; HBASE=1: a real HBase beside
#                  (HBASE_MOST=100000: with fewer events there; examples/README.md has the answer)
#   make bench-cache    the block cache's policy and others on traces of block accesses
#   make bench-cover    covers of areas by key ranges, against S2
#   make bench-admin    snapshots, tables, 10,000 regions and replication against their goals (SCALE=0.01, PARTS=snapshots,…;
#                  bench/admin/run says more)
#   make replication-lag BYTES=10G   a replication peer that is away while so much log is written, and comes back
#   make bench-scrapes  what monitoring costs: /metrics with 10,000 regions, and gets beside scrapes (REGIONS=, ROUNDS=)
#   make bench-filters  what filters cost, a real HBase's and ours
#   make python    the Python binding's wheel in build-python/     make java  rorqual-testing into Maven's local repository
#                  (BUNDLE=build-static/rorqual: with the server in it)
#   make happybase HappyBase's own tests on rorqual.happybase, and its calls on a real HBase's Thrift server and on ours
#   make java-suites    tests of other projects, written for HBaseTestingUtility, on rorqual-testing
#   make bench-python   Python's gets and puts, ours and HappyBase's through HBase's Thrift server, into docs/lab/python.md
#   make bench-shell    rorqual shell beside HBase's (OFFICIAL=COMMAND), data in and out beside HBase's tools; PARTS=move ROWS=10000000:
#                  exported, imported, verified both ways with HBase's Export and Import, each killed once in its middle
#   make shell-scripts ZK=HOST:PORT OFFICIAL=COMMAND   the scripts of our shell's tests in HBase's own, on an empty HBase
#   make unread    peers that do not read their answers, at full load, against resident memory and a bystander
#   make tools-tests  HBase's PerformanceEvaluation and LoadTestTool, to their end
#   make replication  replication with a real HBase 2.6.1, both ways: cut-over under kills, VerifyReplication
#   make library-restarts   librorqual's calls while a real HBase is stopped, killed and started again
#   make nightly   what takes too long for each commit: asan, tsan, aarch64, a build by clang and its unit tests, simulations,
#                  kill -9 rounds, fuzzing, random histories
#   make clang     the unit tests built by clang, every warning an error
#   make crash     kill -9 rounds (ROUNDS, default 500)     make sim   power-cut seeds, random reads (SEEDS, default 500)
#   make crash-embedded   kill -9 rounds of a process that has the database in it (ROUNDS, default 200)
#   make cluster-sim   shared storage of a cluster, simulated (SEEDS, default 500), and revoked writers' processes (ROUNDS, default 20)
#   make cluster-test  shared storage on a real Ceph (installs its packages): writers revoked (ROUNDS of each kind, default 3),
#                  OSDs killed meanwhile (KILLS, default 3), random histories (SEEDS, default 30), STOPPED_SECONDS; then three servers on
#                  it (TESTS='NAME NAME')
#   make cluster-java  programs of HBase's Java clients 2.6 and 1.2 on three processes of a cluster, then all of tests/e2e/cluster.py
#                  (PROGRAMS='Reads Writes')
#   make cluster-itbll  HBase's IntegrationTestBigLinkedList on three processes of a cluster that are killed (NODES=1000000, KILL_S=20)
#   make oracle    random histories on a real HBase and on Rorqual (FIRST_SEED, SEEDS=100, OPS=2000), every answer compared
#   make disturb   unit tests and end-to-end programs whose processes pause at random (TIMES=1, PROGRAMS='cli logs')
#   make format    clang-format over all C sources
#   make lint      layers, names, headers, READMEs, filters, formatting, and clang-tidy on what differs from main

SHELL := /bin/sh
JOBS ?= $(shell nproc)
LTO ?= true
DATA ?= ./data
SERVERS ?= 3
FUZZ_SECONDS ?= 60
ROUNDS ?= 500
SECONDS ?= 3600
SEEDS ?= 500
SOURCES = $(shell git ls-files '*.c' '*.h')

.PHONY: all cluster setup install static deb rpm image package-test python java happybase java-suites bench-python run test tools-tests library-restarts replication unit asan tsan aarch64 fuzz fuzz-wire bench bench-rpc bench-java bench-engine bench-large bench-library bench-apps bench-shell bench-cache bench-cover bench-filters bench-scrapes bench-admin replication-lag hbase-tests pages unread crash crash-embedded sim cluster-sim cluster-test cluster-java cluster-itbll oracle disturb format format-check lint clean clang nightly
all: build/rorqual
	@echo "built build/rorqual: '$(MAKE) run' serves ./data, '$(MAKE) test' runs the tests, build/rorqual help lists the commands"

setup:
	@tools/setup build

build/build.ninja: | setup
	@meson setup build $(if $(CI),-Dwerror=true) >build.log 2>&1 || { cat build.log; exit 1; }
	@rm -f build.log

.PHONY: build/rorqual
build/rorqual: setup build/build.ninja
	@JOBS=$(JOBS) tools/build build src/cli/rorqual
	@[ -e build/rorqual ] || ln -s src/cli/rorqual build/rorqual

# The server that is measured, and the one to install: with link-time optimisation, which takes a
# minute to link and saves 8 % of CPU per request.
build-release/build.ninja: | setup
	@meson setup build-release -Dlto=$(LTO) >build.log 2>&1 || { cat build.log; exit 1; }
	@rm -f build.log

.PHONY: release
release: setup build-release/build.ninja
	@JOBS=$(JOBS) tools/build build-release src/cli/rorqual
	@[ -e build-release/rorqual ] || ln -s src/cli/rorqual build-release/rorqual

# A binary without shared libraries: for systems other than the one it is built on.
build-static/build.ninja: | setup
	@meson setup build-static -Dlto=$(LTO) -Dprefer_static=true -Dlibrary=false >build.log 2>&1 || { cat build.log; exit 1; }
	@rm -f build.log

static: setup build-static/build.ninja
	@JOBS=$(JOBS) tools/build build-static src/cli/rorqual
	@[ -e build-static/rorqual ] || ln -s src/cli/rorqual build-static/rorqual

# The binary, its manual pages and completions, the library with its headers: make install [PREFIX=/usr] [DESTDIR=/a/root]
# BUILD_INSTALLED=build takes the build at hand, which the tests do.
PREFIX ?= /usr/local
BUILD_INSTALLED ?= build-release
install: $(if $(filter build,$(BUILD_INSTALLED)),build/rorqual,release)
	@meson configure "$(BUILD_INSTALLED)" --prefix "$(PREFIX)"
	@JOBS=$(JOBS) tools/build "$(BUILD_INSTALLED)" src/cli/rorqual src/cli/rorqual.1 librorqual \
	  $$(grep -o 'src/vfs/rorqual-rados\.so' "$(BUILD_INSTALLED)/build.ninja" | head -1)
	@root="$(DESTDIR)"; case $$root in ''|/*) ;; *) root="$$PWD/$$root" ;; esac; \
	  DESTDIR="$$root" meson install -C "$(BUILD_INSTALLED)" --no-rebuild --quiet --skip-subprojects
	@echo "installed $(DESTDIR)$(PREFIX)/bin/rorqual"

# The Debian package in build-deb/, checked with lintian. LTO=false: without link-time optimisation.
DEB_VERSION ?= $(shell sed -n "s/^  version: '\(.*\)',/\1/p" meson.build)
deb:
	@tools/setup package
	@JOBS=$(JOBS) LTO=$(LTO) packaging/deb "$(DEB_VERSION)"
	@ls build-deb/*.deb

# An rpm in build-rpm/.
rpm:
	@tools/setup package
	@JOBS=$(JOBS) LTO=$(LTO) packaging/rpm
	@ls build-rpm/*.rpm

# A container image in build-image/, of the release build.
image: release
	@tools/setup package
	@packaging/image build-release/src/cli/rorqual "$(DEB_VERSION)"
	@ls build-image/*.tar

# All of them, tried: the Debian package in a container with systemd, the image by what it says of itself and by podman. Needs the network once.
package-test: deb rpm image
	@tests/package/run.py
	@tests/package/rpm.py
	@tests/package/image.py
	@tests/package/container.py

# The wheel, with the release build's library in it, for Python 3.9 and later.
python: release
	@tools/setup test
	@JOBS=$(JOBS) tools/build build-release librorqual
	@bindings/python/build build-release build-python

java: setup
	@tools/setup test
	@bindings/java/run install $(BUNDLE)
	@echo "installed org.rorqual:rorqual-testing:$(DEB_VERSION)"

happybase: build/rorqual
	@tools/setup test
	@JOBS=$(JOBS) tools/build build librorqual
	@tests/e2e/happybase.py

java-suites: build/rorqual
	@tools/setup test
	@bindings/java/suites/run

bench-python: python
	@tools/setup test
	@bench/python

run: build/rorqual
	@exec build/rorqual server --hints --data "$(DATA)" $(ARGS)

# The headers of ZooKeeper and Ceph may have come since the build was configured.
cluster: setup build/build.ninja
	@tools/setup zookeeper
	@$(if $(filter ceph,$(STORE)),tools/setup cluster)
	@grep -q zk_member build/build.ninja $(if $(filter ceph,$(STORE)),&& grep -q rorqual-rados build/build.ninja) || \
	  { meson configure --clearcache build && meson setup --reconfigure build >/dev/null; }
	@$(MAKE) --no-print-directory build/rorqual
	@$(if $(filter ceph,$(STORE)),JOBS=$(JOBS) tools/build build src/vfs/rorqual-rados.so)
	@exec tools/cluster $(if $(filter command environment,$(origin DATA)),"$(DATA)",./data-cluster) --servers $(SERVERS) \
	  $(if $(STORE),--store $(STORE))

unit: build/rorqual
	@JOBS=$(JOBS) tools/build build
	@JOBS=$(JOBS) tools/unit build $(if $(filter 1,$(ALL)),--all)

test: build/rorqual
	@tools/setup all
	@tests/run

asan tsan: setup
	@tools/setup all
	@[ -e build-$@/build.ninja ] || CC=clang meson setup build-$@ --buildtype=debugoptimized \
	  -Db_sanitize=$(if $(filter asan,$@),address$(comma)undefined,thread) -Db_lundef=false -Dwerror=true >/dev/null
	@JOBS=$(JOBS) tools/build build-$@
	@meson test -C build-$@ --no-rebuild --print-errorlogs --num-processes $(JOBS) --timeout-multiplier 6
comma := ,

# The unit tests as an AArch64 processor runs them, emulated.
AARCH64_LIBRARIES = libprotobuf-c-dev libuv1-dev zlib1g-dev libsnappy-dev liblz4-dev libzstd-dev liblzo2-dev libbz2-dev \
  libpcre2-dev libmd-dev libxxhash-dev libexpat1-dev libevent-dev libjansson-dev libcmocka-dev libmruby-dev libedit-dev
aarch64:
	@tools/setup aarch64
	@tools/sysroot arm64 build-aarch64/root libc6-dev $(AARCH64_LIBRARIES)
	@[ -e build-aarch64/build.ninja ] || meson setup build-aarch64 --cross-file build-aarch64/root.ini \
	  --cross-file tools/aarch64.ini >build.log 2>&1 || { cat build.log; exit 1; }
	@rm -f build.log
	@JOBS=$(JOBS) tools/build build-aarch64
	@meson test -C build-aarch64 --no-rebuild --suite unit --print-errorlogs --num-processes $(JOBS) --timeout-multiplier 20

clang:
	@tools/setup all
	@[ -e build-clang/build.ninja ] || CC=clang meson setup build-clang -Dwerror=true >/dev/null
	@JOBS=$(JOBS) tools/build build-clang
	@meson test -C build-clang --no-rebuild --suite unit --print-errorlogs --num-processes $(JOBS)

# One after another; all of them run, and the last line names those that failed.
nightly:
	@failed=; for t in lint clang asan tsan aarch64 "sim SEEDS=2000" "cluster-sim SEEDS=1000" "crash ROUNDS=500" "fuzz FUZZ_SECONDS=600" \
	  "fuzz-wire SECONDS=3600" "oracle SEEDS=20"; do \
	    echo "== make $$t"; $(MAKE) $$t || failed="$$failed '$$t'"; done; \
	  [ -z "$$failed" ] || { echo "nightly: failed:$$failed"; exit 1; }; echo "nightly: all passed"

fuzz:
	@tools/setup all
	@[ -e build-fuzz/build.ninja ] || CC=clang meson setup build-fuzz -Dfuzz=true >/dev/null
	@JOBS=$(JOBS) tools/build build-fuzz
	@FUZZ_SECONDS=$(FUZZ_SECONDS) tools/fuzz build-fuzz

fuzz-wire: build/rorqual
	@tools/setup all
	@[ -e build-asan/build.ninja ] || CC=clang meson setup build-asan --buildtype=debugoptimized \
	  -Db_sanitize=address,undefined -Db_lundef=false >/dev/null
	@JOBS=$(JOBS) tools/build build fuzz/wire/fuzz_wire
	@JOBS=$(JOBS) tools/build build-asan src/cli/rorqual
	@SECONDS=$(SECONDS) tests/e2e/fuzz_wire.py

hbase-tests: build/rorqual
	@tools/setup test
	@tests/hbase-tests/run

snapshots-move snapshots-load: build/rorqual
	@tools/setup test
	@SECONDS=$(SECONDS) tests/compat/rootdir/run $@

bench: bench-rpc bench-java

bench-rpc: release
	@tools/setup bench
	@PARTS="$(PARTS)" bench/rpc/run

bench-java: release
	@tools/setup test
	@bench/run

bench-engine: release
	@tools/setup bench
	@meson setup --reconfigure build-release >/dev/null # RocksDB may have come since
	@bench/engine/run

bench-large: release
	@tools/setup bench
	@meson setup --reconfigure build-release >/dev/null
	@bench/large/run

bench-library: release
	@tools/setup bench
	@meson setup --reconfigure build-release >/dev/null
	@$(if $(filter 1,$(HBASE)),tools/setup test)
	@JOBS=$(JOBS) tools/build build-release src/cli/rorqual bench/engine_ours bench/engine_library bench/engine_sqlite bench/engine_rocksdb bench/library_client \
	  bench/library_first bench/bench_salted_scan $(if $(filter 1,$(HBASE)),librorqual)
	@HBASE="$(HBASE)" bench/library/run

bench-apps: release
	@$(if $(filter 1,$(HBASE)),tools/setup test)
	@JOBS=$(JOBS) tools/build build-release bench/app_schemes bench/app_weibo
	@bench/apps/run

bench-shell: release
	@tools/setup test
	@JOBS=$(JOBS) tools/build build-release bench/floors
	@RORQUAL=$(CURDIR)/build-release/rorqual $(if $(ROWS),ROWS=$(ROWS)) bench/shell.py $(PARTS)

bench-cache: release
	@JOBS=$(JOBS) tools/build build-release bench/bench_cache
	@build-release/bench/bench_cache

# Covers of areas by key ranges, ours and S2's.
bench-cover: build/rorqual
	@tools/setup bench
	@JOBS=$(JOBS) tools/build build src/library/librorqual.so.0.1.0
	@$(CXX) -std=c++17 -O2 -Iinclude bench/geo_cover.cc -o build/bench/geo_cover -Lbuild/src/library -lrorqual -ls2 -Wl,-rpath,$(CURDIR)/build/src/library
	@build/bench/geo_cover

bench-filters: release
	@tools/setup test
	@bench/filters

bench-admin: release
	@$(if $(findstring tables,$(or $(PARTS),tables)),tools/setup test)
	@HBASE="$(HBASE)" PARTS="$(PARTS)" bench/admin/run

# A peer that is away while BYTES of log are written (make replication-lag BYTES=300M: a minute).
replication-lag: release
	@PARTS=lag bench/admin/run

bench-scrapes: release
	@bench/scrapes build-release/rorqual

# COMMAND ZOOKEEPER ARGUMENTS… runs HBase 2.6's shell.
.PHONY: shell-scripts
shell-scripts: build/rorqual
	@tools/setup test
	@ZK="$(ZK)" OFFICIAL="$(OFFICIAL)" tests/e2e/own_shell.py --scripts

unread: build/rorqual
	@tests/e2e/unread.py

pages: build/rorqual
	@tools/setup pages
	@tests/e2e/pages.py $(PICTURES)
	@tests/e2e/design.py $(PICTURES)

library-restarts: build/rorqual
	@tools/setup test
	@JOBS=$(JOBS) tools/build build tests/unit/api/test_restarted
	@tests/e2e/library_restarts.py

replication: build/rorqual
	@tools/setup test
	@HBASE=1 tests/e2e/replication.py
	@HBASE=1 tests/e2e/replication_bulk.py

tools-tests: build/rorqual
	@tools/setup test
	@tests/e2e/tools.py

crash: build/rorqual
	@tools/setup test
	@ROUNDS=$(ROUNDS) tests/e2e/crash.py

crash-embedded: build/rorqual
	@JOBS=$(JOBS) tools/build build tests/unit/api/test_embed
	@build/tests/unit/api/test_embed $(if $(filter command environment,$(origin ROUNDS)),$(ROUNDS),200)

sim: build/rorqual
	@JOBS=$(JOBS) tools/build build
	@SEEDS=$(SEEDS) RQ_SEEDS=$(SEEDS) meson test -C build --no-rebuild --suite sim --timeout-multiplier 0 --print-errorlogs
	@READ_RUNS=$(SEEDS) HFILE_ROUNDS=$(SEEDS) meson test -C build --no-rebuild --timeout-multiplier 0 --print-errorlogs roundtrip \
	  read_random read_random_many_rows read_random_unfiltered read_random_reversed

cluster-sim: setup build/build.ninja
	@JOBS=$(JOBS) tools/build build tests/sim/test_shared tests/sim/test_shared_forms tests/sim/test_shared_log tests/sim/test_cluster tests/sim/test_silence tests/sim/test_leases tests/sim/test_master_watch tests/unit/vfs/test_vfs_shared
	@RQ_SEEDS=$(SEEDS) build/tests/sim/test_shared
	@RQ_SEEDS=$(SEEDS) build/tests/sim/test_shared_forms
	@RQ_SEEDS=$(SEEDS) build/tests/sim/test_shared_log
	@RQ_SEEDS=$(SEEDS) build/tests/sim/test_cluster
	@RQ_SEEDS=$(SEEDS) build/tests/sim/test_silence
	@RQ_SEEDS=$(SEEDS) build/tests/sim/test_leases
	@RQ_SEEDS=$(SEEDS) build/tests/sim/test_master_watch
	@ROUNDS=$(if $(filter command environment,$(origin ROUNDS)),$(ROUNDS),20) build/tests/unit/vfs/test_vfs_shared

cluster-test: setup build/build.ninja
	@tools/setup cluster
	@meson configure --clearcache build && meson setup --reconfigure build >/dev/null # librados may have come since
	@JOBS=$(JOBS) tools/build build src/cli/rorqual src/vfs/rorqual-rados.so tests/cluster/test_rados tests/cluster/test_cephfs
	@ROUNDS=$(if $(filter command environment,$(origin ROUNDS)),$(ROUNDS),3) SEEDS=$(if $(filter command environment,$(origin SEEDS)),$(SEEDS),30) \
	  tests/e2e/ceph.py
	@tests/e2e/cluster_ceph.py

# Those whose calls a cluster serves.
PROGRAMS ?= FollowLists WeiboApp TimeSeries RowKeys Writes Reads Filters Endpoints Borders Namespaces Limits Text Tables
cluster-itbll: build/rorqual
	@tools/setup test
	@tests/e2e/cluster_itbll.py

cluster-java: build/rorqual
	@tools/setup test
	@JAVA='$(PROGRAMS)' tests/e2e/cluster.py

oracle: build/rorqual
	@tools/setup test
	@SEEDS=$(if $(filter command environment,$(origin SEEDS)),$(SEEDS),100) tests/e2e/oracle.py

disturb: build/rorqual
	@tools/setup test
	@JOBS=$(JOBS) tools/build build
	@$(if $(filter command environment,$(origin PROGRAMS)),,tests/disturb --times $(or $(TIMES),1) meson test -C build --no-rebuild \
	  --suite unit --num-processes $(JOBS) --timeout-multiplier 6 --print-errorlogs)
	@for p in $(if $(filter command environment,$(origin PROGRAMS)),$(PROGRAMS),$(DISTURBED)); do echo "== $$p"; \
	  SESSION_MS=10000 tests/disturb --times $(or $(TIMES),1) "tests/e2e/$$p.py" || exit 1; done

# The others measure time.
DISTURBED = cli logs settings progress operate own_shell recover backup fsck nonces damage transfer replication replication_bulk \
  membership upgrade connections watch ceilings tight crash shell_admin

format:
	@tools/setup test
	@clang-format -i $(SOURCES)

format-check:
	@clang-format --dry-run --Werror $(SOURCES)

lint: build/rorqual
	@tools/setup test
	@$(MAKE) --no-print-directory format-check
	@meson test -C build --no-rebuild --suite lint --print-errorlogs --num-processes $(JOBS)
	@tools/tidy

clean:
	@rm -rf build build-release build-static build-asan build-tsan build-fuzz build-aarch64 build-clang build-deb build-rpm build-image build-python
