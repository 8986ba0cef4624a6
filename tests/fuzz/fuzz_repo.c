/*
 * A repository in which any file may have any content: the input changes the
 * files (tests/lib/hostile_entries.h) before a store starts, after recovery,
 * and between admission and publishing. The store also serves a second
 * repository. Proves that recovery, admission and publishing end, that the
 * second repository is served, that nothing outside the repositories is changed
 * or revealed, and that no descriptor is lost.
 *
 *	input = options (1), updates (1), entries
 *
 * options: 1: a daemon was killed between the flush and the renames; 2: the
 * machine was restarted since, which is the same without the page cache; 4: one
 * atomic transaction; 8: also from a linked worktree.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "daemon/store/store.h"
#include "tests/lib/hostile_entries.h"
#include "tests/lib/hostile_repo.h"
#include "tests/lib/tree_image.h"
#include "tests/lib/txn_help.h"

#define SHA1      REFD_FORMAT_SHA1
#define BOOT_PATH "/proc/sys/kernel/random/boot_id"
#define GONE      "0000000000000000000000000000000000000000"
#define WAIT_MS   30000
#define OPTIONS   2 /* bytes */
#define ROOM_MAX  ((size_t)256 * 1024)

enum { KILLED = 1, REBOOTED = 2, ATOMIC = 4, WORKTREE = 8 };

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max,
    unsigned seed);

const char *__asan_default_options(void);

/* A run starts some 30 threads, and this option would need a mapping for each
 * thread. */
const char *__asan_default_options(void)
{
	return "detect_stack_use_after_return=0";
}

static void expect(bool ok, const char *what)
{
	if (!ok) {
		fprintf(stderr, "fuzz_repo: %s\n", what);
		abort();
	}
}

/* ---- the machine ---- */

static const char *top;
static char repo[4096], state[4096], other_repo[4096], worktree[4096],
    root[4096];

static struct sys machine;
static atomic_int boot; /* number of the present boot */
static char boot_path[4096];
static int repo_fd, state_fd, other_fd, outside_fd, canary_fd;
static struct images {
	struct tree_image *repo, *state, *other;
} clean, killed;
static atomic_bool is_killed_next;

static int machine_openat(const struct sys *sys, int dir_fd, const char *path,
    int flags, mode_t mode)
{
	(void)sys;
	if (strcmp(path, BOOT_PATH) == 0)
		path = boot_path;
	return SYS(&sys_kernel, openat, dir_fd, path, flags, mode);
}

static int machine_mount_id(const struct sys *sys, int fd, uint64_t *id)
{
	(void)sys;
	(void)fd;
	*id = 100 + (uint64_t)atomic_load(&boot);
	return 0;
}

static void take_images(struct images *images)
{
	images->repo = tree_image_take(repo_fd);
	images->state = tree_image_take(state_fd);
	images->other = tree_image_take(other_fd);
}

/* The first rename to the name of a ref comes after the flush. */
static int machine_renameat(const struct sys *sys, int old_fd, const char *old,
    int new_fd, const char *new)
{
	char to[4096];

	(void)sys;
	if (old_fd != new_fd &&
	    SYS(&sys_kernel, fd_path, new_fd, to, sizeof(to)) == 0 &&
	    strncmp(to, repo, strlen(repo)) == 0 &&
	    atomic_exchange(&is_killed_next, false)) {
		take_images(&killed);
	}
	return SYS(&sys_kernel, renameat, old_fd, old, new_fd, new);
}

/* As on a full disk, the WAL gets no zeros: 24 MiB that each run would write,
 * copy and read. */
static ssize_t machine_pwrite(const struct sys *sys, int fd, const void *buf,
    size_t len, off_t offset)
{
	(void)sys;
	if (len > ROOM_MAX)
		return -ENOSPC;
	return SYS(&sys_kernel, pwrite, fd, buf, len, offset);
}

static void start_machine(int nr)
{
	FILE *file = fopen(boot_path, "w");

	atomic_store(&boot, nr);
	expect(file != NULL, boot_path);
	fprintf(file, "boot-%d\n", nr);
	expect(fclose(file) == 0, boot_path);
}

/* ---- the store ---- */

static int wake_fd;
static bool may_say; /* the input contains the secret */

static void hear(const char *text)
{
	expect(may_say || text == NULL || strstr(text, HOSTILE_SECRET) == NULL,
	    "a message tells what is outside");
}

static void wake(void *arg)
{
	(void)arg;
	eventfd_write(wake_fd, 1);
}

static void found(void *arg, const struct store_found *f)
{
	(void)arg;
	hear(f->text);
	hear(f->ref);
}

static void progress(void *arg, uint64_t done, uint64_t total)
{
	(void)arg;
	(void)done;
	(void)total;
}

static void event(enum store_event what, const char *place, const char *why)
{
	(void)what;
	hear(place);
	hear(why);
}

static struct store *open_store(void)
{
	const char *roots[] = { root };
	struct store_config cfg = {
		.sys = &machine,
		.state_dir = state,
		.event = event,
		.found = found,
		.roots = roots,
		.nr_roots = 1,
		.durability = REFD_DURABILITY_JOURNAL,
		.prepare_max_ns = 10 * 1000000,
		.max_open_repos = 4,
		.wake = wake,
	};
	const struct store_settings settings = {
		.rights = { .general = REFD_DURABILITY_JOURNAL },
		.checkpoint_interval_ns = INT64_C(3600) * 1000000000,
		.durability_interval_ns = INT64_C(3600) * 1000000000,
	};
	struct store_report report = { found, progress, NULL };
	struct store *store;
	uint64_t deferred;
	char *why;

	if (store_open(&cfg, &store, &why) < 0)
		expect(false, why);
	free(why);
	expect(store_set(store, &settings) == 0, "the settings fit");
	expect(store_recover(store, &report, &deferred) == 0,
	    "the store recovers");
	return store;
}

static struct store_done wait_done(struct store *store)
{
	struct pollfd pfd = { .fd = wake_fd, .events = POLLIN };
	struct store_done done;
	eventfd_t value;

	/* libFuzzer's timer interrupts poll(). */
	while (!store_reap(store, &done)) {
		expect(poll(&pfd, 1, WAIT_MS) != 0, "all comes back in time");
		eventfd_read(wake_fd, &value);
	}
	return done;
}

/* ---- the updates ---- */

static const struct wish {
	const char *name, *hex, *old, *target;
} wishes[] = {
	{ "refs/heads/new", HOSTILE_COMMIT, NULL, NULL },
	{ "refs/heads/a", HOSTILE_PACKED, HOSTILE_COMMIT, NULL },
	{ "refs/heads/packed", GONE, NULL, NULL },
	{ "HEAD", NULL, NULL, "refs/heads/new" },
	{ "refs/tags/t", HOSTILE_TAG, NULL, NULL },
	{ "refs/tags/p", HOSTILE_DELTA, NULL, NULL },
	{ "refs/heads/d/e", HOSTILE_ABSENT, NULL, NULL },
	{ "refs/heads/a2", GONE, NULL, NULL },
};
#define WISHES (sizeof(wishes) / sizeof(wishes[0]))

static void fill_in(struct refd_update *u, const struct wish *wish)
{
	memset(u, 0, sizeof(*u));
	u->name = wish->name;
	u->target = wish->target;
	u->no_deref = wish->target != NULL;
	u->has_old = wish->old != NULL;
	u->action = wish->target != NULL ? REFD_SYMREF_UPDATE : REFD_UPDATE;
	if (wish->hex != NULL && strcmp(wish->hex, GONE) == 0)
		u->action = REFD_DELETE;
	else if (wish->hex != NULL)
		expect(!refd_oid_parse(wish->hex, SHA1, &u->new_oid), "an oid");
	if (wish->old != NULL)
		expect(!refd_oid_parse(wish->old, SHA1, &u->old_oid), "an oid");
}

static struct txn *make_txn(const char *git_dir, const struct wish *of,
    unsigned mask, bool atomic)
{
	struct refd_update updates[WISHES];
	struct refd_request req = { .verb = REFD_VERB_TRANSACTION,
		.request_id = 1,
		.git_dir = git_dir,
		.umask = 022,
		.atomic = atomic,
		.message = "m",
		.committer = "A <a@example.com> 1700000000 +0000",
		.updates = updates };
	size_t i;

	refd_txid_make(&req.txid);
	for (i = 0; i < WISHES; i++)
		if (mask >> i & 1)
			fill_in(&updates[req.nr_updates++], &of[i]);
	return txn_help_own(&req);
}

/* Returns NULL if admission has decided all updates. */
static struct batch *make_batch(struct txn *txn)
{
	struct batch *b = calloc(1, sizeof(*b));
	struct txn_slice *slice = b == NULL ? NULL : calloc(1, sizeof(*slice));
	size_t i;

	expect(slice != NULL, "memory");
	b->slices = slice;
	b->nr_slices = 1;
	slice->txn = txn;
	slice->updates = calloc(txn->nr_updates, sizeof(struct txn_update *));
	expect(slice->updates != NULL, "memory");
	for (i = 0; i < txn->nr_updates && txn->refused == REFD_OK; i++)
		if (txn->updates[i].status == REFD_PENDING)
			slice->updates[slice->nr++] = &txn->updates[i];
	if (slice->nr > 0)
		return b;
	batch_free(b);
	return NULL;
}

static void hear_txn(const struct txn *txn)
{
	size_t i;

	hear(txn->why);
	for (i = 0; i < txn->nr_updates; i++) {
		hear(txn->updates[i].text);
		hear(txn->updates[i].locked_path);
	}
}

static void admit(struct store *store, struct txn *const *txns, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++)
		store_admit(store, txns[i]);
	for (i = 0; i < nr; i++)
		expect(wait_done(store).admitted != NULL, "an admission");
}

static void apply(struct store *store, struct txn *const *txns, size_t nr)
{
	struct store_done done;
	struct batch *b;
	size_t i, given = 0;

	for (i = 0; i < nr; i++) {
		b = make_batch(txns[i]);
		if (b == NULL)
			continue;
		store_apply(store, b);
		given++;
	}
	for (; given > 0; given--) {
		done = wait_done(store);
		expect(done.applied != NULL, "a batch");
		batch_free(done.applied);
	}
}

static void done_with(struct store *store, struct txn *txn)
{
	hear_txn(txn);
	if (txn->repo != NULL)
		store_release(store, txn->repo);
	txn->repo = NULL;
	txn_free(txn);
}

/* ---- a run ---- */

static const struct wish others_wish = { "refs/heads/main", HOSTILE_PACKED,
	NULL, NULL };
static const struct wish worktrees_wish = { "HEAD", HOSTILE_PACKED, NULL,
	NULL };

/* Serves a transaction of each repository, in separate batches at the same
 * time, then the transaction of the worktree. */
static void serve(struct store *store, const uint8_t *data, size_t size)
{
	unsigned options = data[0];
	struct txn *txns[3] = {
		make_txn(repo, wishes, data[1], options & ATOMIC),
		make_txn(other_repo, &others_wish, 1, false),
		make_txn(worktree, &worktrees_wish, 1, false),
	};
	size_t nr = options & WORKTREE ? 3 : 2, i;

	admit(store, txns, nr);
	hostile_entries_make(repo_fd, top, 2, data + OPTIONS, size - OPTIONS);
	apply(store, txns, 2);
	apply(store, txns + 2, nr - 2);
	expect(may_say || txns[1]->updates[0].status == REFD_OK,
	    "the other repository is served");
	for (i = 0; i < 3; i++)
		done_with(store, txns[i]);
}

static size_t count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	size_t nr = 0;

	while (readdir(dir) != NULL)
		nr++;
	closedir(dir);
	return nr;
}

static void run(const uint8_t *data, size_t size)
{
	const struct images *images = data[0] & KILLED ? &killed : &clean;
	struct store *store;

	tree_image_lay_out(images->repo, repo_fd);
	tree_image_lay_out(images->state, state_fd);
	tree_image_lay_out(images->other, other_fd);
	start_machine(data[0] & REBOOTED ? 2 : 1);
	hostile_entries_make(repo_fd, top, 0, data + OPTIONS, size - OPTIONS);
	store = open_store();
	expect(store_start(store) == 0, "the store starts");
	hostile_entries_make(repo_fd, top, 1, data + OPTIONS, size - OPTIONS);
	serve(store, data, size);
	expect(store_fatal(store) == NULL, "the journal is well");
	expect(store_stop(store) == 0, "the store stops");
	store_free(store);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *outside, *canary, *outside_now, *canary_now;
	size_t nr_fds = count_fds();

	if (size < OPTIONS || data[1] == 0)
		return -1;
	may_say = memmem(data, size, HOSTILE_SECRET, strlen(HOSTILE_SECRET)) !=
		NULL ||
	    memmem(data, size, HOSTILE_OTHER, strlen(HOSTILE_OTHER)) != NULL;
	outside = tree_image_describe(outside_fd);
	canary = tree_image_describe(canary_fd);
	run(data, size);
	outside_now = tree_image_describe(outside_fd);
	canary_now = tree_image_describe(canary_fd);
	expect(strcmp(outside, outside_now) == 0, "nothing outside changes");
	expect(strcmp(canary, canary_now) == 0, "nothing beside it changes");
	expect(count_fds() == nr_fds, "no descriptor is left open");
	free(outside);
	free(canary);
	free(outside_now);
	free(canary_now);
	return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max,
    unsigned seed)
{
	if (size < OPTIONS) {
		data[0] = (uint8_t)seed;
		data[1] = 0xff;
		return OPTIONS;
	}
	if (seed % 16 == 0) {
		data[seed >> 4 & 1] ^= (uint8_t)(1u << (seed >> 5 & 7));
		return size;
	}
	return OPTIONS +
	    hostile_entries_mutate(data + OPTIONS, size - OPTIONS,
		max - OPTIONS, seed / 16, LLVMFuzzerMutate);
}

/* ---- once ---- */

static int open_at(const char *below)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", top, below);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	expect(fd >= 0, path);
	return fd;
}

/* Two initial states: of a stopped store, and of a store that was killed at its
 * first rename. */
static void make_states(void)
{
	static const uint8_t nothing[OPTIONS] = { WORKTREE, 0x10 };
	static const uint8_t all[OPTIONS] = { WORKTREE, 0x8f };
	struct store *store;
	unsigned i;

	for (i = 0; i < 2; i++) {
		start_machine(1);
		store = open_store();
		expect(store_start(store) == 0, "the store starts");
		atomic_store(&is_killed_next, i == 1);
		serve(store, i == 0 ? nothing : all, OPTIONS);
		expect(store_stop(store) == 0, "the store stops");
		store_free(store);
		if (i == 0) {
			take_images(&clean);
		}
	}
	expect(killed.repo != NULL, "a store is killed");
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	top = hostile_repo_make();
	snprintf(root, sizeof(root), "%s/srv", top);
	snprintf(repo, sizeof(repo), "%s/srv/r.git", top);
	snprintf(state, sizeof(state), "%s/state", top);
	snprintf(boot_path, sizeof(boot_path), "%s/boot_id", top);
	snprintf(worktree, sizeof(worktree), "%s/worktrees/w", repo);
	snprintf(other_repo, sizeof(other_repo), "%s/" HOSTILE_OTHER, root);
	repo_fd = open_at("srv/r.git");
	state_fd = open_at("state");
	other_fd = open_at("srv/" HOSTILE_OTHER);
	outside_fd = open_at("out");
	canary_fd = open_at("srv/canary");
	wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	machine = sys_kernel;
	machine.openat = machine_openat;
	machine.mount_id = machine_mount_id;
	machine.renameat = machine_renameat;
	machine.pwrite = machine_pwrite;
	make_states();
	return 0;
}
