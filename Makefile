# Holdfast. The only build system: `make help` lists what it can do.
#
#   build/            objects, libholdfast.a, the holdfast command, tests
#   build/san-KIND/   the same, built with SAN=KIND

SHELL := /bin/bash
.DEFAULT_GOAL := all
MAKEFLAGS += --no-builtin-rules

CC ?= gcc
ifeq ($(origin CC),default)
CC := gcc
endif
SAN ?=
BUILD := build$(if $(SAN),/san-$(SAN))

WARN := -Wall -Wextra -Wconversion -Wshadow -Wstrict-prototypes \
	-Wmissing-prototypes -Werror
CFLAGS ?= -O2 -g
SANFLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all \
	-fno-omit-frame-pointer)
HF_CFLAGS := -std=c11 -D_GNU_SOURCE -Iinclude -Isrc -include src/base/banned.h \
	$(WARN) $(CFLAGS) $(SANFLAGS) -pthread -MMD -MP
LIBS := -luv -lxxhash -luring -lm

LIB_DIRS := base flow hold journal resp
APP_DIRS := server cli
LIB_SRC := $(wildcard $(LIB_DIRS:%=src/%/*.c))
APP_SRC := $(filter-out src/cli/main.c,$(wildcard $(APP_DIRS:%=src/%/*.c)))
SUPPORT_SRC := $(wildcard test/support/*.c)
UNIT_SRC := $(wildcard test/unit/*.c)
SYSTEM_SRC := $(wildcard test/system/*.c)
BENCH_SRC := $(wildcard bench/*.c)

obj = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))
LIB := $(BUILD)/libholdfast.a
APP := $(BUILD)/app.a
BIN := $(BUILD)/holdfast
UNIT := $(UNIT_SRC:test/%.c=$(BUILD)/test/%)
SYSTEM := $(SYSTEM_SRC:test/%.c=$(BUILD)/test/%)
BENCH := $(BENCH_SRC:bench/%.c=$(BUILD)/bench/%)

all: $(LIB) $(BIN) ## build the library and the holdfast command

$(LIB): $(call obj,$(LIB_SRC))
	@rm -f $@
	ar rcs $@ $^

$(APP): $(call obj,$(APP_SRC))
	@rm -f $@
	ar rcs $@ $^

$(BIN): $(call obj,src/cli/main.c) $(APP) $(LIB)
	$(CC) $(HF_CFLAGS) -o $@ $^ $(LIBS)

$(BUILD)/obj/test/%.o: test/%.c
	@mkdir -p $(@D)
	$(CC) $(HF_CFLAGS) -Itest -c -o $@ $<

$(BUILD)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(HF_CFLAGS) -c -o $@ $<

$(BUILD)/test/%: $(BUILD)/obj/test/%.o $(call obj,$(SUPPORT_SRC)) $(APP) $(LIB)
	@mkdir -p $(@D)
	$(CC) $(HF_CFLAGS) -o $@ $^ $(LIBS)

$(BUILD)/bench/%: $(BUILD)/obj/bench/%.o $(APP) $(LIB)
	@mkdir -p $(@D)
	$(CC) $(HF_CFLAGS) -o $@ $^ $(LIBS)

.SECONDARY:
.PHONY: all
-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)
