#include "tests/lib/store_rig.h"

#include <check.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "daemon/store/journal/journal.h"
#include "daemon/store/journal/record.h"
#include "tests/lib/tmp.h"
#include "tests/lib/txn_help.h"

struct store *sr_store;
const struct sys *sr_sys = &sys_kernel;
void (*sr_event)(enum store_event event, const char *place, const char *why);
char sr_other[4200];
char sr_state[4096], sr_repo[4096], sr_commit[REFD_OID_MAX_HEX + 1];
uint64_t sr_found_count;
int64_t sr_interval_ns = 20 * 1000000;
uint64_t sr_pack_refs;
enum refd_durability sr_mode = REFD_DURABILITY_JOURNAL;
const char *sr_inner_root;
static int wake_fd;

static void wake(void *arg)
{
	(void)arg;
	eventfd_write(wake_fd, 1);
}

static void found(void *arg, const struct store_found *found)
{
	(void)arg;
	(void)found;
	sr_found_count++;
}

static void progress(void *arg, uint64_t done, uint64_t total)
{
	(void)arg;
	(void)done;
	(void)total;
}

void sr_set(int64_t interval_ns)
{
	const struct store_settings settings = {
		.rights = { .general = sr_mode },
		.checkpoint_interval_ns = interval_ns,
		.durability_interval_ns = interval_ns,
		.pack_refs = sr_pack_refs,
	};

	ck_assert_int_eq(store_set(sr_store, &settings), 0);
}

uint64_t sr_open_deferred(void)
{
	const char *roots[] = { tmp_root, sr_inner_root };
	struct store_config cfg = {
		.sys = sr_sys,
		.state_dir = sr_state,
		.event = sr_event,
		.roots = roots,
		.nr_roots = sr_inner_root != NULL ? 2 : 1,
		.durability = sr_mode,
		.prepare_max_ns = 10 * 1000000,
		.max_open_repos = 8,
		.wake = wake,
	};
	struct store_report report = { found, progress, NULL };
	uint64_t deferred;
	char *why;

	ck_assert_msg(store_open(&cfg, &sr_store, &why) == 0, "%s", why);
	/* Only a warning. */
	free(why);
	sr_set(sr_interval_ns);
	ck_assert_int_eq(store_recover(sr_store, &report, &deferred), 0);
	ck_assert_int_eq(store_start(sr_store), 0);
	return deferred;
}

void sr_open(void)
{
	ck_assert_uint_eq(sr_open_deferred(), 0);
}

void sr_close(void)
{
	ck_assert_int_eq(store_stop(sr_store), 0);
	store_free(sr_store);
	sr_store = NULL;
}

void sr_close_crashed(void)
{
	tmp_run("mkdir -m 700 killed && cp -a state/[!h]* killed");
	sr_close();
	tmp_run("rm -r state && mv killed state");
}

void sr_make_commit(const char *message, char hex[REFD_OID_MAX_HEX + 1])
{
	char *out;

	out =
	    tmp_output("GIT_DIR=r.git GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a "
		       "GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a "
		       "git commit-tree -m %s "
		       "$(GIT_DIR=r.git git hash-object -t tree -w /dev/null)",
		message);
	ck_assert_uint_ge(strlen(out), REFD_SHA1_HEX);
	memcpy(hex, out, REFD_SHA1_HEX);
	hex[REFD_SHA1_HEX] = '\0';
	free(out);
}

int sr_other_fs_type(const struct sys *sys, int fd, uint64_t *type)
{
	(void)sys;
	(void)fd;
	*type = 0;
	return 0;
}

void sr_setup_closed(void)
{
	tmp_setup();
	snprintf(sr_state, sizeof(sr_state), "%s/state", tmp_root);
	snprintf(sr_repo, sizeof(sr_repo), "%s/r.git", tmp_root);
	tmp_run("git init -q --bare -b main r.git");
	sr_make_commit("x", sr_commit);
	wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
}

void sr_setup(void)
{
	sr_setup_closed();
	sr_open();
}

void sr_make_other(void)
{
	snprintf(sr_other, sizeof(sr_other), "%s/other/s.git", tmp_root);
	tmp_run("mkdir other && cp -r r.git other/s.git && "
		"rm -rf other/s.git/refd");
}

bool sr_is_on_other(const struct sys *sys, int fd)
{
	char path[4096];

	return sys_kernel.fd_path(sys, fd, path, sizeof(path)) == 0 &&
	    strstr(path, "/other/") != NULL;
}

int sr_disk_mount_id(const struct sys *sys, int fd, uint64_t *id)
{
	int r = sys_kernel.mount_id(sys, fd, id);

	*id += sr_is_on_other(sys, fd) ? 1000 : 0;
	return r;
}

void sr_teardown(void)
{
	if (sr_store != NULL)
		sr_close();
	close(wake_fd);
	tmp_teardown();
}

struct txn *sr_make_txn(const struct refd_txid *id, const char *git_dir,
    const char *name, const char *hex)
{
	struct refd_update update = { .action = REFD_UPDATE, .name = name };
	struct refd_request req = { .verb = REFD_VERB_TRANSACTION,
		.request_id = 1,
		.txid = *id,
		.git_dir = git_dir,
		.umask = 022,
		.updates = &update,
		.nr_updates = 1 };
	struct txn *txn;

	ck_assert_int_eq(refd_oid_parse(hex, REFD_FORMAT_SHA1, &update.new_oid),
	    0);
	txn = txn_help_own(&req);
	txn->times.checked_ns = SYS(sr_sys, now_mono);
	return txn;
}

struct store_done sr_wait_done(void)
{
	struct pollfd pfd = { .fd = wake_fd, .events = POLLIN };
	struct store_done done;
	eventfd_t value;

	while (!store_reap(sr_store, &done)) {
		ck_assert_int_eq(poll(&pfd, 1, 60000), 1);
		eventfd_read(wake_fd, &value);
	}
	return done;
}

struct txn *sr_admit(const struct refd_txid *id, const char *git_dir,
    const char *name, const char *hex)
{
	struct txn *txn = sr_make_txn(id, git_dir, name, hex);
	struct store_done done;

	store_admit(sr_store, txn);
	done = sr_wait_done();
	ck_assert_ptr_eq(done.admitted, txn);
	return txn;
}

void sr_done_with(struct txn *txn)
{
	if (txn->repo != NULL)
		store_release(sr_store, txn->repo);
	txn->repo = NULL;
	txn_free(txn);
}

void sr_done_with_replayed(struct txn *txn)
{
	ck_assert(txn->replayed);
	ck_assert_int_eq(txn->updates[0].status, REFD_OK);
	sr_done_with(txn);
}

struct batch *sr_make_batch(struct txn *txn)
{
	struct batch *b = calloc(1, sizeof(*b));

	b->slices = calloc(1, sizeof(*b->slices));
	b->nr_slices = 1;
	b->slices[0].txn = txn;
	b->slices[0].updates = calloc(1, sizeof(*b->slices[0].updates));
	b->slices[0].updates[0] = &txn->updates[0];
	b->slices[0].nr = 1;
	return b;
}

void sr_apply(struct txn *txn)
{
	struct store_done done;

	ck_assert_int_eq(txn->refused, REFD_OK);
	store_apply(sr_store, sr_make_batch(txn));
	done = sr_wait_done();
	ck_assert_ptr_nonnull(done.applied);
	batch_free(done.applied);
}

void sr_await(sem_t *sem)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 30;
	ck_assert_int_eq(sem_timedwait(sem, &until), 0);
}

struct wanted_repo {
	const char *path;
	uint64_t id; /* 0: not found */
};

static int match_repo(void *arg, const struct journal_repo *repo)
{
	struct wanted_repo *wanted = arg;

	if (strcmp(repo->path, wanted->path) == 0)
		wanted->id = repo->id;
	return 0;
}

void sr_park(const char *path, const char *worktree, const char *name,
    const char *hex)
{
	struct record_member member = { .answers = true,
		.name = name,
		.worktree = worktree,
		.action = RECORD_WRITE };
	struct record rec = { .committer = "a <a> 1 +0000",
		.message = "",
		.file_mode = 0644,
		.dir_mode = 0755,
		.nr_updates = 1,
		.members = &member,
		.nr_members = 1 };
	struct journal_row row = { .kind = JOURNAL_DEFERRED,
		.locked_at_ns = INT64_MAX,
		.final = true };
	struct journal_config cfg = { .sys = &sys_kernel,
		.dir = sr_state,
		.boot_id = "another" };
	struct wanted_repo wanted = { path, 0 };
	struct journal *journal;
	char *why;

	ck_assert_int_eq(refd_oid_parse(hex, REFD_FORMAT_SHA1, &member.new_oid),
	    0);
	ck_assert_int_eq(journal_open(&cfg, &journal, &why), 0);
	ck_assert_int_eq(journal_claim(journal, &why), 0);
	ck_assert_int_eq(journal_each_repo(journal, match_repo, &wanted), 0);
	ck_assert_uint_ne(wanted.id, 0);
	row.repo = wanted.id;
	row.body = record_encode(&rec, &row.len);
	ck_assert_ptr_nonnull(row.body);
	ck_assert_int_eq(journal_commit(journal, &row, 1, true), 0);
	free((void *)(uintptr_t)row.body);
	ck_assert_int_eq(journal_close(journal), 0);
}
