# Holdfast. The only build system: `make help` lists what it can do.
#
#   build/            objects, the libraries, the holdfast command, tests
#   build/san-KIND/   the same, built with SAN=KIND
#   build/step/       the toolkit with the tests' scheduler in it
#   build/fuzz/       the fuzz targets, built by clang
#   build/log/        what each test program printed

, := ,
SHELL := /bin/bash
.DEFAULT_GOAL := all
MAKEFLAGS += --no-builtin-rules

CC ?= gcc
ifeq ($(origin CC),default)
CC := gcc
endif
SAN ?=
ifneq ($(SAN),)
ifneq ($(words $(SAN)) $(filter-out address thread,$(SAN)),1 )
$(error SAN=$(SAN) is unknown: it is address or thread)
endif
endif
BUILD := build$(if $(SAN),/san-$(SAN))
JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 30
MINUTES ?= 60
PREFIX ?= /usr/local
VERSION := $(shell sed -n 's|^\#define HOLDFAST_VERSION "\(.*\)"|\1|p' include/holdfast/version.h)
ABI := $(basename $(VERSION))# of 0.1.0 it is 0.1

WARN := -Wall -Wextra -Wconversion -Wshadow -Wstrict-prototypes \
	-Wmissing-prototypes -Werror
# Sanitizers are told lines by -g1; the rest of -g only makes links slow.
CFLAGS ?= $(if $(SAN),-O1 -g1,-O2 -g)
# Warnings that gcc derives from optimized code; the plain build has them.
FALSE_WITH_SAN := -Wno-format-truncation -Wno-restrict -Wno-maybe-uninitialized
SANFLAGS_address := -fsanitize=address,undefined
SANFLAGS_thread := -fsanitize=thread
SANFLAGS := $(if $(SAN),$(SANFLAGS_$(SAN)) -fno-sanitize-recover=all \
	-fno-omit-frame-pointer $(FALSE_WITH_SAN))
BASE_CFLAGS := -std=c11 -D_GNU_SOURCE -Iinclude -Isrc \
	-include src/base/banned.h $(WARN) $(CFLAGS) -pthread -MMD -MP
HF_CFLAGS := $(BASE_CFLAGS) $(SANFLAGS)
FUZZ_CFLAGS = $(BASE_CFLAGS) -O1 -g1 -Itest -fno-sanitize-recover=all
POSTGRES := -isystem /usr/include/postgresql
# Nothing else goes into libholdfast. Its objects are the daemon's, too: what
# -fPIC would cost there, the linker takes out again.
LIB_CFLAGS := -fPIC -fno-semantic-interposition -ftls-model=initial-exec
LIB_LIBS := -lm
STORES_LIBS := -lsqlite3 -lpq -lhiredis $(LIB_LIBS)
APP_LIBS := -lxxhash -luring -lcrypto $(LIB_LIBS)
LIBS := -luv -lxxhash -luring -lcrypto $(STORES_LIBS)

LIB_DIRS := base sync exec flow meter keep
INNER_DIRS := hold locks # in the library, too: see $(INNER)
STEP_DIRS := $(LIB_DIRS) $(INNER_DIRS) stores
FUZZ_DIRS := base sync exec journal resp # what the targets read with
APP_DIRS := hold journal resp history feed server cli main
LIB_SRC := $(wildcard $(LIB_DIRS:%=src/%/*.c))
INNER_SRC := $(wildcard $(INNER_DIRS:%=src/%/*.c))
STORES_SRC := $(wildcard src/stores/*.c)
APP_SRC := $(filter-out src/main/main.c,$(wildcard $(APP_DIRS:%=src/%/*.c)))
SUPPORT_SRC := $(filter-out test/support/schedule.c test/support/syscall.c,\
	$(wildcard test/support/*.c))
STEP_SRC := $(wildcard $(STEP_DIRS:%=src/%/*.c))
SCHEDULE_SRC := $(wildcard test/schedule/*.c)
TEST_SRC := $(wildcard test/unit/*.c test/stress/*.c test/sim/*.c \
	test/system/*.c)
FUZZ_SRC := $(wildcard test/fuzz/*.c)
BENCH_SRC := $(wildcard bench/*.c)
PEER_SRC := $(wildcard bench/peers/*_lock.c)
CONTEST_DIRS := sync exec flow meter keep
CONTEST_SRC := $(filter-out %/contest.c,$(wildcard $(CONTEST_DIRS:%=bench/%/*.c)))
CONTEST_PEERS := $(wildcard $(foreach dir,$(CONTEST_DIRS),\
	bench/$(dir)/peers/*.c bench/$(dir)/peers/*.cpp))
EXAMPLE_SRC := $(wildcard examples/*.c)
C_FILES = $(shell find include src test bench examples -name node_modules \
	-prune -o -name '*.[ch]' -print 2>/dev/null)

obj = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))
step_obj = $(patsubst %.c,$(BUILD)/step/obj/%.o,$(1))
fuzz_obj = $(patsubst %.c,$(BUILD)/fuzz/obj/%.o,$(1))
# What shows to the thread sanitizer what it would not see.
SHOWN := $(if $(filter thread,$(SAN)),$(call obj,test/support/syscall.c))
LIB := $(BUILD)/libholdfast.a
INNER := $(BUILD)/obj/locks.o
STORES := $(BUILD)/libholdfast-stores.a
SHARED := $(BUILD)/libholdfast.so.$(VERSION)
SHARED_STORES := $(BUILD)/libholdfast-stores.so.$(VERSION)
APP := $(BUILD)/app.a
BIN := $(BUILD)/holdfast
FAULTY := $(BUILD)/test/faulty
SIM := $(BUILD)/test/sim/server
SIM_SRC := test/sim/server.c $(wildcard test/sim/server/*.c) \
	test/support/history.c test/support/failing.c
SIM_ENGINE := $(BUILD)/test/sim/engine
SIM_ENGINE_SRC := $(wildcard test/sim/engine/*.c) test/support/failing.c
TESTS := $(filter-out $(SIM),$(TEST_SRC:test/%.c=$(BUILD)/test/%))
SCHEDULES := $(SCHEDULE_SRC:test/%.c=$(BUILD)/test/%)
EXAMPLES := $(EXAMPLE_SRC:%.c=$(BUILD)/%)
FUZZ := $(FUZZ_SRC:test/fuzz/%.c=$(BUILD)/fuzz/%)
BENCH := $(BENCH_SRC:bench/%.c=$(BUILD)/bench/%)
PEERS := $(PEER_SRC:bench/%.c=$(BUILD)/bench/%)
CONTESTS := $(CONTEST_SRC:bench/%.c=$(BUILD)/bench/%)

# What people type. Those that need packages call tools/setup first and build
# in a second make, so that they work where not even a compiler is installed.

all: toolkit stores $(BIN) ## build the libraries and the holdfast command

toolkit: $(LIB) $(SHARED) ## build libholdfast alone, which needs only libc

stores: $(STORES) $(SHARED_STORES) ## build libholdfast-stores: needs databases

help: ## list what make can do
	@awk -F ':.*## ' '/^[a-z-]+:.*## / \
	    { printf "make %-15s %s\n", $$1, $$2 }' Makefile
	@echo 'SAN=address|thread builds (and tests) with sanitizers:'
	@echo 'address and undefined in one, or thread.'

run: ## install what is missing, build, serve with the data in ./data
	@tools/setup run
	@$(MAKE) --no-print-directory -s -j$(JOBS) $(BIN)
	@exec $(BIN) serve --dir ./data $(ARGS)

test: ## install what is missing, build and run every test
	@tools/setup test
	@JOBS=$(JOBS) FUZZ_SECONDS=$(FUZZ_SECONDS) tools/test $(SAN)

unit: ## build and run the unit tests only
	@JOBS=$(JOBS) tools/test --only unit $(SAN)

soak: ## run the long tests for MINUTES=60, going on where it was stopped
	@tools/setup test
	@$(MAKE) --no-print-directory -s -j$(JOBS) tests $(if $(SAN),,fuzzers)
	@JOBS=$(JOBS) SAN=$(SAN) tools/soak $(MINUTES)

bench: ## install the peers that are missing, measure against them
	@tools/setup bench
	@$(MAKE) --no-print-directory -j$(JOBS) all benches
	@HOLDFAST=$(BIN) bench/run

setup: ## install what running, testing and measuring need
	@tools/setup run
	@tools/setup test
	@tools/setup bench

tidy: ## check the rules of STYLE.md that a program can check
	@tools/tidy

fmt: ## format every C file
	@clang-format -i $(C_FILES)

fmt-check: ## tell which C files `make fmt` would change
	@tools/tidy --only format

PKGCONFIG = $(DESTDIR)$(PREFIX)/lib/pkgconfig
# The loader finds a new library in its cache only.
copy = install -m 644 $(1) $(DESTDIR)$(PREFIX)/lib && \
	cp -P --remove-destination $(call names,$(2)) $(DESTDIR)$(PREFIX)/lib \
	$(if $(DESTDIR),,&& { ldconfig 2>/dev/null || true; })
install: all install-toolkit ## copy to $(DESTDIR)$(PREFIX), which is /usr/local
	install -D -m 755 $(BIN) $(DESTDIR)$(PREFIX)/bin/holdfast
	$(call copy,$(STORES),$(SHARED_STORES))
	printf '%s\n' 'prefix=$(PREFIX)' 'Name: holdfast-stores' \
	    'Description: SQLite, PostgreSQL and Redis for holdfast' \
	    'Version: $(VERSION)' 'Requires: holdfast = $(VERSION)' \
	    'Libs: -L$${prefix}/lib -lholdfast-stores' \
	    'Libs.private: $(STORES_LIBS)' >$(PKGCONFIG)/holdfast-stores.pc

install-toolkit: toolkit ## the same of libholdfast alone
	install -d $(DESTDIR)$(PREFIX)/include/holdfast $(PKGCONFIG)
	$(call copy,$(LIB),$(SHARED))
	install -m 644 include/holdfast/*.h $(DESTDIR)$(PREFIX)/include/holdfast
	printf '%s\n' 'prefix=$(PREFIX)' 'Name: holdfast' \
	    'Description: what threads share, pools, limiters, meters, caches' \
	    'Version: $(VERSION)' 'Cflags: -I$${prefix}/include' \
	    'Libs: -L$${prefix}/lib -lholdfast' \
	    'Libs.private: $(LIB_LIBS) -pthread' >$(PKGCONFIG)/holdfast.pc

clean: ## remove everything that was built
	rm -rf build

# What is built, and from what.

tests: toolkit stores $(BIN) $(FAULTY) $(TESTS) $(SIM) $(SIM_ENGINE) $(SCHEDULES) \
	$(EXAMPLES)
examples: $(EXAMPLES)
units: $(filter $(BUILD)/test/unit/%,$(TESTS))
fuzzers: $(FUZZ)
benches: $(BENCH) $(PEERS) $(CONTESTS)

# The engine has names of the daemon's, which a user's program may have as well:
# it is linked with hf_locks into one object, in which only hf_ names are global.
# The daemon links the same objects by their own names.
$(INNER): $(call obj,$(INNER_SRC))
	ld -r -o $@.all $^
	objcopy --wildcard --keep-global-symbol='hf_*' $@.all $@
	@rm $@.all

$(LIB): $(call obj,$(LIB_SRC)) $(INNER)
$(STORES): $(call obj,$(STORES_SRC))
$(APP): $(call obj,$(APP_SRC))
$(LIB) $(STORES) $(APP):
	@rm -f $@
	ar rcs $@ $^

# The file has the whole version, the soname its first two numbers, and what one
# links with none. They are never unloaded: they have threads (the default pool)
# and signal handlers (the log).
names = $(1) $(1:.$(VERSION)=.$(ABI)) $(1:.$(VERSION)=)
shared = $(CC) $(HF_CFLAGS) -shared -Wl,-Bsymbolic-functions -Wl,-z,nodelete \
	$(if $(SAN),,-Wl,-z,defs) -Wl,--version-script=$<.exports \
	-Wl,-soname,$(@F:.$(VERSION)=.$(ABI)) -o $@ \
	-Wl,--whole-archive $< -Wl,--no-whole-archive
link_names = @for name in $(wordlist 2,3,$(call names,$@)); do \
	ln -sf $(@F) $$name; done

$(SHARED): $(LIB) tools/exports src/stores/needs.txt
	tools/exports HOLDFAST_$(ABI) src/stores/needs.txt >$<.exports
	$(shared) $(LIB_LIBS)
	$(link_names)

$(SHARED_STORES): $(STORES) $(SHARED)
	tools/exports HOLDFAST_STORES_$(ABI) >$<.exports
	$(shared) $(SHARED) $(STORES_LIBS)
	$(link_names)

$(BIN): $(call obj,src/main/main.c) $(SHOWN) $(APP) $(LIB)
	$(CC) $(HF_CFLAGS) -o $@ $^ -luv $(APP_LIBS)

$(call obj,$(LIB_SRC) $(INNER_SRC) $(STORES_SRC)): HF_CFLAGS += $(LIB_CFLAGS)
# Without this -fPIC would cost the daemon indirect calls inside the engine.
$(call obj,$(wildcard src/hold/*.c)): HF_CFLAGS += -fvisibility=hidden
$(call obj,$(STORES_SRC)) $(call step_obj,$(STORES_SRC)): HF_CFLAGS += $(POSTGRES)

$(BUILD)/obj/test/%.o: test/%.c Makefile
	@mkdir -p $(@D)
	$(CC) $(HF_CFLAGS) $(POSTGRES) -Itest -c -o $@ $<

# Code around callbacks that may end their thread: pthread_cleanup_push() is a
# table then, and not a setjmp.
GUARDED := src/exec/pool_run.c src/exec/pool_worker.c
$(call obj,$(GUARDED)) $(call step_obj,$(GUARDED)): HF_CFLAGS += -fexceptions
$(call fuzz_obj,$(GUARDED)): FUZZ_CFLAGS += -fexceptions

$(BUILD)/obj/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(CC) $(HF_CFLAGS) -c -o $@ $<

# The allocator and the start of threads are wrapped so that tests can make them
# fail, and the former so that no test stops a thread inside it.
ALLOCATOR := $(addprefix -Wl$(,)--wrap=hf_,alloc alloc_zeroed realloc \
	alloc_aligned alloc_lines alloc_huge free)
FAILING := $(ALLOCATOR) -Wl,--wrap=pthread_create
$(TESTS): $(BUILD)/test/%: $(BUILD)/obj/test/%.o $(call obj,$(SUPPORT_SRC)) \
		$(SHOWN) $(APP) $(STORES) $(LIB)
	@mkdir -p $(@D)
	$(CC) $(HF_CFLAGS) $(FAILING) -o $@ $^ $(LIBS)

# The server on a disk that fails as the test says.
$(FAULTY): $(call obj,test/support/faulty/main.c test/support/fault.c) \
		$(SHOWN) $(APP) $(LIB)
	@mkdir -p $(@D)
	$(CC) $(HF_CFLAGS) -o $@ $^ $(LIBS)

# The engine against the model.
$(SIM_ENGINE): $(call obj,$(SIM_ENGINE_SRC)) $(APP) $(LIB)
	@mkdir -p $(@D)
	$(CC) $(HF_CFLAGS) $(FAILING) -o $@ $^ $(LIBS)

# The whole server in the simulation: its objects as they are, before them what
# stands in for libuv, threads and clocks, so that the archive's are not taken.
$(SIM): $(call obj,$(SIM_SRC)) $(APP) $(LIB)
	@mkdir -p $(@D)
	$(CC) $(HF_CFLAGS) $(FAILING) -Wl,--wrap=journal_io_wake \
	    -Wl,--wrap=journal_io_wake_clear -Wl,--wrap=fopen -Wl,--wrap=getpid \
	    -Wl,--wrap=getsockopt -Wl,--wrap=setsockopt \
	    -Wl,--wrap=hf_limiter_open -Wl,--wrap=_exit -Wl,--wrap=ioctl \
	    -Wl,--wrap=hold_apply -Wl,--wrap=feed_take \
	    -Wl,--wrap=feed_start -Wl,--wrap=feed_close -Wl,--wrap=clock_gettime \
	    -Wl,--wrap=lock_wait_answered -Wl,--wrap=metrics_waited \
	    -o $@ $^ $(APP_LIBS)

# As a user would: the public headers and the library.
$(EXAMPLES): $(BUILD)/%: %.c $(LIB)
	@mkdir -p $(@D)
	$(CC) -std=c11 -D_GNU_SOURCE -Iinclude $(WARN) $(CFLAGS) $(SANFLAGS) \
	    -pthread -o $@ $< $(LIB) $(LIB_LIBS)

# The tests by seed: the same sources, each step in the hands of a scheduler.
$(BUILD)/step/obj/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(CC) $(HF_CFLAGS) -DHF_STEPPED -Itest -c -o $@ $<

$(BUILD)/step/step.a: $(call step_obj,$(STEP_SRC))
	@rm -f $@
	ar rcs $@ $^

STEP_SUPPORT := $(addprefix test/support/,schedule.c test.c calls.c linear.c \
	models.c failing.c)
$(SCHEDULES): $(BUILD)/test/%: $(BUILD)/step/obj/test/%.o \
		$(call step_obj,$(STEP_SUPPORT)) $(BUILD)/step/step.a
	@mkdir -p $(@D)
	$(CC) $(HF_CFLAGS) $(ALLOCATOR) -Wl,--wrap=hf_thread_start -o $@ $^ \
	    $(STORES_LIBS)

$(BENCH): $(BUILD)/bench/%: $(BUILD)/obj/bench/%.o $(APP) $(STORES) $(LIB)
	@mkdir -p $(@D)
	$(CC) $(HF_CFLAGS) -o $@ $^ $(LIBS)

$(PEERS): $(BUILD)/bench/%: $(BUILD)/obj/bench/%.o \
		$(call obj,bench/peers/load.c) $(LIB)
	@mkdir -p $(@D)
	$(CC) $(HF_CFLAGS) -o $@ $^ $(LIB_LIBS)

$(BUILD)/fuzz/obj/%.o: %.c Makefile
	@mkdir -p $(@D)
	clang $(FUZZ_CFLAGS) -fsanitize=fuzzer-no-link,address,undefined \
	    -c -o $@ $<

$(FUZZ): $(BUILD)/fuzz/%: $(BUILD)/fuzz/obj/test/fuzz/%.o \
		$(call fuzz_obj,$(wildcard $(FUZZ_DIRS:%=src/%/*.c)))
	clang $(FUZZ_CFLAGS) -fsanitize=fuzzer,address,undefined -o $@ $^ \
	    $(APP_LIBS)

# The contests: one program per subject, of its own file, its peers' and the
# driver. Peers in C++ are the only C++ there is.
PKG_ring_dpdk := libdpdk
PKG_blocking_glib := glib-2.0
PKG_blocking_apr := apr-1 apr-util-1
LIBS_ring := -lrte_ring -lrte_eal
LIBS_map := -lurcu-cds -lurcu -lurcu-common -ltbb
LIBS_skipmap := -lcds
LIBS_blocking := -lglib-2.0 -laprutil-1 -lapr-1
LIBS_permits := -lnsync
LIBS_locks := -ltbb
PKG_pool_glib := glib-2.0
PKG_pool_apr := apr-1 apr-util-1
PKG_log_spdlog := spdlog
FLAGS_pool_openmp := -fopenmp
FLAGS_forkjoin_openmp := -fopenmp
LIBS_pool := -lglib-2.0 -laprutil-1 -lapr-1 -ltbb -luv -fopenmp
LIBS_forkjoin := -ltbb -fopenmp
LIBS_timers := -luv -levent_core
LIBS_log := -lspdlog -lfmt
LIBS_cache := -ltbb
LIBS_pipeline := -ltbb
LIBS_gather := -ltbb
LIBS_dedup := -ltbb
PKG_writebehind_postgres := libpq
LIBS_update := -lprometheus-cpp-core
PKG_lender_apr := apr-1 apr-util-1
LIBS_lender := -laprutil-1 -lapr-1
PEER_FLAGS = -D_GNU_SOURCE -I. -Iinclude -Wall -Wextra -Werror $(CFLAGS) \
	-pthread -MMD -MP $(if $(PKG_$(*F)),$(shell pkg-config --cflags \
	$(PKG_$(*F)) | sed 's/-I/-isystem /g')) $(FLAGS_$(*F))
contest_obj = $(patsubst %,$(BUILD)/obj/%.o,bench/sync/contest $(basename \
	$(filter bench/$(dir $(1))peers/$(notdir $(1))_%,$(CONTEST_PEERS))))
PEER_OBJ := $(patsubst %,$(BUILD)/obj/%.o,$(basename $(CONTEST_PEERS)))

$(CONTEST_SRC:%.c=$(BUILD)/obj/%.o): $(BUILD)/obj/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(CC) $(HF_CFLAGS) -I. -c -o $@ $<

$(filter $(CONTEST_PEERS:%.c=$(BUILD)/obj/%.o),$(PEER_OBJ)): \
		$(BUILD)/obj/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(CC) -std=gnu11 $(PEER_FLAGS) $(SANFLAGS) -c -o $@ $<

$(filter $(CONTEST_PEERS:%.cpp=$(BUILD)/obj/%.o),$(PEER_OBJ)): \
		$(BUILD)/obj/%.o: %.cpp Makefile
	@mkdir -p $(@D)
	$(CXX) -std=c++17 $(PEER_FLAGS) $(SANFLAGS) -c -o $@ $<

.SECONDEXPANSION:
$(CONTESTS): $(BUILD)/bench/%: $(BUILD)/obj/bench/%.o \
		$$(call contest_obj,$$*) $(STORES) $(LIB)
	@mkdir -p $(@D)
	$(CXX) $(CFLAGS) $(SANFLAGS) -pthread -o $@ $^ $(LIBS_$(*F)) $(STORES_LIBS)

.SECONDARY:
.PHONY: all toolkit stores help run test unit soak bench setup tidy fmt fmt-check install \
	install-toolkit clean \
	tests units fuzzers benches examples
-include $(shell find $(BUILD)/obj $(BUILD)/step/obj $(BUILD)/fuzz/obj -name '*.d' 2>/dev/null)
