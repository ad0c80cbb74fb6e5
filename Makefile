# SPDX-License-Identifier: Apache-2.0
# The front door. Meson does the work; see CONTRIBUTING.md.
#
#   make                    build, installing what that needs (Debian)
#   make demo               build, profile this machine for 10 seconds, say where the flame graph is
#   make check              build and run every test; the last line counts them
#   make install            PREFIX=/usr/local, DESTDIR=
#   make san, make fuzz     unit tests with sanitizers; fuzzing, FUZZ_SECONDS=60 for each parser
#   make bench              both of: bench-whole, how many stacks are whole; bench-cost, what profiling costs (root)
#   make bench-python       profiling and dumping Python beside py-spy, austin, pystack, perf and gdb (root; fetches them)
#   make bench-poll         what looking from outside costs, beside py-spy (fetches it)
#   make bench-apps         stacks of real applications of Python, checked beside py-spy's (root; fetches them)
#   make bench-storm        ten minutes in a storm of short-lived processes
#   make clean

PREFIX ?= /usr/local
DESTDIR ?=
BUILD ?= build
DEMO ?= cairn-demo.html
FUZZ_SECONDS ?= 60
PYTHON ?= python3

.PHONY: all demo check install san fuzz bench bench-whole bench-cost bench-python bench-apps bench-poll bench-storm clean setup-build setup-test

all: setup-build $(BUILD)/build.ninja
	ninja -C $(BUILD)

setup-build:
	@tools/setup.sh build
setup-test:
	@tools/setup.sh build test

$(BUILD)/build.ninja: | setup-build
	meson setup $(BUILD) --prefix=$(PREFIX)

demo: all
	@tools/demo.sh $(BUILD)/cairn $(DEMO)

# cmocka may have come after the build was set up, and Meson looks for it only when told.
check: setup-test $(BUILD)/build.ninja
	@test -f $(BUILD)/.with-tests || { meson configure $(BUILD) -Dtests=enabled && touch $(BUILD)/.with-tests; }
	ninja -C $(BUILD)
	@$(PYTHON) tools/run-tests.py $(BUILD)

install: all
	@test "$$(cat $(BUILD)/.prefix 2>/dev/null)" = "$(PREFIX)" \
		|| { meson configure $(BUILD) -Dprefix=$(PREFIX) && echo "$(PREFIX)" >$(BUILD)/.prefix; }
	DESTDIR=$(DESTDIR) meson install -C $(BUILD)

san: setup-test
	@test -f $(BUILD)-san/build.ninja || meson setup $(BUILD)-san -Dtests=enabled -Db_sanitize=address,undefined
	ninja -C $(BUILD)-san
	@UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 ASAN_OPTIONS=detect_stack_use_after_return=1 \
		$(PYTHON) tools/run-tests.py $(BUILD)-san --only meson --kind unit,corpus

fuzz: setup-test
	@test -f $(BUILD)-fuzz/build.ninja || CC=clang meson setup $(BUILD)-fuzz -Dfuzz=true -Dtests=disabled
	ninja -C $(BUILD)-fuzz
	@tools/fuzz.sh $(BUILD)-fuzz $(FUZZ_SECONDS)

bench: bench-whole bench-cost
bench-whole bench-cost: all setup-test
	$(PYTHON) tests/bench/$@.py $(BUILD)/cairn
bench-python bench-poll: all setup-test
	$(PYTHON) tests/bench/$@.py $(BUILD)/cairn --peers $(BUILD)/bench-peers
bench-apps: all setup-test
	$(PYTHON) tests/bench/$@.py $(BUILD)/cairn --apps $(BUILD)/bench-apps
bench-storm: all setup-test
	$(PYTHON) tests/bench/storm.py $(BUILD)/cairn

clean:
	rm -rf $(BUILD) $(BUILD)-san $(BUILD)-fuzz
