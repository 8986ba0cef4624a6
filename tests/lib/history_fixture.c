#include "tests/lib/history_fixture.h"

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

struct history_fixture fixture;

static int64_t fixture_now_wall(const struct sys *sys)
{
	(void)sys;
	return fixture.wall_ms * 1000000;
}

static int64_t fixture_now_mono(const struct sys *sys)
{
	(void)sys;
	fixture.mono_ns += fixture.mono_step_ns;
	return fixture.mono_ns;
}

void fixture_setup(void)
{
	tmp_setup();
	memset(&fixture, 0, sizeof(fixture));
	fixture.sys = sys_kernel;
	fixture.sys.now_wall = fixture_now_wall;
	fixture.sys.now_mono = fixture_now_mono;
	fixture.mono_ns = 1000000000000;
	fixture.wall_ms = 1785542400000;
	snprintf(fixture.root, sizeof(fixture.root), "%s/root", tmp_root);
	ck_assert_int_eq(mkdir(fixture.root, 0755), 0);
	fixture.roots[0] = fixture.root;
	fixture_open_journal();
}

void fixture_teardown(void)
{
	fixture_close();
	tmp_teardown();
}

void fixture_open_journal(void)
{
	fixture.j = help_open(&fixture.sys, tmp_root, NULL);
	repos_init(&fixture.repos, &fixture.sys, fixture.j, fixture.roots, 1,
	    10);
}

void fixture_close(void)
{
	history_free(fixture.h);
	fixture.h = NULL;
	if (fixture.j != NULL) {
		repos_done(&fixture.repos);
		ck_assert_int_eq(journal_close(fixture.j), 0);
	}
	fixture.j = NULL;
}

int fixture_index_upto(uint64_t lsn)
{
	struct history_watches none = { .list = NULL };

	return history_index(fixture.h, lsn, &none);
}

void fixture_index(void)
{
	int i;

	for (i = 0; fixture_index_upto(journal_last_lsn(fixture.j)) > 0; i++)
		ck_assert_int_lt(i, 1000000);
}

void fixture_history(void)
{
	fixture.config =
	    (struct store_config){ .retention_ms = fixture.retention_ms,
		    .retention_bytes = fixture.retention_bytes };
	fixture.parts = (struct store_parts){ .sys = &fixture.sys,
		.config = &fixture.config,
		.state_dir = tmp_root,
		.journal = fixture.j,
		.repos = &fixture.repos };
	history_free(fixture.h);
	fixture.h = history_new(&fixture.parts);
	ck_assert_ptr_nonnull(fixture.h);
	if (fixture.has_index)
		fixture_index();
}

void fixture_write_id(const char *path, const uint8_t uuid[16])
{
	struct repo_id id = { .path = "" };
	char refd[4300];
	int fd;

	snprintf(refd, sizeof(refd), "%s/refd", path);
	mkdir(refd, 0755);
	fd = open(refd, O_RDONLY | O_DIRECTORY);
	ck_assert_int_ge(fd, 0);
	memcpy(id.uuid, uuid, 16);
	memcpy(id.journal, journal_uuid(fixture.j), 16);
	snprintf(id.path, sizeof(id.path), "%s", path);
	ck_assert_int_eq(repo_id_write(&fixture.sys, fd, &id, false), 0);
	close(fd);
}

uint64_t fixture_repo(const char *name, mode_t mode)
{
	struct journal_repo repo = { .id = 0 };
	char path[4200], refs[4300];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", fixture.root, name);
	snprintf(refs, sizeof(refs), "%s/refs", path);
	mkdir(path, 0755);
	mkdir(refs, 0755);
	ck_assert_int_eq(chmod(refs, mode), 0);
	ck_assert_int_eq(stat(path, &st), 0);
	memcpy(repo.uuid, &st.st_ino, sizeof(st.st_ino));
	fixture_write_id(path, repo.uuid);
	repo.path = path;
	repo.dev = st.st_dev;
	repo.ino = st.st_ino;
	ck_assert_int_eq(journal_register_repo(fixture.j, &repo), 0);
	return repo.id;
}

/* ---- records ---- */

struct record_member *fixture_add(struct fixture_record *r, const char *ref)
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
	memset(m->old_oid.bytes, 0xaa, REFD_SHA1_BYTES);
	memset(m->new_oid.bytes, 0xbb, REFD_SHA1_BYTES);
	r->rec.nr_updates = (uint32_t)r->rec.nr_members;
	return m;
}

void fixture_begin(struct fixture_record *r, uint64_t repo, const char *ref)
{
	static unsigned number;
	uint64_t birth = (uint64_t)fixture.wall_ms;
	int i;

	memset(r, 0, sizeof(*r));
	r->row.kind = JOURNAL_SLICE;
	r->row.uid = 1000;
	r->row.pid = 42;
	r->row.repo = repo;
	r->row.final = true;
	r->row.time_us = fixture.wall_ms * 1000;
	for (i = 0; i < 6; i++)
		r->row.txid.bytes[i] = (uint8_t)(birth >> (8 * (5 - i)));
	number++;
	memcpy(r->row.txid.bytes + 12, &number, sizeof(number));
	r->rec.committer = "A <a@example.com> 1 +0000";
	r->rec.message = "push";
	r->rec.members = r->members;
	r->rec.nr_identities = 1;
	r->rec.identities[0] = (struct refd_identity){ "GL_USER", "alice" };
	fixture_add(r, ref);
}

uint64_t fixture_commit(struct fixture_record *r)
{
	uint8_t *body = record_encode(&r->rec, &r->row.len);

	ck_assert_ptr_nonnull(body);
	r->row.body = body;
	ck_assert_int_eq(journal_commit(fixture.j, &r->row, 1, true), 0);
	free(body);
	return r->row.lsn;
}

uint64_t fixture_update(uint64_t repo, const char *ref)
{
	struct fixture_record r;

	fixture_begin(&r, repo, ref);
	return fixture_commit(&r);
}

#define AT_ONCE 500

static void commit_some(uint64_t repo, unsigned nr, const char *x,
    const char *y)
{
	struct journal_row *rows = calloc(nr, sizeof(*rows));
	struct fixture_record r;
	unsigned i;

	ck_assert_ptr_nonnull(rows);
	for (i = 0; i < nr; i++) {
		fixture_begin(&r, repo, i % 3 == 0 ? x : y);
		rows[i] = r.row;
		rows[i].body = record_encode(&r.rec, &rows[i].len);
	}
	ck_assert_int_eq(journal_commit(fixture.j, rows, nr, true), 0);
	for (i = 0; i < nr; i++)
		free((void *)(uintptr_t)rows[i].body);
	free(rows);
}

void fixture_updates(uint64_t repo, unsigned nr, const char *x, const char *y)
{
	unsigned some;

	for (; nr > 0; nr -= some) {
		some = nr < AT_ONCE ? nr : AT_ONCE / 3 * 3;
		commit_some(repo, some, x, y);
	}
}

/* ---- requests ---- */

struct store_question *fixture_ask(enum refd_verb verb)
{
	struct store_question *ask = calloc(1, sizeof(*ask));

	ck_assert_ptr_nonnull(ask);
	ask->req.verb = verb;
	ask->req.request_id = 1;
	return ask;
}

void fixture_free(struct store_question *ask)
{
	refd_answer_done(&ask->answer);
	free(ask->peer.gids);
	free(ask->why);
	free(ask);
}

bool fixture_answer(struct store_question *ask)
{
	uint64_t last = journal_last_lsn(fixture.j);

	fixture_index_upto(last);
	return history_answer(fixture.h, ask, last);
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

void fixture_sql(const char *file, const char *sql)
{
	char path[4200];
	sqlite3 *db;

	snprintf(path, sizeof(path), "%s/%s", tmp_root, file);
	ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
	ck_assert_int_eq(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

uint64_t fixture_used_bytes(void)
{
	char path[4200];
	sqlite3_stmt *s;
	uint64_t pages;
	sqlite3 *db;

	snprintf(path, sizeof(path), "%s/journal.db", tmp_root);
	ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
	ck_assert_int_eq(sqlite3_prepare_v2(db,
			     "SELECT page_count - freelist_count"
			     " FROM pragma_page_count, pragma_freelist_count",
			     -1, &s, NULL),
	    SQLITE_OK);
	ck_assert_int_eq(sqlite3_step(s), SQLITE_ROW);
	pages = (uint64_t)sqlite3_column_int64(s, 0);
	sqlite3_finalize(s);
	sqlite3_close(db);
	return pages * 4096;
}

const char *fixture_told(struct store_question *ask, unsigned *pages)
{
	static char said[1024 * 1024];
	struct refd_selection *s = &ask->req.select;
	unsigned nr = 0;
	bool more = true;

	said[0] = '\0';
	while (more && fixture_answer(ask)) {
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
	fixture_free(ask);
	return said;
}

/* ---- six records ---- */

uint64_t fixture_a, fixture_b;

const char *fixture_log(const char *repo, const char *pattern, bool reverse,
    uint32_t limit, unsigned *pages)
{
	struct store_question *ask = fixture_ask(REFD_VERB_LOG);
	static char path[4200];

	if (repo != NULL) {
		snprintf(path, sizeof(path), "%s/%s", fixture.root, repo);
		ask->req.git_dir = path;
	}
	if (pattern != NULL)
		ask->req.select.patterns[ask->req.select.nr_patterns++] =
		    pattern;
	ask->req.select.reverse = reverse;
	ask->req.select.limit = limit;
	return fixture_told(ask, pages);
}

void fixture_some(void)
{
	struct fixture_record r;

	fixture_a = fixture_repo("a.git", 0755);
	fixture_b = fixture_repo("b.git", 0700);
	fixture_update(fixture_a, "refs/heads/main");       /* 1 */
	fixture_update(fixture_b, "refs/heads/main");       /* 2 */
	fixture_begin(&r, fixture_a, "refs/heads/topic/x"); /* 3 */
	fixture_add(&r, "refs/tags/v1");
	fixture_add(&r, "refs/tags/v2")->status = REFD_STALE;
	fixture_commit(&r);
	fixture_begin(&r, fixture_b, "refs/heads/topic/y"); /* 4 */
	r.row.uid = 1001;
	r.rec.identities[0].value = "bob";
	fixture_commit(&r);
	fixture_begin(&r, fixture_a, "HEAD"); /* 5 */
	r.members[0].action = RECORD_LOG;
	fixture_add(&r, "refs/heads/main")->answers = false;
	fixture_commit(&r);
	fixture_begin(&r, fixture_a, "refs/heads/main"); /* 6 */
	r.members[0].action = RECORD_DELETE;
	fixture_commit(&r);
}

void fixture_open(int way)
{
	uint64_t half = journal_last_lsn(fixture.j) / 2;

	fixture_history();
	if (way == 1)
		while (fixture_index_upto(half) > 0)
			;
	if (way == 2)
		fixture_index();
	if (way > 0)
		ck_assert_uint_ge(history_indexed(fixture.h),
		    way == 1 ? half : 1);
}
