/*
 * What becomes of records whose file system failed to sync.
 *
 * The kernel tells of a failed write-back once, and calls the pages clean: from
 * then on memory says one thing and the disk perhaps another. So those records
 * get the recovery of a cut, in the running daemon:
 *
 *	fail	fs_fail(): nobody gets a repository there any more; what is
 *		under way ends
 *	park	once nobody has one, by the next checkpoint or admission: all
 *		its records, marked as lost, durably
 *	go	its descriptors are closed, so that it can be unmounted
 *	redo	by whoever would write there, and with every checkpoint
 *		(parked.c): the file system is opened anew, by path, and must
 *		sync; the page cache is dropped, every value written again
 *
 * The same where a repository is opened that has records of another life of
 * its file system: it was unmounted in between, or somebody mounted another.
 *
 * What fails: the journal. Then nothing is forgotten, and it is tried again.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/recover_internal.h"
#include "daemon/store/store_internal.h"

struct parking {
	struct store *store;
	const struct fs *fs;     /* that its records are on; or */
	const struct repo *repo; /* whose are on any but its own */
	struct rows rows;
	struct notes notes;
};

static bool is_wanted(const struct parking *p, const struct replay_row *row)
{
	if (row->row.kind != JOURNAL_PART)
		return false;
	return p->fs != NULL ? row->row.mount == p->fs->mount :
			       row->row.mount != p->repo->fs->mount;
}

static int park_repo(void *arg, const struct journal_repo *known)
{
	struct parking *p = arg;
	struct replay_row *row;
	uint64_t nr = 0;
	int r = 0;

	if (p->repo != NULL && p->repo->id != known->id)
		return 0;
	for (row = rows_of(&p->rows, known->id); row != NULL && r == 0;
	     row = row->next)
		if (is_wanted(p, row))
			r = notes_park_row(&p->notes, row, JOURNAL_MOUNT_LOST,
			    &nr);
	if (r == 0 && nr > 0)
		awaiting_park(p->store, known, nr,
		    p->fs != NULL ?
			"its file system failed to sync; nothing is written "
			"there until its records are redone" :
			"its file system is another mount than its records "
			"were written on; they are redone first");
	return r;
}

static int park(struct parking *p)
{
	struct store *s = p->store;
	struct recovery rec = { .journal = s->journal };
	uint64_t last_lsn;
	int r;

	pthread_rwlock_rdlock(&s->journal_lock);
	r = rows_read(s->journal, &p->rows, &last_lsn);
	if (r == 0)
		r = journal_each_repo(s->journal, park_repo, p);
	if (r == 0)
		r = notes_write(&p->notes, &rec);
	pthread_rwlock_unlock(&s->journal_lock);
	notes_done(&p->notes);
	rows_done(&p->rows);
	if (r == 0)
		awaiting_publish(s);
	return r > 0 ? -EIO : r;
}

static bool is_open_elsewhere(struct store *s, const struct repo *repo)
{
	const struct repo *other;

	pthread_mutex_lock(&s->repos.mutex);
	for (other = s->repos.open; other != NULL; other = other->next)
		if (other != repo && other->id == repo->id && other->refs > 0)
			break;
	pthread_mutex_unlock(&s->repos.mutex);
	return other != NULL;
}

int failed_look(struct store *s, struct repo *repo)
{
	struct parking p = { .store = s, .repo = repo };
	bool is_elsewhere;
	int r;

	if (repo->is_looked_at)
		return 0;
	pthread_mutex_lock(&s->parking);
	pthread_rwlock_rdlock(&s->journal_lock);
	r = journal_is_elsewhere(s->journal, repo->id, repo->fs->mount,
	    &is_elsewhere);
	pthread_rwlock_unlock(&s->journal_lock);
	if (r == 0 && is_elsewhere)
		r = is_open_elsewhere(s, repo) ? -EAGAIN : park(&p);
	pthread_mutex_unlock(&s->parking);
	repo->is_looked_at = r == 0;
	return r > 0 ? -EIO : r;
}

void failed_park(struct store *s)
{
	struct parking p = { .store = s };
	struct fs *fs;

	pthread_mutex_lock(&s->parking);
	pthread_mutex_lock(&s->repos.mutex);
	fs = s->repos.fs;
	pthread_mutex_unlock(&s->repos.mutex);
	for (; fs != NULL; fs = fs->next) {
		p.fs = fs;
		if (atomic_load(&fs->failed) && !fs->gone &&
		    !fs_is_in_use(&s->repos, fs) && park(&p) == 0)
			fs_let_go(&s->repos, fs);
	}
	pthread_mutex_unlock(&s->parking);
}
