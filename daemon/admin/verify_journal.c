/*
 * The journal of the repository, read while the daemon may run.
 *
 * Happy path: refd/id names the journal, and the journal knows the repository.
 * A daemon runs, or no record awaits recovery, and no redo is deferred.
 *
 * Failures: an unreadable or different journal is a finding, and the other
 * checks run without a journal. Nothing is repaired then, because records of
 * the repository may await recovery.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/admin/verify_internal.h"
#include "daemon/store/repos/repo_checkpoint.h"
#include "daemon/store/repos/repo_id.h"

/* ---- the daemon ---- */

/* /proc/locks omits processes of other PID namespaces, so the lock is tried,
 * and released at once. */
static bool is_daemon_up(struct verify *v)
{
	int dir = SYS(v->sys, openat, SYS_TRUSTED, v->opt->state,
	    O_RDONLY | O_DIRECTORY, 0);
	int r,
	    fd = dir < 0 ?
	    dir :
	    SYS(v->sys, openat, dir, "lock", O_RDONLY | O_NOFOLLOW, 0);

	r = fd < 0 ? fd : SYS(v->sys, flock_try, fd);
	if (fd >= 0)
		SYS(v->sys, close, fd);
	if (dir >= 0)
		SYS(v->sys, close, dir);
	return r == -EAGAIN;
}

static int note_start(void *arg, const struct journal_start *start)
{
	struct verify *v = arg;

	v->last_start = start->id;
	return 0;
}

/* ---- recovery ---- */

static char *deferred_key(const char *worktree, const char *name)
{
	return repo_why("%s/%s", worktree, name);
}

bool verify_is_deferred(const struct verify *v, const struct ref_place *place,
    const char *name)
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
	struct ref_place place;
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
		place = (struct ref_place){ v->repo.fd, m->worktree };
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

/* Of a damaged journal, the newer rows are known. */
static int read_rows(struct verify *v, uint64_t id)
{
	/* The file is read first, because a daemon may go on. */
	const uint64_t checkpoint =
	    repo_checkpoint_read(v->sys, v->repo.refd_fd, v->journal).lsn;
	uint64_t last = journal_last_lsn(v->journal);
	int r;

	r = verify_rows_of(v->rows, id, &v->repo_rows);
	if (v->repo_rows == NULL)
		return r;
	if (last < v->rows->newest)
		last = v->rows->newest;
	if (checkpoint > last)
		verify_found(v, FOUND_JOURNAL_OLDER, "", "refd/checkpoint",
		    "the journal in '%s' is an older copy, or damaged: it ends "
		    "at record %llu, and the repository has seen %llu of it",
		    v->opt->state, (unsigned long long)last,
		    (unsigned long long)checkpoint);
	v->is_unread = false;
	v->awaits =
	    !v->is_daemon_up && verify_rows_await(v->rows, v->repo_rows);
	if (v->awaits)
		verify_found(v, FOUND_AWAITS_RECOVERY, "", "",
		    "no daemon runs on '%s', and records of its journal may "
		    "await recovery",
		    v->opt->state);
	return 0;
}

static int learn_state(struct verify *v, const uint8_t uuid[16])
{
	struct journal_repo known = { .path = NULL };
	int r;

	v->is_daemon_up = is_daemon_up(v);
	r = journal_read_repo(v->rows->fold.reader, 0, uuid, &known);
	free(known.path);
	if (r == -ENOENT) {
		v->is_unread = false;
		verify_found(v, FOUND_JOURNAL_UNKNOWN, "", "refd/id",
		    "its journal in '%s' does not know it", v->opt->state);
		return 0;
	}
	if (r == 0 && v->is_daemon_up)
		r = journal_each_start(v->journal, note_start, v);
	if (r == 0)
		r = journal_each_deferred(v->journal, known.id, note_deferred,
		    v);
	return r == 0 ? read_rows(v, known.id) : r;
}

/* ---- opening ---- */

int verify_view(const struct verify_options *opt, struct journal **journal,
    char **why)
{
	const struct journal_config cfg = { .sys = opt->sys,
		.dir = opt->state,
		.boot_id = "",
		.adopt = true };
	struct sys_stat st;

	/* Root reads no journal of another account. */
	if (sys_stat_trusted(opt->sys, opt->state, &st) == 0 &&
	    !repo_owner_is_served(st.uid))
		return -EACCES;
	return journal_view(&cfg, journal, why);
}

enum finding_id verify_journal_failed(int r)
{
	return r == -EBADMSG || r == -EUCLEAN ? FOUND_JOURNAL_DAMAGED :
						FOUND_JOURNAL_UNREADABLE;
}

static void open_it(struct verify *v, const struct repo_id *id)
{
	char *why = NULL, hex[33];
	int r;

	r = verify_rows_open(v->rows, &why);
	v->journal = v->rows->journal;
	if (r == 0 && !repo_id_is_unclaimed(id) &&
	    memcmp(journal_uuid(v->journal), id->journal, 16) != 0) {
		repo_id_hex(id->journal, hex);
		verify_found(v, FOUND_JOURNAL_OTHER, "", "refd/id",
		    "it belongs to the journal %s, and that in '%s' is "
		    "another",
		    hex, v->opt->state);
		v->journal = NULL;
		return;
	}
	if (r == 0)
		r = learn_state(v, id->uuid);
	if (r < 0 && v->journal != NULL)
		why = journal_damage(v->journal);
	if (r < 0) {
		verify_found(v, verify_journal_failed(r), "", "",
		    "the journal in '%s' is not looked at: %s", v->opt->state,
		    why != NULL ? why : strerror(-r));
		v->journal = NULL;
	}
	free(why);
}

void verify_journal_open(struct verify *v)
{
	struct repo_id id;
	int r = v->repo.refd_fd;

	if (r >= 0)
		r = repo_id_read(v->sys, v->repo.refd_fd, &id);
	v->is_unread = r != -ENOENT;
	if (r == 0)
		open_it(v, &id);
	else if (r != -ENOENT)
		verify_found(v, FOUND_ID_BROKEN, "", "refd/id",
		    r == -EBADMSG ? "it is not what refd wrote there" :
				    "it can't be read");
}
