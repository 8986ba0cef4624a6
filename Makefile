# refd: one Makefile for the whole tree.
#
# A profile is a directory: plain make builds into build/, PROFILE=asan into
# build/asan/, and they do not disturb each other. Sources are found by
# wildcard. Any list below may be set on the command line to build a part of
# the tree: make DAEMON_SRCS="daemon/base/sys.c" build/tests/unit/test_sys

VERSION   := 1.0.0-rc1
SOVERSION := 0

PROFILE ?= release
ifeq ($(PROFILE),release)
BUILD   ?= build
else
BUILD   ?= build/$(PROFILE)
endif

ifneq ($(words $(BUILD)),1)
$(error make can not have a space in BUILD, which is '$(BUILD)')
endif

PREFIX      ?= /usr/local
BINDIR      ?= $(PREFIX)/bin
LIBDIR      ?= $(PREFIX)/lib
LIBEXECDIR  ?= $(PREFIX)/libexec
INCLUDEDIR  ?= $(PREFIX)/include
DATADIR     ?= $(PREFIX)/share
MANDIR      ?= $(DATADIR)/man
UNITDIR     ?= $(PREFIX)/lib/systemd/system
SYSUSERSDIR ?= $(PREFIX)/lib/sysusers.d
TMPFILESDIR ?= $(PREFIX)/lib/tmpfiles.d
# To whom the repositories of refd.service belong; refd@NAME.service is NAME's.
SERVICE_USER ?= git
INSTALL     ?= install
PKG_CONFIG  ?= pkg-config
CLANG       ?= clang
CLANG_FORMAT ?= clang-format-19
CLANG_TIDY  ?= clang-tidy

# ---- flags ----

WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
	-Wpointer-arith -Wvla
# A compiler that is newer than the tree knows new warnings, and a user must not
# suffer for them. scripts/check and CI say WERROR=1.
WERROR ?= 0
ifeq ($(WERROR),1)
WARNINGS += -Werror
endif

# The first of FLAGS sets, separated by commas, that this compiler takes without
# a warning; nothing when it takes none.
comma := ,
takes = $(shell for flags in $(subst $(comma), ,$(1)); do \
	printf '\043include <stdio.h>\n' | $(CC) -Werror -O2 -U_FORTIFY_SOURCE \
	    $$flags -x c -c -o /dev/null - 2>/dev/null && echo $$flags && \
	    break; done)

# gcc knows level 3 of FORTIFY_SOURCE from version 12 on. Control flow is
# protected in another way by each architecture. tests/scenario/hardened.sh
# looks at the programs.
SHARED_FLAGS := -Wl,-z,defs
ifeq ($(PROFILE),release)
CFLAGS ?= -O2 -g
HARDEN := -U_FORTIFY_SOURCE \
	$(call takes,-D_FORTIFY_SOURCE=3$(comma)-D_FORTIFY_SOURCE=2) \
	$(call takes,-fcf-protection$(comma)-mbranch-protection=standard)
else ifeq ($(PROFILE),debug)
CFLAGS ?= -O0 -g3
else ifeq ($(PROFILE),asan)
CFLAGS ?= -O1 -g
SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=all \
	-fno-omit-frame-pointer
SHARED_FLAGS :=
else ifeq ($(PROFILE),tsan)
CFLAGS ?= -O1 -g
SANITIZE := -fsanitize=thread -fno-omit-frame-pointer
SHARED_FLAGS :=
else ifeq ($(PROFILE),cov)
CFLAGS ?= -O0 -g
SANITIZE := --coverage
else
$(error PROFILE is release, debug, asan, tsan or cov, not '$(PROFILE)')
endif

# Sanitizers and gcov make system calls and open files of their own.
ifneq ($(SANITIZE),)
SANITIZE += -DREFD_UNCONFINED
endif

# The order of the locks is checked wherever a thread would stay in a deadlock
# unseen: daemon/base/mutex.h.
ifneq ($(PROFILE),release)
RANKS := -DREFD_RANKS
endif

# With a long of 32 bits, only this makes files of more than 2 GiB readable.
# SQLite has it too, and daemon/store/journal/ puts a function in its place.
ifeq ($(shell echo __SIZEOF_LONG__ | $(CC) -E -P - 2>/dev/null),4)
LARGE_FILES := -D_FILE_OFFSET_BITS=64
endif

LANGUAGE := -std=c11 -D_GNU_SOURCE -DREFD_VERSION='"$(VERSION)"' -I. -pthread \
	$(RANKS)
# HARDEN comes last, so that a packager's CPPFLAGS do not weaken it.
ALL_CFLAGS = $(LANGUAGE) $(LARGE_FILES) $(WARNINGS) -fPIE \
	-fstack-protector-strong -fstack-clash-protection $(SANITIZE) \
	$(CPPFLAGS) $(CFLAGS) $(HARDEN)
ALL_LDFLAGS = -pthread -Wl,--as-needed -Wl,-z,relro,-z,now \
	-Wl,-z,noexecstack $(SANITIZE) $(LDFLAGS)

# ---- what the daemon stands on ----

STORE_PKGS := sqlite3 zlib
NET_PKGS   := libevent_core libevent_pthreads
CONFINE_PKGS := libseccomp
TEST_PKGS  := check
# Of librefd-git2 alone, which "make libgit2" and the tests build.
GIT2_PKGS  := libgit2
# Of refd-group alone, which "make group" and the tests build.
PQ_PKGS    := libpq
# Of refd-deliver alone, which "make deliver" and the tests build.
CURL_PKGS  := libcurl

ifneq ($(filter-out apt-repository clean docs format lint uninstall help,$(or \
	$(MAKECMDGOALS),all)),)
ifneq ($(shell $(PKG_CONFIG) --exists $(STORE_PKGS) $(NET_PKGS) \
	$(CONFINE_PKGS) && echo yes),yes)
$(error libraries are missing: run scripts/deps --build)
endif
ifneq ($(shell $(PKG_CONFIG) --exists \
	$(if $(filter %deliver,$(MAKECMDGOALS)),$(CURL_PKGS)) \
	$(if $(filter %group,$(MAKECMDGOALS)),$(PQ_PKGS)) \
	$(STORE_PKGS) && echo yes),yes)
$(error libraries of refd-deliver or refd-group are missing: \
	run scripts/deps --package)
endif
PKG_CFLAGS := $(shell $(PKG_CONFIG) --cflags $(STORE_PKGS) $(NET_PKGS) \
	$(CONFINE_PKGS))
STORE_LIBS := $(shell $(PKG_CONFIG) --libs $(STORE_PKGS))
NET_LIBS   := $(shell $(PKG_CONFIG) --libs $(NET_PKGS) $(CONFINE_PKGS))
endif
# Asked for only where a test is linked: a plain build needs no libcheck.
TEST_LIBS = $(shell $(PKG_CONFIG) --libs $(TEST_PKGS))
GIT2_CFLAGS = $(shell $(PKG_CONFIG) --cflags $(GIT2_PKGS))
GIT2_LIBS = $(shell $(PKG_CONFIG) --libs $(GIT2_PKGS))
PQ_CFLAGS = $(shell $(PKG_CONFIG) --cflags $(PQ_PKGS))
PQ_LIBS = $(shell $(PKG_CONFIG) --libs $(PQ_PKGS))
CURL_CFLAGS = $(shell $(PKG_CONFIG) --cflags $(CURL_PKGS))
CURL_LIBS = $(shell $(PKG_CONFIG) --libs $(CURL_PKGS))

# ---- sources ----

PROTO_SRCS  := $(sort $(wildcard proto/*.c))
# For the programs; not in librefd.
LIB_SRCS    := $(sort $(wildcard proto/lib/*.c))
CLIENT_SRCS := $(sort $(wildcard client/librefd/*.c))
# refd links the C library alone; refd-deliver is a program of its own.
DELIVER_SRCS := $(sort $(filter-out client/deliver/main.c,$(wildcard \
	client/deliver/*.c)))
# The same: only refd-group links libpq.
GROUP_SRCS  := $(sort $(filter-out %/main.c,$(wildcard \
	daemon/group/service/*.c)))
# A library of its own: only this folder includes libgit2.
GIT2_SRCS   := $(sort $(wildcard client/libgit2/*.c))
CLI_SRCS    := $(LIB_SRCS) $(sort $(filter-out client/librefd/% \
	client/deliver/% client/libgit2/%,$(wildcard client/*.c client/*/*.c)))
MAINS       := daemon/main.c daemon/admin/main.c client/deliver/main.c \
	daemon/group/service/main.c
DAEMON_SRCS := $(LIB_SRCS) $(sort $(filter-out $(MAINS),$(wildcard daemon/*.c \
	daemon/base/*.c daemon/store/*.c daemon/store/*/*.c \
	daemon/store/*/*/*.c daemon/group/*.c \
	daemon/scheduler/*.c \
	daemon/service/*.c daemon/metrics/*.c daemon/server/*.c \
	daemon/admin/*.c)))
# The main() of every unit test. In an archive, a fuzzer would find it there.
UNIT_MAIN    := tests/lib/suite_main.c
TESTLIB_SRCS := $(sort $(filter-out $(UNIT_MAIN),$(wildcard tests/lib/*.c)))
UNIT_SRCS    := $(sort $(wildcard tests/unit/test_*.c))
PRELOAD_SRCS := $(sort $(wildcard tests/helper/preload_*.c))
GIT2_TEST_SRCS := $(sort $(wildcard tests/libgit2/*.c))
HELPER_SRCS  := $(sort $(filter-out $(PRELOAD_SRCS),$(wildcard tests/helper/*.c)))
BENCH_SRCS   := $(sort $(wildcard tests/bench/*.c))
FUZZ_SRCS    := $(sort $(wildcard tests/fuzz/fuzz_*.c))
# What a fuzzer may call; the rest is not built for it.
FUZZED_SRCS  := $(PROTO_SRCS) $(LIB_SRCS) $(TESTLIB_SRCS) \
	$(filter daemon/base/% daemon/store/% daemon/group/%,$(DAEMON_SRCS)) \
	$(addprefix client/,push/push.c request/git_messages.c \
	update/stdin.c git/quote.c \
	base/child.c git/configfiles.c git/gitconfig.c)

quote   = '$(subst ','\'',$(1))'
objects = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))

BIN := $(BUILD)/bin/refd $(BUILD)/bin/refd-daemon $(BUILD)/bin/refd-admin
LIB := $(BUILD)/lib/librefd.a $(BUILD)/lib/librefd.so
UNIT_BIN    := $(UNIT_SRCS:%.c=$(BUILD)/%)
HELPER_BIN  := $(HELPER_SRCS:%.c=$(BUILD)/%)
PRELOAD_LIB := $(PRELOAD_SRCS:%.c=$(BUILD)/%.so)
BENCH_BIN   := $(BUILD)/tests/bench/load
GROUP_BIN   := $(BUILD)/bin/refd-group
DELIVER_BIN := $(BUILD)/bin/refd-deliver
GIT2_LIB    := $(BUILD)/lib/librefd-git2.so
GIT2_BIN    := $(addprefix $(BUILD)/tests/libgit2/,differ own)
FUZZ_BIN    := $(FUZZ_SRCS:tests/fuzz/%.c=$(BUILD)/fuzz/%)
SCENARIOS   = $(sort $(wildcard tests/scenario/*.sh))

# A command is announced by its target; V=1 shows it whole.
ifneq ($(V),1)
say = @echo '  $@';
endif

.DELETE_ON_ERROR:
.SECONDARY:
.PHONY: all units tests fuzz check check-long mutants soak bench dist docs \
	apt-repository install install-units uninstall libgit2 \
	install-libgit2 group install-group deliver install-deliver \
	clean format lint help FORCE

PROTOCOL_PAGE := $(BUILD)/man/refd-protocol.7

all: $(BIN) $(LIB) $(PROTOCOL_PAGE) $(BUILD)/share/refd/hooks/forward

help:
	@echo 'make               $(BUILD)/bin and $(BUILD)/lib'
	@echo 'make libgit2       librefd-git2 for programs of libgit2; install-libgit2'
	@echo 'make group         refd-group, for a group of nodes (libpq); install-group'
	@echo 'make deliver       refd-deliver, for web hooks (libcurl); install-deliver'
	@echo 'make check         the everyday tests'
	@echo 'make check-long    the long tests, up to two hours: scripts/check-long'
	@echo 'make mutants       plants bugs; checks that the tests notice each bug'
	@echo 'make soak          half an hour of load, new random cases, other processors'
	@echo 'make tests         builds the test programs and runs none'
	@echo 'make bench         how fast it is beside others; BENCH=--quick'
	@echo 'make fuzz          builds the fuzzers into $(BUILD)/fuzz (clang)'
	@echo 'make dist          $(BUILD)/dist: tarball, check sums, bill of materials'
	@echo 'make docs          $(BUILD)/site: documents and manual pages in HTML'
	@echo 'make apt-repository KEY=FINGERPRINT'
	@echo '                   $(BUILD)/apt: the Debian packages, signed'
	@echo 'make install       below PREFIX ($(PREFIX)), inside DESTDIR'
	@echo 'make uninstall     takes the same files away'
	@echo 'make format        rewrites C files with clang-format 19'
	@echo 'make lint          checks walls, options, language, names, format, scripts'
	@echo 'make clean         removes $(BUILD)'
	@echo 'PROFILE=release|debug|asan|tsan|cov   BUILD=DIR   WERROR=1   V=1'

# ---- stamps: files that change only when what they say changes ----

# Objects follow the flags; archives and programs follow their list of
# objects, so that what was made from a source leaves with it.
STAMP_flags   = $(CC) $(ALL_CFLAGS) $(PKG_CFLAGS) $(ALL_LDFLAGS)
STAMP_prefix  = $(BINDIR) $(LIBEXECDIR) $(DATADIR)
STAMP_cli     = $(CLI_OBJS)
STAMP_librefd = $(LIBREFD_OBJS)
STAMP_git2    = $(GIT2_OBJS)
STAMP_deliver = $(DELIVER_OBJS)
STAMP_group   = $(GROUP_OBJS)
STAMP_daemon  = $(DAEMON_OBJS)
STAMP_test    = $(TESTLIB_OBJS)
STAMP_fuzzed  = $(CLANG) $(FUZZ_FLAGS) $(FUZZ_LINK) $(FUZZ_LIBS) $(FUZZED_OBJS)

$(BUILD)/stamp/%: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' $(call quote,$(STAMP_$*)) >$@.new
	@if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi

# ---- objects ----

CLI_OBJS     := $(call objects,$(CLI_SRCS))
LIBREFD_OBJS := $(call objects,$(CLIENT_SRCS) $(PROTO_SRCS))
GIT2_OBJS    := $(call objects,$(GIT2_SRCS))
DELIVER_OBJS := $(call objects,$(DELIVER_SRCS))
LIB_OBJS     := $(call objects,$(LIB_SRCS))
GROUP_OBJS   := $(call objects,$(GROUP_SRCS))
DAEMON_OBJS  := $(call objects,$(DAEMON_SRCS) $(PROTO_SRCS))
TESTLIB_OBJS := $(call objects,$(TESTLIB_SRCS))
UNIT_OBJS    := $(call objects,$(UNIT_SRCS) $(UNIT_MAIN))
HELPER_OBJS  := $(call objects,$(HELPER_SRCS))
BENCH_OBJS   := $(call objects,$(BENCH_SRCS))
FUZZED_OBJS  := $(patsubst %.c,$(BUILD)/fuzz/obj/%.o,$(FUZZED_SRCS))
FUZZ_OBJS    := $(patsubst %.c,$(BUILD)/fuzz/obj/%.o,$(FUZZ_SRCS))
OBJS := $(sort $(CLI_OBJS) $(DELIVER_OBJS) $(GROUP_OBJS) $(LIBREFD_OBJS) $(DAEMON_OBJS) $(TESTLIB_OBJS) \
	$(UNIT_OBJS) $(HELPER_OBJS) $(BENCH_OBJS) $(call objects,$(MAINS)) \
	$(GIT2_OBJS) $(call objects,$(GIT2_TEST_SRCS) tests/double/store.c))

$(BUILD)/obj/%.o: %.c $(BUILD)/stamp/flags
	@mkdir -p $(@D)
	$(say)$(CC) $(ALL_CFLAGS) $(PKG_CFLAGS) $(EXTRA) -MMD -MP -c -o $@ $<

# The shared library is made of the same objects as the static one.
$(LIBREFD_OBJS): EXTRA = -fPIC
$(GIT2_OBJS): EXTRA = -fPIC $(GIT2_CFLAGS)
$(call objects,$(GIT2_TEST_SRCS)): EXTRA = $(GIT2_CFLAGS)
$(GROUP_OBJS): EXTRA = $(PQ_CFLAGS)
$(DELIVER_OBJS): EXTRA = $(CURL_CFLAGS)
$(CLI_OBJS): EXTRA = -DBINDIR='"$(BINDIR)"' -DDATADIR='"$(DATADIR)"' \
	-DLIBEXECDIR='"$(LIBEXECDIR)/refd"'
$(CLI_OBJS): $(BUILD)/stamp/prefix

# ---- libraries ----

ARCHIVES := $(addprefix $(BUILD)/lib/,librefd.a libcli.a libdeliver.a \
	libgroup.a libdaemon.a libtest.a) \
	$(BUILD)/fuzz/libfuzzed.a

$(BUILD)/lib/librefd.a: $(LIBREFD_OBJS) $(BUILD)/stamp/librefd
# For the unit tests: the command without its main().
$(BUILD)/lib/libcli.a: $(filter-out %/client/main.o,$(CLI_OBJS)) \
		$(BUILD)/stamp/cli
$(BUILD)/lib/libdeliver.a: $(DELIVER_OBJS) $(LIB_OBJS) $(BUILD)/stamp/deliver
$(BUILD)/lib/libgroup.a: $(GROUP_OBJS) $(BUILD)/stamp/group
$(BUILD)/lib/libdaemon.a: $(DAEMON_OBJS) $(BUILD)/stamp/daemon
$(BUILD)/lib/libtest.a: $(TESTLIB_OBJS) $(BUILD)/stamp/test
$(BUILD)/fuzz/libfuzzed.a: $(FUZZED_OBJS) $(BUILD)/stamp/fuzzed
$(ARCHIVES):
	@mkdir -p $(@D)
	@rm -f $@
	$(say)$(AR) rcs $@ $(filter %.o,$^)

LIBREFD_MAP := client/librefd/librefd.map

$(BUILD)/lib/librefd.so.$(SOVERSION): $(LIBREFD_OBJS) $(BUILD)/stamp/librefd \
		$(LIBREFD_MAP)
	@mkdir -p $(@D)
	$(say)$(CC) -shared -Wl,-soname,$(@F) $(SHARED_FLAGS) $(ALL_LDFLAGS) \
	    -Wl,--version-script=$(LIBREFD_MAP) -o $@ $(filter %.o,$^)

$(BUILD)/lib/librefd.so: $(BUILD)/lib/librefd.so.$(SOVERSION)
	@ln -sf $(<F) $@

# It shares librefd.so with the program, and libgit2 too.
GIT2_MAP := client/libgit2/librefd-git2.map

$(GIT2_LIB).$(SOVERSION): $(GIT2_OBJS) $(BUILD)/lib/librefd.so \
		$(BUILD)/stamp/git2 $(GIT2_MAP)
	@mkdir -p $(@D)
	$(say)$(CC) -shared -Wl,-soname,$(@F) $(SHARED_FLAGS) $(ALL_LDFLAGS) \
	    -Wl,--version-script=$(GIT2_MAP) -o $@ $(filter %.o,$^) \
	    -L$(@D) -lrefd $(GIT2_LIBS)

$(GIT2_LIB): $(GIT2_LIB).$(SOVERSION)
	@ln -sf $(<F) $@

libgit2: $(GIT2_LIB)

# ---- programs ----

link = $(CC) -pie $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^)

$(BUILD)/bin/refd: $(CLI_OBJS) $(BUILD)/lib/librefd.a $(BUILD)/stamp/cli
	@mkdir -p $(@D)
	$(say)$(link)

$(BUILD)/bin/refd-daemon: $(BUILD)/obj/daemon/main.o $(BUILD)/lib/libdaemon.a
	@mkdir -p $(@D)
	$(say)$(link) $(STORE_LIBS) $(NET_LIBS)

# Without libevent: nothing that needs it may be drawn in here.
$(BUILD)/bin/refd-admin: $(BUILD)/obj/daemon/admin/main.o \
		$(BUILD)/lib/libdaemon.a
	@mkdir -p $(@D)
	$(say)$(link) $(STORE_LIBS)

# A program of its own, which needs libcurl. It stands on the public library as
# a program of a stranger does, and links nothing of the command refd.
$(DELIVER_BIN): $(BUILD)/obj/client/deliver/main.o \
		$(BUILD)/lib/libdeliver.a $(BUILD)/lib/librefd.a
	@mkdir -p $(@D)
	$(say)$(link) $(STORE_LIBS) $(CURL_LIBS)

deliver: $(DELIVER_BIN)

# A program of its own, which needs PostgreSQL's client library.
$(GROUP_BIN): $(BUILD)/obj/daemon/group/service/main.o $(BUILD)/lib/libgroup.a \
		$(BUILD)/lib/libcli.a $(BUILD)/lib/librefd.a
	@mkdir -p $(@D)
	$(say)$(link) $(PQ_LIBS)

group: $(GROUP_BIN)

# ---- the protocol as a manual page ----

# lowdown writes a font that mandoc doesn't know, and a title for a name.
$(PROTOCOL_PAGE): proto/PROTOCOL.md
	@mkdir -p $(@D)
	$(say)lowdown -s -tman --parse-no-super --parse-no-metadata $< | sed \
	    -e 's/\\fC/\\fB/g' -e 's/\\e|/|/g' \
	    -e '/^\.TH/c.TH REFD-PROTOCOL 7 "" "refd $(VERSION)"\n.SH NAME\n$(\
	    )refd-protocol \\- what a client and the daemon of refd say$(\
	    ) to each other' >$@

# ---- tests ----

$(UNIT_BIN): $(BUILD)/%: $(BUILD)/obj/%.o $(call objects,$(UNIT_MAIN)) \
		$(BUILD)/lib/libtest.a $(BUILD)/lib/libdaemon.a \
		$(BUILD)/lib/libdeliver.a $(BUILD)/lib/libgroup.a \
		$(BUILD)/lib/libcli.a $(BUILD)/lib/librefd.a
	@mkdir -p $(@D)
	$(say)$(link) $(TEST_LIBS) $(STORE_LIBS) $(NET_LIBS) $(CURL_LIBS)

# The scheduler alone, with a double of the store.
$(filter $(BUILD)/tests/unit/test_scheduler%,$(UNIT_BIN)): \
	$(BUILD)/obj/tests/double/store.o

$(HELPER_BIN): $(BUILD)/%: $(BUILD)/obj/%.o $(BUILD)/lib/librefd.a
	@mkdir -p $(@D)
	$(say)$(link) $(HELPER_LIBS)

# The ones that need the daemon's own.
$(BUILD)/tests/helper/fill_journal: $(BUILD)/lib/libdaemon.a
$(BUILD)/tests/helper/fill_journal: HELPER_LIBS = $(STORE_LIBS)
$(BUILD)/tests/helper/reftable_tool: $(BUILD)/lib/libtest.a \
	$(BUILD)/lib/libdaemon.a
$(BUILD)/tests/helper/reftable_tool: HELPER_LIBS = $(STORE_LIBS)

# Static: the bench starts it with every process of git.
$(BUILD)/tests/helper/launch_git: HELPER_LIBS = \
	$(if $(SANITIZE),,-static-pie)

$(BENCH_BIN): $(BENCH_OBJS) $(BUILD)/lib/libcli.a $(BUILD)/lib/librefd.a
	@mkdir -p $(@D)
	$(say)$(link) $(STORE_LIBS)

# Linked statically, for the sanitizers and valgrind.
$(BUILD)/tests/libgit2/differ: $(call objects,$(addprefix tests/libgit2/calls_,\
	logs.c refs.c))
$(GIT2_BIN): $(BUILD)/%: $(BUILD)/obj/%.o $(GIT2_OBJS) $(BUILD)/lib/librefd.a
	@mkdir -p $(@D)
	$(say)$(link) $(GIT2_LIBS)

# Loaded into git and the like, so never with a sanitizer of ours.
$(PRELOAD_LIB): $(BUILD)/%.so: %.c $(BUILD)/stamp/flags
	@mkdir -p $(@D)
	$(say)$(CC) $(LANGUAGE) $(WARNINGS) $(CPPFLAGS) $(CFLAGS) -fPIC \
	    -shared -MMD -MP -o $@ $< -ldl

units: $(UNIT_BIN)

tests: all units $(HELPER_BIN) $(PRELOAD_LIB) $(BENCH_BIN) $(GIT2_LIB) \
	$(GIT2_BIN) $(GROUP_BIN) $(DELIVER_BIN)

# tests/fuzz/oss-fuzz/build.sh sets all three.
FUZZ_FLAGS := -g -O1 -fsanitize=address,undefined,fuzzer-no-link \
	-fno-sanitize-recover=all -fno-omit-frame-pointer
FUZZ_LINK   = $(CLANG) $(FUZZ_FLAGS) -fsanitize=fuzzer
FUZZ_LIBS   = $(TEST_LIBS) $(STORE_LIBS)

$(BUILD)/fuzz/obj/%.o: %.c $(BUILD)/stamp/flags $(BUILD)/stamp/fuzzed
	@mkdir -p $(@D)
	$(say)$(CLANG) $(LANGUAGE) $(WARNINGS) $(CPPFLAGS) $(PKG_CFLAGS) \
	    $(FUZZ_FLAGS) -MMD -MP -c -o $@ $<

$(FUZZ_BIN): $(BUILD)/fuzz/%: $(BUILD)/fuzz/obj/tests/fuzz/%.o \
		$(BUILD)/fuzz/libfuzzed.a
	@mkdir -p $(@D)
	$(say)$(FUZZ_LINK) -pthread -Wl,--as-needed -o $@ \
	    $(filter %.o %.a,$^) $(FUZZ_LIBS)

fuzz: $(FUZZ_BIN)

# The runner names the fuzzers as skipped where there is no clang.
HAVE_CLANG = $(shell command -v $(CLANG))
RUN_TESTS = BUILD='$(abspath $(BUILD))' scripts/run-tests --jobs $$(nproc)

check: tests $(if $(HAVE_CLANG),fuzz)
	$(RUN_TESTS) --unit $(BUILD)/tests/unit --fuzz $(BUILD)/fuzz \
	    --scenario $(SCENARIOS)

check-long:
	scripts/check-long

# MUTANTS='barrier_clock log_before' plants these two only.
mutants:
	scripts/mutants $(MUTANTS)

soak: tests
	scripts/deps --processors
	BUILD='$(abspath $(BUILD))' scripts/run-tests \
	    --limit 3600 --scenario tests/soak/*.sh

# How fast, beside others; BENCH='--quick --fs xfs' as scripts/bench has it.
bench: all $(HELPER_BIN) $(PRELOAD_LIB) $(BENCH_BIN)
	scripts/deps --bench
	BUILD='$(abspath $(BUILD))' scripts/bench $(BENCH)

# A release: scripts/dist.
dist: all deliver
	BUILD='$(abspath $(BUILD))' scripts/dist '$(abspath $(BUILD))/dist'

# Of the packages that dpkg-buildpackage has left above the clone.
apt-repository:
	scripts/apt-repository $(call quote,$(KEY)) '$(abspath $(BUILD))/apt'

# The documents and the manual pages for a browser. The protocol is one of the
# documents.
docs:
	rm -rf $(BUILD)/site
	scripts/site $(BUILD)/site $(filter-out $(PROTOCOL_PAGE),$(MAN_PAGES)) \
	    $(GROUP_PAGE) $(DELIVER_PAGE)

# ---- the hooks that repositories share: client/enable/shared_hooks.h ----

# All hooks that git looks for in a directory of hooks, except proc-receive, and
# fsmonitor-watchman, which git runs by the path in core.fsmonitor.
FORWARDED := applypatch-msg commit-msg p4-changelist p4-post-changelist \
	p4-pre-submit p4-prepare-changelist post-applypatch post-checkout \
	post-commit post-index-change post-merge post-receive post-rewrite \
	post-update pre-applypatch pre-auto-gc pre-commit pre-merge-commit \
	pre-push pre-rebase pre-receive prepare-commit-msg push-to-checkout \
	reference-transaction sendemail-validate update
# Into the directory $(1), for the program $(2). Each hook is made aside, because
# a push at this moment must find the old hook or the new one.
make_hooks = $(INSTALL) -D -m 755 client/hooks/forward.sh $(1)/.new && \
	mv -f $(1)/.new $(1)/forward && \
	for hook in $(FORWARDED); do \
	    ln -sf forward $(1)/.new && mv -f $(1)/.new $(1)/$$hook || exit 1; \
	done && \
	ln -sf $(2) $(1)/.new && mv -f $(1)/.new $(1)/proc-receive

$(BUILD)/share/refd/hooks/forward: client/hooks/forward.sh Makefile
	@$(call make_hooks,$(@D),../../../bin/refd)

# ---- installing ----

PUBLIC_HEADERS = $(filter %.h,$(shell $(CC) -I. -MM client/refd.h))
GROUP_PAGE := daemon/group/service/refd-group.8
DELIVER_PAGE := client/deliver/refd-deliver.8
MAN_PAGES := $(filter-out $(DELIVER_PAGE),$(sort $(wildcard client/*.[1-8] \
	client/*/*.[1-8] daemon/*.[1-8]))) $(PROTOCOL_PAGE)
# For Prometheus and Grafana.
METRICS_FILES := daemon/metrics/refd.rules.yml daemon/metrics/dashboard.json
BASH_COMPLETION := $(DATADIR)/bash-completion/completions/refd
ZSH_COMPLETION  := $(DATADIR)/zsh/site-functions/_refd
man_path = $(MANDIR)/man$(patsubst .%,%,$(suffix $(1)))/$(notdir $(1))

define PC_FILE
prefix=$(PREFIX)
libdir=$(LIBDIR)
includedir=$(INCLUDEDIR)

Name: librefd
Description: Client library of refd, the durable writer of git refs
Version: $(VERSION)
Libs: -L$${libdir} -lrefd
Cflags: -I$${includedir}/refd
endef

install: export PC_FILE := $(PC_FILE)
install: all install-units
	$(INSTALL) -d $(DESTDIR)$(BINDIR) $(DESTDIR)$(LIBEXECDIR)/refd \
	    $(DESTDIR)$(LIBDIR)/pkgconfig
	$(INSTALL) -m 755 $(BUILD)/bin/refd $(DESTDIR)$(BINDIR)/.refd.new
	mv -f $(DESTDIR)$(BINDIR)/.refd.new $(DESTDIR)$(BINDIR)/refd
	$(INSTALL) -m 755 $(BUILD)/bin/refd-daemon $(BUILD)/bin/refd-admin \
	    scripts/distro/before-removal \
	    $(DESTDIR)$(LIBEXECDIR)/refd
	$(INSTALL) -m 644 $(BUILD)/lib/librefd.a $(DESTDIR)$(LIBDIR)
	$(INSTALL) -m 755 $(BUILD)/lib/librefd.so.$(SOVERSION) \
	    $(DESTDIR)$(LIBDIR)
	ln -sf librefd.so.$(SOVERSION) $(DESTDIR)$(LIBDIR)/librefd.so
	printf '%s\n' "$$PC_FILE" | $(INSTALL) -m 644 /dev/stdin \
	    $(DESTDIR)$(LIBDIR)/pkgconfig/librefd.pc
	$(foreach h,$(PUBLIC_HEADERS),$(INSTALL) -D -m 644 $(h) \
	    $(DESTDIR)$(INCLUDEDIR)/refd/$(h) &&) true
	$(foreach m,$(MAN_PAGES),$(INSTALL) -D -m 644 $(m) \
	    $(DESTDIR)$(call man_path,$(m)) &&) true
	$(INSTALL) -D -m 644 client/completion/refd.bash \
	    $(DESTDIR)$(BASH_COMPLETION)
	$(INSTALL) -D -m 644 client/completion/_refd \
	    $(DESTDIR)$(ZSH_COMPLETION)
	$(foreach f,$(METRICS_FILES),$(INSTALL) -D -m 644 $(f) \
	    $(DESTDIR)$(DATADIR)/refd/$(notdir $(f)) &&) true
	$(call make_hooks,$(DESTDIR)$(DATADIR)/refd/hooks,$(BINDIR)/refd)

define GIT2_PC_FILE
prefix=$(PREFIX)
libdir=$(LIBDIR)
includedir=$(INCLUDEDIR)

Name: librefd-git2
Description: Programs of libgit2 write refs through refd
Version: $(VERSION)
Requires: $(GIT2_PKGS)
Libs: -L$${libdir} -lrefd-git2
Cflags: -I$${includedir}/refd
endef

install-libgit2: export GIT2_PC_FILE := $(GIT2_PC_FILE)
install-libgit2: libgit2
	$(INSTALL) -d $(DESTDIR)$(LIBDIR)/pkgconfig
	$(INSTALL) -m 755 $(GIT2_LIB).$(SOVERSION) $(DESTDIR)$(LIBDIR)
	ln -sf librefd-git2.so.$(SOVERSION) $(DESTDIR)$(LIBDIR)/librefd-git2.so
	printf '%s\n' "$$GIT2_PC_FILE" | $(INSTALL) -m 644 /dev/stdin \
	    $(DESTDIR)$(LIBDIR)/pkgconfig/librefd-git2.pc
	$(INSTALL) -D -m 644 client/libgit2/refd_git2.h \
	    $(DESTDIR)$(INCLUDEDIR)/refd/client/libgit2/refd_git2.h

# The same unit for one run of another command, at the lowest priority.
verify_unit = sed -e 's/^Description=.*/Description=A comparison of this node with the other nodes of the group/' \
	-e 's/^Type=exec/Type=oneshot\nNice=19\nIOSchedulingClass=idle/' \
	-e 's/ serve$$/ verify/' -e '/^Restart/d' \
	-e '/^\# The program ends/,/^StartLimit/d' -e '/^\[Install\]/,$$d'

install-group: group
	$(INSTALL) -d $(DESTDIR)$(LIBEXECDIR)/refd
	$(INSTALL) -m 755 $(GROUP_BIN) $(DESTDIR)$(LIBEXECDIR)/refd
	$(INSTALL) -D -m 644 $(GROUP_PAGE) \
	    $(DESTDIR)$(call man_path,$(GROUP_PAGE))
	$(INSTALL) -d $(DESTDIR)$(UNITDIR)
	sed -e 's|@BINDIR@|$(BINDIR)|' -e 's|@USER@|$(SERVICE_USER)|' \
	    daemon/group/service/refd-group.service.in \
	    | $(INSTALL) -m 644 /dev/stdin $(DESTDIR)$(UNITDIR)/refd-group.service
	$(verify_unit) $(DESTDIR)$(UNITDIR)/refd-group.service | $(INSTALL) \
	    -m 644 /dev/stdin $(DESTDIR)$(UNITDIR)/refd-group-verify.service
	$(INSTALL) -m 644 daemon/group/service/refd-group-verify.timer \
	    $(DESTDIR)$(UNITDIR)

install-deliver: deliver
	$(INSTALL) -d $(DESTDIR)$(LIBEXECDIR)/refd $(DESTDIR)$(UNITDIR) \
	    $(DESTDIR)$(SYSUSERSDIR)
	$(INSTALL) -m 755 $(DELIVER_BIN) $(DESTDIR)$(LIBEXECDIR)/refd
	$(INSTALL) -D -m 644 $(DELIVER_PAGE) \
	    $(DESTDIR)$(call man_path,$(DELIVER_PAGE))
	sed 's|@BINDIR@|$(BINDIR)|' client/deliver/refd-deliver.service.in \
	    | $(INSTALL) -m 644 /dev/stdin \
	    $(DESTDIR)$(UNITDIR)/refd-deliver.service
	$(INSTALL) -m 644 scripts/distro/refd-deliver.sysusers \
	    $(DESTDIR)$(SYSUSERSDIR)/refd-deliver.conf

# systemd's units, for one account and for any; and what root's daemon needs
# other, which is not in force.
unit = sed -e 's|@BINDIR@|$(BINDIR)|' -e 's|@USER@|$(2)|' -e 's|@WHO@|of $(2)|' \
	-e 's|@DIR@|$(3)|' -e 's|@CONFIG@|$(4)|' -e 's|@UNIT@|$(5)|' \
	daemon/systemd/$(1)
install_units = $(INSTALL) -d $(DESTDIR)$(UNITDIR)/$(1).service.d && \
	$(call unit,refd.socket.in,$(2),$(3),$(4),$(5)) \
	    | $(INSTALL) -m 644 /dev/stdin $(DESTDIR)$(UNITDIR)/$(1).socket && \
	$(call unit,refd.service.in,$(2),$(3),$(4),$(5)) \
	    | $(INSTALL) -m 644 /dev/stdin $(DESTDIR)$(UNITDIR)/$(1).service && \
	$(call unit,before-git.conf,$(2),$(3),$(4),$(1)) \
	    | $(INSTALL) -m 644 /dev/stdin $(DESTDIR)$(UNITDIR)/$(1).service.d/before-git.conf

# The accounts, and the directory of the repositories.
accounts = sed 's|@USER@|$(SERVICE_USER)|g' scripts/distro/$(1) \
	    | $(INSTALL) -m 644 /dev/stdin $(DESTDIR)$(2)

install-units:
	$(call install_units,refd,$(SERVICE_USER),refd,/etc/refd/config,refd)
	$(call install_units,refd@,%i,refd-%i,/etc/refd/%i/config,refd@%i)
	$(INSTALL) -m 644 daemon/systemd/refd-metrics.socket \
	    daemon/systemd/refd-look.timer $(DESTDIR)$(UNITDIR)
	$(call unit,refd-look.service.in,$(SERVICE_USER)) \
	    | $(INSTALL) -m 644 /dev/stdin \
	    $(DESTDIR)$(UNITDIR)/refd-look.service
	$(INSTALL) -d $(DESTDIR)$(SYSUSERSDIR) $(DESTDIR)$(TMPFILESDIR)
	$(call accounts,refd.sysusers,$(SYSUSERSDIR)/refd.conf)
	$(call accounts,refd.tmpfiles,$(TMPFILESDIR)/refd.conf)

uninstall:
	rm -f $(foreach u,refd refd@,$(foreach k,.socket .service \
	    .service.d/before-git.conf,$(DESTDIR)$(UNITDIR)/$(u)$(k)))
	rm -f $(DESTDIR)$(UNITDIR)/refd-metrics.socket \
	    $(DESTDIR)$(UNITDIR)/refd-look.service \
	    $(DESTDIR)$(UNITDIR)/refd-look.timer \
	    $(DESTDIR)$(UNITDIR)/refd-deliver.service \
	    $(DESTDIR)$(UNITDIR)/refd-group.service \
	    $(DESTDIR)$(UNITDIR)/refd-group-verify.service \
	    $(DESTDIR)$(UNITDIR)/refd-group-verify.timer \
	    $(DESTDIR)$(SYSUSERSDIR)/refd.conf \
	    $(DESTDIR)$(SYSUSERSDIR)/refd-deliver.conf \
	    $(DESTDIR)$(TMPFILESDIR)/refd.conf
	for d in refd refd@; do \
	    rmdir $(DESTDIR)$(UNITDIR)/$$d.service.d 2>/dev/null; done; true
	rm -f $(DESTDIR)$(BINDIR)/refd
	rm -f $(foreach l,librefd.a librefd.so librefd.so.$(SOVERSION) \
	    librefd-git2.so librefd-git2.so.$(SOVERSION) pkgconfig/librefd.pc \
	    pkgconfig/librefd-git2.pc,$(DESTDIR)$(LIBDIR)/$(l))
	rm -f $(foreach m,$(MAN_PAGES) $(GROUP_PAGE) $(DELIVER_PAGE),\
	    $(DESTDIR)$(call man_path,$(m)))
	rm -f $(DESTDIR)$(BASH_COMPLETION) $(DESTDIR)$(ZSH_COMPLETION)
	rm -f $(foreach f,$(METRICS_FILES),\
	    $(DESTDIR)$(DATADIR)/refd/$(notdir $(f)))
	rm -rf $(DESTDIR)$(DATADIR)/refd/hooks
	rmdir $(DESTDIR)$(DATADIR)/refd 2>/dev/null; true
	rm -rf $(DESTDIR)$(LIBEXECDIR)/refd $(DESTDIR)$(INCLUDEDIR)/refd

clean:
	rm -rf $(BUILD)

# ---- upkeep ----

C_FILES = $(sort $(wildcard $(foreach d,proto proto/lib client client/* \
	client/libgit2/example daemon daemon/* daemon/*/* daemon/*/*/* \
	tests/double tests/lib tests/unit tests/helper tests/bench tests/fuzz \
	tests/libgit2,$(d)/*.[ch])))

format:
	$(CLANG_FORMAT) -i $(C_FILES)

# The values of the macros do not matter to clang-tidy; .clang-tidy has the list
# of what it looks for.
TIDY_CFLAGS = -std=c11 -D_GNU_SOURCE -I. $(PKG_CFLAGS) $(GIT2_CFLAGS) \
	$(PQ_CFLAGS) $(CURL_CFLAGS) \
	$(foreach m,REFD_VERSION BINDIR DATADIR LIBEXECDIR,-D$m=\"\")

# The format is that of clang-format 19, which Debian 12, 13 and sid have. Other
# versions differ in small things. Some pages are another's name, and the
# protocol's is made.
lint:
	scripts/check-layers
	scripts/check-options
	scripts/check-language --self-test
	scripts/check-language
	scripts/check-references --self-test
	scripts/check-references
	scripts/check-version
	$(CLANG_FORMAT) --dry-run -Werror $(C_FILES) || \
	    { echo "lint: run 'make format' ($(CLANG_FORMAT))" >&2; exit 1; }
	printf '%s\n' $(filter-out tests/%,$(filter %.c,$(C_FILES))) | \
	    xargs -n 16 -P $(shell nproc) sh -c \
	    'exec $(CLANG_TIDY) --quiet "$$@" -- $(TIDY_CFLAGS)' sh
	for mutant in tests/mutants/*.patch; do \
	    patch -p1 -F0 -s --dry-run <$$mutant || { \
	    echo "lint: plant $$mutant anew: its code changed" >&2; exit 1; }; \
	done
	mandoc -T lint -W warning \
	    $(shell grep -L '^\.so ' $(filter-out $(BUILD)/%,$(MAN_PAGES)) \
		$(GROUP_PAGE) $(DELIVER_PAGE))
	printf '%s\n' $(shell grep -sl '^\#!.*sh$$' scripts/*) .ci/run \
	    client/completion/refd.bash client/hooks/forward.sh \
	    $(addprefix scripts/distro/,APKBUILD before-removal refd.initd \
	    refd.pre-deinstall refd.pre-install \
	    image/build image/init-primary.sh image/serve-node image/serve-ssh) \
	    $(wildcard tests/lib/*.sh tests/scenario/*.sh tests/long/*.sh \
		tests/stacks/*.sh tests/fuzz/*/*.sh \
		tests/golden/*.sh tests/soak/*.sh tests/git-shim/*) | \
	    xargs -n 16 -P $(shell nproc) \
	    shellcheck -x -P SCRIPTDIR -e SC2119,SC2120,SC2317

-include $(OBJS:.o=.d) $(FUZZED_OBJS:.o=.d) $(FUZZ_OBJS:.o=.d) \
	$(PRELOAD_LIB:.so=.d)
