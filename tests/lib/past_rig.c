#include "tests/lib/past_rig.h"

#include <check.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/store/repos/repo_id.h"
#include "tests/lib/journal_help.h"
#include "tests/lib/tmp.h"

struct past_rig past;

static int64_t past_now_wall(const struct sys *sys)
{
	(void)sys;
	return past.wall_ms * 1000000;
}

static int64_t past_now_mono(const struct sys *sys)
{
	(void)sys;
	past.mono_ns += past.mono_step_ns;
	return past.mono_ns;
}

void past_setup(void)
{
	tmp_setup();
	memset(&past, 0, sizeof(past));
	past.sys = sys_kernel;
	past.sys.now_wall = past_now_wall;
	past.sys.now_mono = past_now_mono;
	past.mono_ns = 1000000000000;
	past.wall_ms = 1785542400000;
	snprintf(past.root, sizeof(past.root), "%s/root", tmp_root);
	ck_assert_int_eq(mkdir(past.root, 0755), 0);
	past.roots[0] = past.root;
	past_open_journal();
}

void past_teardown(void)
{
	past_close();
	tmp_teardown();
}

void past_open_journal(void)
{
	past.j = help_open(&past.sys, tmp_root, NULL);
	repos_init(&past.repos, &past.sys, past.j, past.roots, 1, 10);
}

void past_close(void)
{
	history_free(past.h);
	past.h = NULL;
	if (past.j != NULL) {
		repos_done(&past.repos);
		ck_assert_int_eq(journal_close(past.j), 0);
	}
	past.j = NULL;
}

void past_index(void)
{
	int i;

	for (i = 0; history_index(past.h, journal_last_lsn(past.j)) > 0; i++)
		ck_assert_int_lt(i, 1000000);
}

void past_history(void)
{
	const struct history_config cfg = { .sys = &past.sys,
		.dir = tmp_root,
		.journal = past.j,
		.repos = &past.repos,
		.retention_ms = past.retention_ms,
		.retention_bytes = past.retention_bytes };

	history_free(past.h);
	past.h = history_new(&cfg);
	ck_assert_ptr_nonnull(past.h);
	if (past.has_index)
		past_index();
}

void past_write_id(const char *path, const uint8_t uuid[16])
{
	struct repo_id id = { .path = "" };
	char refd[4300];
	int fd;

	snprintf(refd, sizeof(refd), "%s/refd", path);
	mkdir(refd, 0755);
	fd = open(refd, O_RDONLY | O_DIRECTORY);
	ck_assert_int_ge(fd, 0);
	memcpy(id.uuid, uuid, 16);
	memcpy(id.journal, journal_uuid(past.j), 16);
	snprintf(id.path, sizeof(id.path), "%s", path);
	ck_assert_int_eq(repo_id_write(&past.sys, fd, &id, false), 0);
	close(fd);
}

uint64_t past_repo(const char *name, mode_t mode)
{
	struct journal_repo repo = { .id = 0 };
	char path[4200], refs[4300];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", past.root, name);
	snprintf(refs, sizeof(refs), "%s/refs", path);
	mkdir(path, 0755);
	mkdir(refs, 0755);
	ck_assert_int_eq(chmod(refs, mode), 0);
	ck_assert_int_eq(stat(path, &st), 0);
	memcpy(repo.uuid, &st.st_ino, sizeof(st.st_ino));
	past_write_id(path, repo.uuid);
	repo.path = path;
	repo.dev = st.st_dev;
	repo.ino = st.st_ino;
	ck_assert_int_eq(journal_register_repo(past.j, &repo), 0);
	return repo.id;
}

/* ---- records ---- */

struct record_member *past_add(struct past_record *r, const char *ref)
{
	struct record_member *m = &r->members[r->rec.nr_members];

	ck_assert_uint_lt(r->rec.nr_members, 16);
	memset(m, 0, sizeof(*m));
	m->index = (uint32_t)r->rec.nr_members++;
	m->answers = true;
	m->name = ref;
	m->worktree = "";
	m->action = RECORD_WRITE;
	m->had_old = true;
	memset(m->old_oid.bytes, 0xaa, sizeof(m->old_oid.bytes));
	memset(m->new_oid.bytes, 0xbb, sizeof(m->new_oid.bytes));
	r->rec.nr_updates = (uint32_t)r->rec.nr_members;
	return m;
}

void past_begin(struct past_record *r, uint64_t repo, const char *ref)
{
	static unsigned number;
	uint64_t birth = (uint64_t)past.wall_ms;
	int i;

	memset(r, 0, sizeof(*r));
	r->row.kind = JOURNAL_PART;
	r->row.uid = 1000;
	r->row.pid = 42;
	r->row.repo = repo;
	r->row.final = true;
	r->row.time_us = past.wall_ms * 1000;
	for (i = 0; i < 6; i++)
		r->row.txid.bytes[i] = (uint8_t)(birth >> (8 * (5 - i)));
	number++;
	memcpy(r->row.txid.bytes + 12, &number, sizeof(number));
	r->rec.committer = "A <a@example.com> 1 +0000";
	r->rec.message = "push";
	r->rec.members = r->members;
	r->rec.nr_identities = 1;
	r->rec.identities[0] = (struct refd_identity){ "GL_USER", "alice" };
	past_add(r, ref);
}

uint64_t past_commit(struct past_record *r)
{
	uint8_t *body = record_encode(&r->rec, &r->row.len);

	ck_assert_ptr_nonnull(body);
	r->row.body = body;
	ck_assert_int_eq(journal_commit(past.j, &r->row, 1, true), 0);
	free(body);
	return r->row.lsn;
}

uint64_t past_update(uint64_t repo, const char *ref)
{
	struct past_record r;

	past_begin(&r, repo, ref);
	return past_commit(&r);
}

#define AT_ONCE 500

static void commit_some(uint64_t repo, unsigned nr, const char *x,
    const char *y)
{
	struct journal_row *rows = calloc(nr, sizeof(*rows));
	struct past_record r;
	unsigned i;

	ck_assert_ptr_nonnull(rows);
	for (i = 0; i < nr; i++) {
		past_begin(&r, repo, i % 3 == 0 ? x : y);
		rows[i] = r.row;
		rows[i].body = record_encode(&r.rec, &rows[i].len);
	}
	ck_assert_int_eq(journal_commit(past.j, rows, nr, true), 0);
	for (i = 0; i < nr; i++)
		free((void *)(uintptr_t)rows[i].body);
	free(rows);
}

void past_updates(uint64_t repo, unsigned nr, const char *x, const char *y)
{
	unsigned some;

	for (; nr > 0; nr -= some) {
		some = nr < AT_ONCE ? nr : AT_ONCE / 3 * 3;
		commit_some(repo, some, x, y);
	}
}

/* ---- questions ---- */

struct store_history *past_ask(enum refd_verb verb)
{
	struct store_history *ask = calloc(1, sizeof(*ask));

	ck_assert_ptr_nonnull(ask);
	ask->req.verb = verb;
	ask->req.request_id = 1;
	return ask;
}

void past_free(struct store_history *ask)
{
	refd_answer_done(&ask->answer);
	free(ask->peer.gids);
	free(ask);
}

bool past_answer(struct store_history *ask)
{
	return history_answer(past.h, ask, journal_last_lsn(past.j));
}

static void say(char *said, size_t size, const struct refd_answer *ans)
{
	const struct refd_change *c;
	size_t i, len;

	if (ans->has_gap) {
		len = strlen(said);
		snprintf(said + len, size - len, " gap@%u", (unsigned)ans->gap);
	}
	for (i = 0; i < ans->nr_changes; i++) {
		c = &ans->changes[i];
		len = strlen(said);
		ck_assert_uint_lt(len + 100, size);
		snprintf(said + len, size - len, " %s@%u%s%s%s", c->name,
		    (unsigned)c->record->lsn,
		    c->record->voids != 0 ? "voids" : "",
		    c->status != REFD_OK ? ":" : "",
		    c->status != REFD_OK ? refd_status_name(c->status) : "");
	}
}

void past_sql(const char *file, const char *sql)
{
	char path[4200];
	sqlite3 *db;

	snprintf(path, sizeof(path), "%s/%s", tmp_root, file);
	ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
	ck_assert_int_eq(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

const char *past_told(struct store_history *ask, unsigned *pages)
{
	static char said[1024 * 1024];
	struct refd_selection *s = &ask->req.select;
	unsigned nr = 0;
	bool more = true;

	said[0] = '\0';
	while (more && past_answer(ask)) {
		nr++;
		ck_assert_int_eq(ask->answer.kind, REFD_ANSWER_RECORDS);
		say(said, sizeof(said), &ask->answer);
		more = ask->answer.more;
		if (s->reverse) {
			s->has_before = true;
			s->before = ask->answer.next;
		} else {
			s->has_after = true;
			s->after = ask->answer.next;
		}
		refd_answer_done(&ask->answer);
	}
	if (pages != NULL)
		*pages = nr;
	past_free(ask);
	return said;
}

/* ---- a history to ask about ---- */

uint64_t past_a, past_b;

const char *past_log(const char *repo, const char *pattern, bool reverse,
    uint32_t limit, unsigned *pages)
{
	struct store_history *ask = past_ask(REFD_VERB_LOG);
	static char path[4200];

	if (repo != NULL) {
		snprintf(path, sizeof(path), "%s/%s", past.root, repo);
		ask->req.git_dir = path;
	}
	if (pattern != NULL)
		ask->req.select.patterns[ask->req.select.nr_patterns++] =
		    pattern;
	ask->req.select.reverse = reverse;
	ask->req.select.limit = limit;
	return past_told(ask, pages);
}

void past_some(void)
{
	struct past_record r;

	past_a = past_repo("a.git", 0755);
	past_b = past_repo("b.git", 0700);
	past_update(past_a, "refs/heads/main");       /* 1 */
	past_update(past_b, "refs/heads/main");       /* 2 */
	past_begin(&r, past_a, "refs/heads/topic/x"); /* 3 */
	past_add(&r, "refs/tags/v1");
	past_add(&r, "refs/tags/v2")->status = REFD_STALE;
	past_commit(&r);
	past_begin(&r, past_b, "refs/heads/topic/y"); /* 4 */
	r.row.uid = 1001;
	r.rec.identities[0].value = "bob";
	past_commit(&r);
	past_begin(&r, past_a, "HEAD"); /* 5 */
	r.members[0].action = RECORD_LOG;
	past_add(&r, "refs/heads/main")->answers = false;
	past_commit(&r);
	past_begin(&r, past_a, "refs/heads/main"); /* 6 */
	r.members[0].action = RECORD_DELETE;
	past_commit(&r);
}

void past_open(int way)
{
	uint64_t half = journal_last_lsn(past.j) / 2;

	past_history();
	if (way == 1)
		while (history_index(past.h, half) > 0)
			;
	if (way == 2)
		past_index();
	if (way > 0)
		ck_assert_uint_ge(history_indexed(past.h), way == 1 ? half : 1);
}
