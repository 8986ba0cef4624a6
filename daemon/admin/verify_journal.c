/*
 * The journal of the repository, read while the daemon may run.
 *
 * Happy path: refd/id names the journal, and the journal knows the repository.
 * A daemon runs, or no record awaits recovery. No redo is deferred.
 *
 * Failures: an unreadable or different journal is a finding, and the other
 * checks run without a journal.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/admin/verify_internal.h"
#include "daemon/store/repos/repo_id.h"
#include "daemon/store/repos/repo_checkpoint.h"
#include "proto/lib/array.h"

/* ---- the daemon ---- */

/* /proc/locks omits processes of other PID namespaces. So the lock is also
 * tried, and released at once. */
static bool is_locked(struct verify *v, int state_fd)
{
	int fd, r;

	if (verify_flock_holder(v, state_fd, "lock") > 0)
		return true;
	fd = SYS(v->sys, openat, state_fd, "lock", O_RDONLY | O_NOFOLLOW, 0);
	if (fd < 0)
		return false;
	r = SYS(v->sys, flock_try, fd);
	SYS(v->sys, close, fd);
	return r == -EAGAIN;
}

static bool is_daemon_up(struct verify *v)
{
	int fd = SYS(v->sys, openat, SYS_TRUSTED, v->opt->state,
	    O_RDONLY | O_DIRECTORY, 0);
	bool is_up = false;

	if (fd >= 0) {
		is_up = is_locked(v, fd);
		SYS(v->sys, close, fd);
	}
	return is_up;
}

static int note_start(void *arg, const struct journal_start *start)
{
	struct verify *v = arg;

	v->last_start = start->id;
	return 0;
}

static int note_repo(void *arg, const struct journal_repo *repo)
{
	struct verify *v = arg;

	if (memcmp(repo->uuid, v->repo.uuid, 16) == 0)
		v->journal_repo = repo->id;
	return 0;
}

/* ---- members ---- */

struct taken_back {
	uint64_t lsn;
	uint32_t index;
};

struct abort_reader {
	struct verify *v;
	struct taken_back *aborts;
	size_t nr, size;
	verify_member_fn *fn;
	void *arg;
	uint64_t last;
	uint64_t group_lsn; /* of the rows so far */
};

/* Rows that came after the opening of the view may have a higher LSN of the
 * group than the view. */
static void check_group(struct abort_reader *rd, const struct journal_row *row)
{
	struct verify *v = rd->v;
	uint64_t highest = journal_group_lsn(v->journal);

	if (row->group_lsn == 0)
		return;
	/* In a first check, verify_found() would only note a suspect. */
	if (!v->has_wrong_group && v->subject == NULL &&
	    (row->group_lsn == rd->group_lsn ||
		(row->group_lsn > highest &&
		    row->lsn <= journal_last_lsn(v->journal)))) {
		verify_found(v, FOUND_JOURNAL_GROUP, "", "",
		    "record %llu of the journal in '%s' has LSN %llu of the "
		    "group: the record before has %llu, and the journal %llu",
		    (unsigned long long)row->lsn, v->opt->state,
		    (unsigned long long)row->group_lsn,
		    (unsigned long long)rd->group_lsn,
		    (unsigned long long)highest);
		v->has_wrong_group = true;
	}
	rd->group_lsn = row->group_lsn;
}

static int keep_abort(struct abort_reader *rd, uint64_t lsn, uint32_t index)
{
	struct taken_back *grown =
	    array_room(rd->aborts, rd->nr, &rd->size, sizeof(*grown));

	if (grown == NULL)
		return -ENOMEM;
	rd->aborts = grown;
	rd->aborts[rd->nr++] = (struct taken_back){ lsn, index };
	return 0;
}

static int note_aborts(void *arg, const struct journal_row *row)
{
	struct abort_reader *rd = arg;
	struct record rec;
	size_t i;
	int r;

	check_group(rd, row);
	if (row->kind != JOURNAL_ABORT || row->repo != rd->v->journal_repo)
		return 0;
	r = record_decode(row->body, row->len, &rec);
	if (r < 0)
		return r;
	for (i = 0; i < rec.nr_members && r == 0; i++)
		r = keep_abort(rd, row->refers_to, rec.members[i].index);
	record_done(&rec);
	return r;
}

static int compare_aborts(const void *va, const void *vb)
{
	const struct taken_back *a = va, *b = vb;

	if (a->lsn != b->lsn)
		return a->lsn < b->lsn ? -1 : 1;
	return (a->index > b->index) - (a->index < b->index);
}

static bool is_taken_back(const struct abort_reader *rd, uint64_t lsn,
    uint32_t index)
{
	struct taken_back key = { lsn, index };

	return rd->nr > 0 &&
	    bsearch(&key, rd->aborts, rd->nr, sizeof(key), compare_aborts) !=
	    NULL;
}

static int each_member(void *arg, const struct journal_row *row)
{
	struct abort_reader *rd = arg;
	const struct record_member *m;
	struct record rec;
	size_t i;
	int r;

	rd->last = row->lsn;
	if (row->kind != JOURNAL_SLICE || row->repo != rd->v->journal_repo)
		return 0;
	r = record_decode(row->body, row->len, &rec);
	if (r < 0)
		return r;
	for (i = 0; i < rec.nr_members && r == 0; i++) {
		m = &rec.members[i];
		if (m->status == REFD_OK &&
		    (m->action == RECORD_WRITE || m->action == RECORD_DELETE) &&
		    !is_taken_back(rd, row->lsn, m->index))
			r = rd->fn(rd->arg, row, &rec, m);
	}
	record_done(&rec);
	return r;
}

int verify_each_member(struct verify *v, uint64_t after, verify_member_fn *fn,
    void *arg, uint64_t *last)
{
	struct abort_reader rd = { .v = v,
		.fn = fn,
		.arg = arg,
		.last = after };
	int r;

	if (v->journal == NULL || v->journal_repo == 0)
		return 0;
	/* An abort record follows the aborted row. */
	r = journal_scan(v->journal, after, note_aborts, &rd);
	if (rd.nr > 0)
		qsort(rd.aborts, rd.nr, sizeof(*rd.aborts), compare_aborts);
	if (r == 0)
		r = journal_scan(v->journal, after, each_member, &rd);
	free(rd.aborts);
	*last = rd.last;
	return r;
}

/* ---- recovery ---- */

static char *deferred_key(const char *worktree, const char *name)
{
	return repo_why("%s/%s", worktree, name);
}

bool verify_is_deferred(const struct verify *v,
    const struct verify_place *place, const char *name)
{
	const size_t len = strlen(place->worktree);
	size_t i;

	for (i = 0; i < v->nr_deferred; i++)
		if (strncmp(v->deferred[i], place->worktree, len) == 0 &&
		    v->deferred[i][len] == '/' &&
		    strcmp(v->deferred[i] + len + 1, name) == 0)
			return true;
	return false;
}

static int keep_deferred(struct verify *v, const struct record_member *m)
{
	char **grown;

	grown = realloc(v->deferred, (v->nr_deferred + 1) * sizeof(char *));
	if (grown == NULL)
		return -ENOMEM;
	v->deferred = grown;
	grown[v->nr_deferred] = deferred_key(m->worktree, m->name);
	if (grown[v->nr_deferred] == NULL)
		return -ENOMEM;
	v->nr_deferred++;
	return 0;
}

static int note_deferred(void *arg, const struct journal_row *row)
{
	struct verify *v = arg;
	const struct record_member *m;
	char buf[REFD_PATH_MAX];
	struct verify_place place;
	struct record rec;
	size_t i;
	int r;

	r = record_decode(row->body, row->len, &rec);
	if (r < 0)
		return r;
	for (i = 0; i < rec.nr_members && r == 0; i++) {
		m = &rec.members[i];
		if (m->status != REFD_OK || m->action == RECORD_NOTHING)
			continue;
		place = (struct verify_place){ v->repo.fd, m->worktree };
		verify_found(v, FOUND_DEFERRED,
		    verify_ref_name(&place, m->name, buf), "",
		    "record %llu could not be redone yet, because of a lock of "
		    "another writer, or of its disk",
		    (unsigned long long)row->refers_to);
		r = keep_deferred(v, m);
	}
	record_done(&rec);
	return r;
}

static int count_row(void *arg, const struct journal_row *row)
{
	struct verify *v = arg;

	if (row->repo != v->journal_repo || row->kind != JOURNAL_SLICE)
		return 0;
	v->awaits = true;
	return 1;
}

/* CHECKPOINT: the record of the last checkpoint of the repository. */
static int learn_state(struct verify *v, uint64_t checkpoint)
{
	int r;

	r = journal_each_start(v->journal, note_start, v);
	if (r == 0)
		r = journal_each_repo(v->journal, note_repo, v);
	if (r != 0)
		return r;
	if (v->journal_repo == 0) {
		verify_found(v, FOUND_JOURNAL_UNKNOWN, "", "refd/id",
		    "its journal in '%s' does not know it", v->opt->state);
		return 0;
	}
	if (checkpoint > journal_last_lsn(v->journal))
		verify_found(v, FOUND_JOURNAL_OLDER, "", "refd/checkpoint",
		    "the journal in '%s' is an older copy, or damaged: it ends "
		    "at record %llu, and the repository has seen %llu of it",
		    v->opt->state,
		    (unsigned long long)journal_last_lsn(v->journal),
		    (unsigned long long)checkpoint);
	r = journal_each_deferred(v->journal, v->journal_repo, note_deferred,
	    v);
	if (r == 0 && !v->is_daemon_up) {
		r = journal_scan(v->journal, journal_forgotten(v->journal),
		    count_row, v);
		r = r > 0 ? 0 : r;
	}
	if (v->awaits)
		verify_found(v, FOUND_AWAITS_RECOVERY, "", "",
		    "no daemon runs on '%s', and records of its journal may "
		    "await recovery",
		    v->opt->state);
	return r;
}

/* ---- opening ---- */

static void open_it(struct verify *v, const struct repo_id *id)
{
	struct journal_config cfg = { .sys = v->sys,
		.dir = v->opt->state,
		.boot_id = "",
		.adopt = true };
	char *why = NULL, hex[33];
	struct sys_stat st;
	uint64_t checkpoint = 0;
	int r;

	/* Root reads no journal of another account. */
	if (sys_stat_trusted(v->sys, v->opt->state, &st) == 0 &&
	    !repo_owner_is_served(st.uid))
		r = -EACCES;
	else
		r = journal_view(&cfg, &v->journal, &why);
	if (r == 0 && memcmp(journal_uuid(v->journal), id->journal, 16) != 0) {
		repo_id_hex(id->journal, hex);
		verify_found(v, FOUND_JOURNAL_OTHER, "", "refd/id",
		    "it belongs to the journal %s, and that in '%s' is "
		    "another",
		    hex, v->opt->state);
		verify_journal_close(v);
		return;
	}
	if (r == 0)
		checkpoint =
		    repo_checkpoint_read(v->sys, v->repo.refd_fd, v->journal);
	/* The daemon may have gone on since the view began. */
	if (r == 0 && checkpoint > journal_last_lsn(v->journal)) {
		verify_journal_close(v);
		r = journal_view(&cfg, &v->journal, &why);
	}
	if (r == 0) {
		memcpy(v->repo.uuid, id->uuid, 16);
		v->is_daemon_up = is_daemon_up(v);
		r = learn_state(v, checkpoint);
	}
	if (r < 0 && v->journal != NULL)
		why = journal_damage(v->journal);
	if (r < 0) {
		verify_found(v, FOUND_JOURNAL_UNREADABLE, "", "",
		    "the journal in '%s' is not looked at: %s", v->opt->state,
		    why != NULL ? why : strerror(-r));
		verify_journal_close(v);
	}
	free(why);
}

void verify_journal_open(struct verify *v)
{
	struct repo_id id;
	int r = -ENOENT;

	if (v->repo.refd_fd >= 0)
		r = repo_id_read(v->sys, v->repo.refd_fd, &id);
	if (r == 0)
		open_it(v, &id);
	else if (r != -ENOENT)
		verify_found(v, FOUND_ID_BROKEN, "", "refd/id",
		    r == -EBADMSG ? "it is not what refd wrote there" :
				    "it can't be read");
}

void verify_journal_close(struct verify *v)
{
	journal_view_close(v->journal);
	v->journal = NULL;
	v->journal_repo = 0;
}
