/*
 * Opens the store, sets its settings, recovers, and closes the store.
 *
 * The happy path: the state directory and its flock, the boot id, the journal,
 * the failed syncs of this boot, and then recovery of every repository in the
 * journal.
 *
 * What fails: a failed opening returns the reason and leaves nothing open.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/fs_type.h"
#include "daemon/store/admission/admit.h"
#include "daemon/store/checkpoint/checkpointer.h"
#include "daemon/store/history/historian.h"
#include "daemon/store/repos/repo_id.h"
#include "daemon/store/store_internal.h"
#include "daemon/store/sync_failures/suspect_store.h"

const char *store_finding_name(enum store_finding finding)
{
	static const char *const names[] = {
#define X(symbol, name) name,
		STORE_FINDING_TABLE(X)
#undef X
	};

	return names[finding];
}

static int open_state_dir(struct store *s, char **why)
{
	const struct sys *sys = s->sys;
	struct sys_stat st;
	int r;

	r = sys_make_parents(sys, SYS_TRUSTED, s->state_dir, 0755);
	if (r >= 0) {
		r = SYS(sys, mkdirat, SYS_TRUSTED, s->state_dir, 0700);
		r = r == -EEXIST ? 0 : r;
	}
	if (r == 0) {
		s->state_fd = SYS(sys, openat, SYS_TRUSTED, s->state_dir,
		    O_RDONLY | O_DIRECTORY, 0);
		r = s->state_fd < 0 ? s->state_fd :
				      SYS(sys, fstat, s->state_fd, &st);
	}
	if (r == 0 && !repo_owner_is_served(st.uid)) {
		*why = repo_why("the state directory '%s' belongs to uid %u, "
				"and root reads no other account's: run this "
				"as that user",
		    s->state_dir, st.uid);
		return -EPERM;
	}
	if (r == 0) {
		s->state_lock_fd = SYS(sys, openat, s->state_fd, "lock",
		    O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
		r = s->state_lock_fd < 0 ? s->state_lock_fd : 0;
	}
	if (r < 0) {
		*why = repo_why("can't use the state directory '%s': %s: name "
				"a directory that this account may write, by "
				"--state or daemon.state",
		    s->state_dir, strerror(-r));
		return r;
	}
	r = SYS(sys, flock_try, s->state_lock_fd);
	if (r == -EAGAIN)
		*why = repo_why("the state directory '%s' is in use by "
				"another refd: stop that one, or name another "
				"directory by --state",
		    s->state_dir);
	else if (r < 0)
		*why = repo_why("can't lock the state directory '%s': %s",
		    s->state_dir, strerror(-r));
	return r;
}

/* Refuses an unreliable file system, and warns if the content is lost at a
 * reboot. */
static int check_state_fs(struct store *s, char **warning, char **why)
{
	const char *network;
	uint64_t type;
	int r;

	r = SYS(s->sys, fs_type, s->state_fd, &type);
	if (r < 0) {
		*why = repo_why("can't tell what '%s' is on: %s", s->state_dir,
		    strerror(-r));
		return r;
	}
	network = fs_type_network(type);
	if (network != NULL) {
		*why = repo_why("the state directory '%s' is on a network file "
				"system (%s): the journal needs a local disk",
		    s->state_dir, network);
		return -EMEDIUMTYPE;
	}
	if (fs_type_in_memory(type))
		*warning = repo_why("the state directory '%s' is in memory: "
				    "nothing survives a power cut",
		    s->state_dir);
	return 0;
}

static int read_boot_id(struct store *s, char **why)
{
	static const char path[] = "/proc/sys/kernel/random/boot_id";
	size_t len;
	char *buf;
	int r;

	r = sys_read_file(s->sys, SYS_TRUSTED, path, 256, &buf, &len);
	if (r < 0) {
		*why = repo_why("can't read %s: %s", path, strerror(-r));
		return r;
	}
	buf[strcspn(buf, "\n")] = '\0';
	snprintf(s->boot_id, sizeof(s->boot_id), "%s", buf);
	free(buf);
	return 0;
}

static int copy_config(struct store *s, const struct store_config *cfg)
{
	size_t i;

	s->sys = cfg->sys;
	s->state_dir = strdup(cfg->state_dir);
	s->roots = calloc(cfg->nr_roots + 1, sizeof(*s->roots));
	if (s->state_dir == NULL || s->roots == NULL)
		return -ENOMEM;
	for (i = 0; i < cfg->nr_roots; i++) {
		s->roots[i] = strdup(cfg->roots[i]);
		if (s->roots[i] == NULL)
			return -ENOMEM;
	}
	return 0;
}

static void fatal(void *store, const char *why)
{
	store_set_fatal(store, "%s", why);
}

static void committed(void *store, size_t nr)
{
	struct store *s = store;

	checkpointer_published(s->checkpointer, nr);
	historian_note_commit(s->historian);
}

static void retry(void *store)
{
	admissions_wake(((struct store *)store)->admissions);
}

static uint64_t next_token(void *store)
{
	return pipeline_next_token(((struct store *)store)->pipeline);
}

/* ---- the parts ---- */

/* Shares all parts that exist by now. */
static const struct store_parts *share(struct store *s)
{
	s->parts = (struct store_parts){ .sys = s->sys,
		.config = &s->cfg,
		.state_dir = s->state_dir,
		.state_fd = s->state_fd,
		.workers = s->workers,
		.repos = &s->repos,
		.sync_failures = s->sync_failures,
		.rights = &s->rights,
		.log = s->log,
		.journal = s->journal,
		.completions = &s->completions,
		.barriers = &s->barriers,
		.deferred = s->deferred,
		.pipeline = s->pipeline,
		.packer = s->packer,
		.admissions = s->admissions,
		.replica = s->replica,
		.store = s,
		.fatal = fatal,
		.committed = committed,
		.retry = retry,
		.has_object = admit_has_object,
		.next_token = next_token };
	return &s->parts;
}

int store_open_deferred(struct store *s)
{
	s->deferred = deferred_new(share(s));
	return s->deferred == NULL ? -ENOMEM : 0;
}

int store_open_pipeline(struct store *s)
{
	s->pipeline = pipeline_new(share(s));
	return s->pipeline == NULL ? -ENOMEM : 0;
}

void store_open_barriers(struct store *s)
{
	barriers_init(&s->barriers, share(s));
}

/* The checkpointer tells the packer of synced file systems, so the packer is
 * made first. */
int store_open_checkpointer(struct store *s)
{
	s->packer = packer_new(share(s));
	if (s->packer == NULL)
		return -ENOMEM;
	s->looker = looker_new(share(s));
	s->checkpointer = s->looker != NULL ? checkpointer_new(share(s)) : NULL;
	if (s->checkpointer == NULL)
		return -ENOMEM;
	return 0;
}

static int check_journal(void *arg, struct journal *j, char **why)
{
	const struct store *s = arg;
	struct repos repos;
	int r;

	repos_init(&repos, s->sys, j, (const char *const *)s->roots,
	    s->cfg.nr_roots, 0);
	r = repos_check_checkpoints(&repos, s->state_dir, why);
	repos_done(&repos);
	return r;
}

/* The pool serves its sources in this order, so updates come before history. */
static int make_last_parts(struct store *s)
{
	s->admissions = admissions_new(share(s));
	if (s->admissions == NULL)
		return -ENOMEM;
	s->historian = historian_new(share(s));
	return s->historian != NULL ? 0 : -ENOMEM;
}

void store_init_replica(struct store *s)
{
	s->alone = (struct replica){ &replica_single, &s->parts };
	s->replica = s->cfg.replica != NULL ? s->cfg.replica : &s->alone;
	s->replica->host = &s->parts;
}

bool store_shares_rows(struct store *s, uint64_t *lsn)
{
	*lsn = journal_shared_lsn(s->journal);
	return journal_shares_rows(s->journal);
}

uint64_t store_joined_ms(struct store *s)
{
	return journal_joined_ms(s->journal);
}

int store_join(struct store *s, uint64_t lsn, uint64_t joined_ms,
    journal_given_fn *next, void *arg)
{
	int r = journal_join(s->journal, lsn, joined_ms, next, arg);

	return r > 0 ? -EIO : r;
}

struct claims {
	struct repos *repos;
	int err; /* the first one */
};

/* Makes the marks of a repository anew. A repository that is not there now is
 * passed over, because its next opening makes the marks, too. An owner can make
 * a claim fail, so an error is only noted, and the repositories of other owners
 * are claimed all the same. */
static int claim_again(void *arg, const struct journal_repo *known)
{
	struct claims *claims = arg;
	struct repos *repos = claims->repos;
	struct repo *repo;
	int r;

	if (repos_get_known(repos, known, &repo) != 0)
		return 0;
	r = REPLICA(repos->replica, claim, repos->sys, repo, NULL);
	if (claims->err == 0)
		claims->err = r;
	repo_put(repos, repo);
	repos_trim(repos, INT64_MAX / 2);
	return 0;
}

int store_leave(struct store *s, uint8_t uuid[GROUP_UUID_BYTES])
{
	struct claims claims = { .repos = &s->repos };
	int r;

	/* Alone, this machine would lose these updates, and rows that wait. */
	if (deferred_lacking(s->deferred, NULL) > 0)
		return -EBUSY;
	r = journal_leave(s->journal);
	/* The marks go only after the journal has left. If the marks went first
	 * and the journal then stayed, a start that shares rows would miss the
	 * marks. */
	if (r == 0)
		r = journal_each_repo(s->journal, claim_again, &claims);
	if (r == 0)
		r = claims.err;
	journal_shared_uuid(s->journal, uuid);
	return r > 0 ? -EIO : r;
}

int store_open(const struct store_config *cfg, struct store **out, char **why)
{
	struct journal_config journal;
	struct commit_log_config log;
	char *warning = NULL;
	struct store *s;
	int r;

	*why = NULL;
	s = calloc(1, sizeof(*s));
	if (s != NULL)
		s->workers = workers_new(STORE_WORKERS);
	if (s == NULL || s->workers == NULL) {
		if (cfg->replica != NULL)
			REPLICA(cfg->replica, free);
		free(s);
		return -ENOMEM;
	}
	s->cfg = *cfg;
	store_init_replica(s);
	s->state_fd = s->state_lock_fd = -1;
	rights_init(&s->rights, cfg->durability);
	mutex_init(&s->mutex, MUTEX_QUEUES);
	completions_init(&s->completions, cfg->sys, cfg->wake, cfg->wake_arg);
	r = copy_config(s, cfg);
	if (r == 0)
		r = open_state_dir(s, why);
	if (r == 0)
		r = check_state_fs(s, &warning, why);
	if (r == 0)
		r = read_boot_id(s, why);
	if (r == 0)
		this_boot_find(s->sys, &s->this_boot);
	journal = (struct journal_config){ .sys = s->sys,
		.dir = s->state_dir,
		.boot_id = s->boot_id,
		.adopt = cfg->adopt,
		.wal_room = CHECKPOINTER_WAL_ROOM,
		.check = check_journal,
		.check_arg = s };
	log = (struct commit_log_config){ .journal = &journal,
		.failed = store_log_failed,
		.arg = s };
	if (r == 0)
		r = commit_log_open(&log, &s->log, why);
	if (r == 0)
		r = commit_log_claim(s->log, why);
	if (r == 0) {
		s->journal = commit_log_journal(s->log);
		repos_init(&s->repos, s->sys, s->journal,
		    (const char *const *)s->roots, s->cfg.nr_roots,
		    s->cfg.max_open_repos);
		s->repos.replica = s->replica;
		r = store_open_sync_failures(s, &warning, why);
	}
	if (r == 0)
		r = store_open_deferred(s);
	if (r == 0)
		r = store_open_pipeline(s);
	if (r == 0) {
		store_open_barriers(s);
		r = store_open_checkpointer(s);
	}
	if (r == 0)
		r = make_last_parts(s);
	if (r == 0) {
		share(s);
		r = REPLICA(s->replica, open, why);
	}
	if (r != 0) {
		free(warning);
		store_free(s);
		return r < 0 ? r : -EIO;
	}
	*why = warning;
	*out = s;
	return 0;
}

void store_free(struct store *s)
{
	size_t i;

	if (s == NULL)
		return;
	assert(!s->started);
	checkpointer_free(s->checkpointer);
	packer_free(s->packer);
	looker_free(s->looker);
	REPLICA(s->replica, free);
	admissions_free(s->admissions);
	pipeline_free(s->pipeline);
	deferred_free(s->deferred);
	if (s->journal != NULL)
		repos_done(&s->repos);
	historian_free(s->historian);
	commit_log_close(s->log);
	if (s->sync_failures != NULL)
		suspect_store_done(s->sync_failures);
	sync_failures_free(s->sync_failures);
	if (s->state_lock_fd >= 0)
		SYS(s->sys, close, s->state_lock_fd);
	if (s->state_fd >= 0)
		SYS(s->sys, close, s->state_fd);
	for (i = 0; s->roots != NULL && i < s->cfg.nr_roots; i++)
		free(s->roots[i]);
	free(s->roots);
	free(s->recover_why);
	free(s->state_dir);
	rights_done(&s->rights);
	barriers_done(&s->barriers);
	workers_free(s->workers);
	completions_done(&s->completions);
	mutex_destroy(&s->mutex);
	free(s);
}

int store_free_keep_lock(struct store *s)
{
	int fd = s->state_lock_fd;

	s->state_lock_fd = -1;
	store_free(s);
	return fd;
}

int store_set(struct store *s, const struct store_settings *settings)
{
	int r = rights_set(&s->rights, &settings->rights);

	if (r != 0)
		return r;
	checkpointer_set_intervals(s->checkpointer,
	    settings->checkpoint_interval_ns, settings->durability_interval_ns);
	packer_set_threshold(s->packer, settings->pack_refs);
	return 0;
}

static void note(void *store, const struct journal_repo *repo, uint64_t nr,
    int err, bool lacks_refs)
{
	struct store *s = store;

	deferred_note(s->deferred, repo, nr, err);
	if (lacks_refs)
		deferred_note_lacking(s->deferred, repo->id);
}

int store_recover(struct store *s, const struct store_report *report,
    uint64_t *deferred)
{
	struct store_recovery rec = { .sys = s->sys,
		.repos = &s->repos,
		.log = s->log,
		.this_boot = &s->this_boot,
		.report = report,
		.has_object = admit_has_object,
		.next_token = next_token,
		.note = note,
		.arg = s };
	int r = recover_all(&rec, deferred);

	free(s->recover_why);
	s->recover_why = rec.why;
	return r;
}

char *store_recover_why(struct store *s)
{
	return s->recover_why != NULL ? strdup(s->recover_why) :
					journal_damage(s->journal);
}

void store_tell_awaiting(struct store *s)
{
	deferred_publish(s->deferred);
}

/* ---- given up ---- */

struct named_repo {
	const char *name;
	size_t nr; /* found */
	uint64_t id;
	char *uuids; /* of all that were found */
};

static int match(void *arg, const struct journal_repo *repo)
{
	struct named_repo *wanted = arg;
	char hex[33], *before = wanted->uuids;

	repo_id_hex(repo->uuid, hex);
	if (strcmp(wanted->name, hex) != 0 &&
	    strcmp(wanted->name, repo->path) != 0)
		return 0;
	wanted->uuids = repo_why("%s%s%s", before != NULL ? before : "",
	    before != NULL ? ", " : "", hex);
	free(before);
	wanted->nr++;
	wanted->id = repo->id;
	return wanted->uuids != NULL ? 0 : -ENOMEM;
}

int store_find_known(struct store *s, const char *repo, uint64_t *id,
    char **uuids)
{
	struct named_repo wanted = { .name = repo };
	int r;

	r = journal_each_repo(s->journal, match, &wanted);
	if (r == 0 && wanted.nr != 1)
		r = wanted.nr == 0 ? -ENOENT : -ENOTUNIQ;
	*id = wanted.id;
	*uuids = wanted.uuids;
	return r > 0 ? -EIO : r;
}

static int count_row(void *arg, const struct journal_row *row)
{
	(void)row;
	++*(uint64_t *)arg;
	return 0;
}

int store_count_deferred(struct store *s, uint64_t id, uint64_t *nr)
{
	int r;

	*nr = 0;
	r = journal_each_deferred(s->journal, id, count_row, nr);
	return r > 0 ? -EIO : r;
}

int store_forget(struct store *s, uint64_t id, uint64_t *nr)
{
	int r;

	/* The node would count as a whole copy, with old refs. */
	if (deferred_is_lacking(s->deferred, id))
		return -EBUSY;
	r = journal_drop_deferred(s->journal, id, nr);
	return r > 0 ? -EIO : r;
}
