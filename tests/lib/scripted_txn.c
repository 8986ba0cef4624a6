#include "tests/lib/scripted_txn.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/store/files/format/reflog.h"
#include "daemon/store/publish/edit.h"

#define MEMBERS_MAX 16

struct record_member scripted_member(enum record_action action,
    const char *name, char old, char new_c)
{
	return (struct record_member){ .action = action,
		.name = name,
		.worktree = "",
		.had_old = old != '0',
		.old_oid = world_oid(old),
		.new_oid = world_oid(new_c),
		.log = action != RECORD_DELETE };
}

struct record_member scripted_symref(const char *name, const char *target)
{
	struct record_member m = scripted_member(RECORD_WRITE, name, '1', '1');

	m.target = target;
	m.answers = true;
	return m;
}

struct record_member scripted_in(const char *worktree, struct record_member m)
{
	m.worktree = worktree;
	return m;
}

struct scripted_work {
	struct scripted_txn *h;
	const struct sys *sys;
	struct repo *repo;
	struct token token;
	struct record rec;
	char committer[80];
	const struct record_member *members;
	size_t nr;
	struct edit edits[MEMBERS_MAX];
};

static int stage(struct edit *e, const struct record_member *m)
{
	int fd = edit_stage(e, &m->new_oid, m->target, 0644);

	return fd < 0 ? fd : SYS(e->sys, close, fd);
}

static int prepare(struct scripted_work *k)
{
	char path[REFD_PATH_MAX];
	struct reflog_file log;
	bool will_log, made;
	unsigned made_dirs;
	size_t i;
	int r;

	r = token_init(&k->token, k->sys, k->repo->stage_fd,
	    pipeline_next_token(k->h->w->store.pipeline));
	for (i = 0; i < k->nr && r == 0; i++)
		if (k->members[i].action == RECORD_WRITE)
			r = stage(&k->edits[i], &k->members[i]);
	for (i = 0; i < k->nr && r == 0; i++)
		r = edit_lock(&k->edits[i], 0755);
	for (i = 0; i < k->nr && r == 0; i++)
		if (k->members[i].log) {
			log = edit_log(&k->edits[i], path);
			log.create = true;
			log.file_mode = 0644;
			log.dir_mode = 0755;
			r = reflog_prepare(&log, &will_log, &made, &made_dirs);
		}
	return r;
}

static int commit(struct scripted_work *k)
{
	struct journal_row row = { .kind = JOURNAL_SLICE,
		.repo = k->repo->id,
		.mount = k->repo->fs->mount,
		.token = k->token.id,
		.final = true };
	int r;

	k->rec.members = (struct record_member *)(uintptr_t)k->members;
	k->rec.nr_members = k->nr;
	refd_txid_make(&k->h->txid);
	row.txid = k->h->txid;
	r = token_locked_at(&k->token, &row.locked_at_ns);
	if (r < 0)
		return r;
	row.body = record_encode(&k->rec, &row.len);
	assert(row.body != NULL);
	r = journal_commit(k->h->w->store.journal, &row, 1, true);
	free((void *)(uintptr_t)row.body);
	k->h->lsn = row.lsn;
	return r > 0 ? -EIO : r;
}

static int append(struct scripted_work *k, size_t i)
{
	struct edit *e = &k->edits[i];
	int r;

	if (!k->members[i].log)
		return 0;
	r = edit_append(e, &k->rec, &k->members[i]);
	if (e->has_log_fd)
		SYS(e->sys, close, e->log_fd);
	e->has_log_fd = false;
	return r;
}

static int place(struct scripted_work *k, size_t i)
{
	struct edit *e = &k->edits[i];
	int r = 0;

	if (k->members[i].action == RECORD_WRITE)
		r = edit_place(e);
	if (k->members[i].action == RECORD_DELETE) {
		r = edit_remove_log(e);
		if (r == 0)
			r = edit_remove(e, true);
	}
	return r;
}

/* Publishes the members from FIRST up to END: one update. All values are in
 * place before any lock is removed. */
static int publish(struct scripted_work *k, size_t first, size_t end)
{
	size_t i;
	int r = 0;

	for (i = first; i < end && r == 0; i++)
		r = append(k, i);
	for (i = first; i < end && r == 0; i++)
		r = place(k, i);
	for (i = first; i < end && r == 0; i++)
		r = edit_unlock(&k->edits[i]);
	return r;
}

static int publish_all(struct scripted_work *k)
{
	size_t i, end;
	int r = 0;

	for (i = 0; i < k->nr && r == 0 && k->h->atomic; i++)
		if (k->members[i].action == RECORD_WRITE &&
		    !k->members[i].had_old)
			r = edit_link(&k->edits[i]);
	for (i = 0; i < k->nr && r == 0; i = end) {
		if (i >= k->h->publish)
			return -EAGAIN;
		for (end = i + 1; end < k->nr; end++)
			if (k->members[end].index != k->members[i].index)
				break;
		r = publish(k, i, end);
	}
	for (i = 0; i < k->nr && r == 0; i++)
		r = edit_discard(&k->edits[i]);
	if (r == 0)
		token_done(&k->token);
	return r;
}

int scripted_apply(struct scripted_txn *h, const struct record_member *members,
    size_t nr)
{
	struct scripted_work k = { .h = h, .sys = h->w->sys, .nr = nr };
	size_t i;
	int r = 0;

	assert(nr <= MEMBERS_MAX);
	snprintf(k.committer, sizeof(k.committer),
	    "A U Thor <a@example.org> %u +0000", 1700000000 + h->w->seconds++);
	k.members = members;
	k.rec.committer = k.committer;
	k.rec.message = "hand";
	k.rec.file_mode = 0644;
	k.rec.dir_mode = 0755;
	k.rec.object_format = world_format();
	k.rec.atomic = h->atomic;
	for (i = 0; i < nr; i++)
		if (members[i].index >= k.rec.nr_updates)
			k.rec.nr_updates = members[i].index + 1;
	k.repo = world_repo(h->w, h->repo != NULL ? h->repo : WORLD_REPO);
	if (k.repo == NULL)
		return -EIO;
	for (i = 0; i < nr; i++) {
		k.edits[i] = (struct edit){ .sys = k.sys,
			.format = world_format(),
			.token = &k.token,
			.name = members[i].name,
			.dirfd = repo_open_worktree(k.sys, k.repo,
			    members[i].worktree != NULL ? members[i].worktree :
							  ""),
			.value_nr = (unsigned)i };
		r = k.edits[i].dirfd < 0 ? k.edits[i].dirfd : r;
	}
	if (r == 0)
		r = prepare(&k);
	if (r == 0)
		r = commit(&k);
	if (r == 0)
		r = publish_all(&k);
	for (i = 0; i < nr; i++)
		if (k.edits[i].dirfd >= 0 && k.edits[i].dirfd != k.repo->fd)
			SYS(k.sys, close, k.edits[i].dirfd);
	repo_put(&h->w->store.repos, k.repo);
	return r;
}

int scripted_log_lines(struct world *w, const char *path, char old, char new_c)
{
	struct refd_oid have[2], want[2] = { world_oid(old), world_oid(new_c) };
	const enum refd_object_format format = world_format();
	const size_t hex = refd_object_format_hex(format);
	char *text, *line, *rest;
	int count = 0;
	size_t len;

	text = memfs_read(w->fs, path, &len);
	if (text == NULL)
		return 0;
	if (strlen(text) != len || (len > 0 && text[len - 1] != '\n'))
		count = -1;
	rest = text;
	while (count >= 0 && (line = strsep(&rest, "\n")) != NULL) {
		if (line[0] == '\0')
			continue;
		if (strlen(line) < 2 * hex + 2 ||
		    refd_oid_parse(line, format, &have[0]) < 0 ||
		    refd_oid_parse(line + hex + 1, format, &have[1]) < 0)
			count = -1;
		else
			count += refd_oid_eq(&have[0], &want[0]) &&
			    refd_oid_eq(&have[1], &want[1]);
	}
	free(text);
	return count;
}

void scripted_git_writes(struct world *w, const char *path, const char *text)
{
	const struct sys *sys = memfs_other(w->fs);
	char lock[512];
	int fd, r;

	memfs_advance(w->fs, 1000000000);
	snprintf(lock, sizeof(lock), "%s.lock", path);
	fd =
	    SYS(sys, openat, AT_FDCWD, lock, O_WRONLY | O_CREAT | O_EXCL, 0644);
	assert(fd >= 0);
	r = SYS(sys, write_all, fd, text, strlen(text));
	assert(r == 0);
	SYS(sys, close, fd);
	r = SYS(sys, renameat, AT_FDCWD, lock, AT_FDCWD, path);
	assert(r == 0);
	memfs_advance(w->fs, 1000000000);
}

void scripted_sync(struct world *w)
{
	const struct sys *sys = memfs_other(w->fs);
	int fd, r;

	fd = SYS(sys, openat, AT_FDCWD, "/srv", O_RDONLY | O_DIRECTORY, 0);
	assert(fd >= 0);
	r = SYS(sys, syncfs, fd);
	assert(r == 0);
	SYS(sys, close, fd);
}

struct status_query {
	uint32_t index;
	enum refd_status status;
};

static int read_status(void *arg, const struct journal_row *row)
{
	struct status_query *query = arg;
	struct record rec;
	size_t i;

	assert(record_decode(row->body, row->len, &rec) == 0);
	for (i = 0; i < rec.nr_members; i++)
		if (rec.members[i].answers &&
		    rec.members[i].index == query->index)
			query->status = rec.members[i].status;
	record_done(&rec);
	return 0;
}

enum refd_status scripted_status(const struct scripted_txn *h, uint32_t index)
{
	struct status_query query = { index, REFD_PENDING };
	struct journal_reader *reader;
	int r;

	r = journal_reader_open(h->w->store.journal, &reader);
	assert(r == 0);
	r = journal_lookup(reader, JOURNAL_ANY_UID, &h->txid, read_status,
	    &query);
	assert(r == 0);
	journal_reader_close(reader);
	return query.status;
}

int scripted_crash(struct world *w)
{
	memfs_crash(w->fs);
	world_crash(w);
	return world_start(w);
}

int scripted_power_loss(struct world *w, enum memfs_data data, long keep)
{
	struct memfs_choice choice = memfs_choose(1);

	choice.data = data;
	choice.keep[0] = keep;
	choice.keep[1] = 0;
	memfs_power_loss(w->fs, &choice);
	world_crash(w);
	return world_start(w);
}
