#include "daemon/group/service/whole.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "client/base/tree.h"
#include "proto/lib/clock.h"

#define CHECK_MS    (6 * 60 * 60 * 1000)
#define LINES_MOST  10
#define HEX_IN_PATH 2 /* digits of the directory of a loose object */

/* Bits of fsck's exit status. CONTENT is an error in what an object says, and
 * git has taken this object all the same. PACK is a damaged pack. REFS is an
 * error in the refs of the git-dir, which are not the refs of the repository.
 * INDEX is an error in an index of all packs. From DIED on, git has not read
 * all objects. */
enum {
	FSCK_CONTENT = 1,
	FSCK_PACK = 4,
	FSCK_REFS = 8,
	FSCK_INDEX = 32,
	FSCK_DIED = 128
};

static void set_limit(struct whole *w)
{
	w->until_ms = clock_now_ms() + CHECK_MS;
}

static struct fetch_git git_of(const struct whole *w)
{
	return (struct fetch_git){ .wish = w->wish,
		.site = w->site,
		.until_ms = w->until_ms,
		.objects = w->repo.objects,
		.pack = w->repo.pack,
		.refs = -1,
		.tables = -1 };
}

bool whole_open(struct whole *w, const char *root, struct text *why)
{
	return fetch_repo_open_place(&w->repo, root, w->wish, why);
}

void whole_done(struct whole *w)
{
	fetch_repo_close(&w->repo);
	text_done(&w->heads);
	text_done(&w->needed);
	text_done(&w->said);
}

/* ---- checking ---- */

struct pack_search {
	const struct whole *w;
	struct fetch_git git;
	void (*fn)(void *arg, const char *pack);
	void *arg;
};

/* A complete run of fsck has named each damaged pack. So verify-pack reads no
 * other pack, because a repository can have thousands of packs. fsck passes
 * over an index without a pack. */
static bool is_suspect(const struct whole *w, int dir, const char *pack)
{
	char *file = xasprintf("%s.pack", pack);
	const bool is_there = faccessat(dir, file, F_OK, 0) == 0;

	free(file);
	return !w->has_named_packs || !is_there ||
	    (w->said.len > 0 && strstr(w->said.data, pack));
}

static void look_at_pack(void *arg, int from, const char *name)
{
	struct pack_search *p = arg;
	char *path = xasprintf("/proc/self/fd/%d/%s", FETCH_FD_PACK, name);
	const char *const argv[] = { "git", "verify-pack", path, NULL };
	char *pack = xstrdup(name), *dot = strrchr(pack, '.');

	if (dot && !strcmp(dot, ".idx") && has_prefix(name, "pack-")) {
		*dot = '\0';
		if (is_suspect(p->w, from, pack) &&
		    fetch_git_run(&p->git, argv, NULL, NULL) == 1)
			p->fn(p->arg, pack);
	}
	free(pack);
	free(path);
}

/* Calls FN with the name of each damaged pack, without ".idx". */
static void each_damaged_pack(const struct whole *w,
    void (*fn)(void *arg, const char *pack), void *arg)
{
	struct text said = { 0 };
	struct pack_search p = { w, git_of(w), fn, arg };

	p.git.said = &said;
	tree_each(w->repo.pack, look_at_pack, &p);
	text_done(&said);
}

/* "error in commit <id>: ..." is of an old git or another program. */
static bool is_complaint(const char *line)
{
	return (has_prefix(line, "error: ") &&
		   !has_prefix(line, "error: packed-refs")) ||
	    has_prefix(line, "fatal: ") || has_prefix(line, "missing ") ||
	    has_prefix(line, "broken link ");
}

/* Moves the lines that may tell of damage from FROM to TO, and appends the ids
 * of objects that git calls missing to IDS. */
static void keep_complaints(struct text *from, struct text *to,
    struct text *ids)
{
	char *line, *next = from->data;

	while ((line = strsep(&next, "\n"))) {
		if (is_complaint(line))
			text_addf(to, "%s\n", line);
		if (has_prefix(line, "missing "))
			text_addf(ids, "%s\n", strrchr(line, ' ') + 1);
	}
	text_done(from);
}

static void note_pack(void *arg, const char *pack)
{
	(void)pack;
	*(bool *)arg = true;
}

/* IDS: those that git calls missing. */
static bool is_absent(const struct whole *w, const struct fetch_git *git,
    const struct text *ids)
{
	static const char *const argv[] = { "git", "cat-file",
		"--batch-check=%(objecttype)", NULL };
	struct text in = { 0 }, out = { 0 };
	bool is_absent;

	text_add(&in, ids->data, ids->len);
	text_add(&in, w->needed.data, w->needed.len);
	is_absent = in.len > 0 && fetch_git_run(git, argv, &in, &out) == 0 &&
	    out.len > 0 && strstr(out.data, " missing\n");
	text_done(&in);
	text_done(&out);
	return is_absent;
}

/*
 * git fsck complains of what objects say, too, and a push can bring anything.
 * If a complaint alone counted, a push could move the lead. So only what no
 * push can make is damage: a file with other bytes than its name says, or an
 * object that the repository needs and does not have.
 */
static bool is_damaged(const struct whole *w, const struct fetch_git *git,
    const struct text *ids, int status)
{
	bool has_pack = false;

	if ((status > 0 && status < FSCK_DIED && (status & FSCK_INDEX)) ||
	    (w->said.len > 0 &&
		(strstr(w->said.data, ": object corrupt or missing: ") ||
		    strstr(w->said.data, ": hash-path mismatch, found at: "))))
		return true;
	each_damaged_pack(w, note_pack, &has_pack);
	return has_pack || is_absent(w, git, ids);
}

static enum whole_state run_fsck(struct whole *w, struct text *why)
{
	static const char *const argv[] = { "git", "fsck", "--full",
		"--no-dangling", "--no-reflogs", "--no-progress", NULL };
	struct text out = { 0 }, said = { 0 }, ids = { 0 };
	struct fetch_git git = git_of(w);
	bool is_full, is_whole, has_faults, has_found, is_late;
	int status;

	git.said = &said;
	fetch_git_refs(&git, &w->heads);
	status = fetch_git_run(&git, argv, NULL, &out);
	is_full = said.len >= FETCH_SAID_MAX;
	is_whole = status >= 0 && status < FSCK_DIED && !is_full;
	text_clear(&w->said);
	keep_complaints(&out, &w->said, &ids);
	keep_complaints(&said, &w->said, &ids);
	w->has_named_packs = is_whole &&
	    (!(status & FSCK_PACK) ||
		(w->said.len > 0 && strstr(w->said.data, "pack-")));
	has_faults =
	    w->said.len > 0 || (status & ~(FSCK_CONTENT | FSCK_REFS)) != 0;
	has_found = has_faults && is_damaged(w, &git, &ids, status);
	/* Then not all packs were looked at. */
	is_late = has_faults && clock_now_ms() >= w->until_ms;
	fetch_git_done(&git);
	text_done(&said);
	text_done(&ids);
	if (has_found)
		return WHOLE_DAMAGED;
	if (is_whole && !is_late)
		return WHOLE;
	text_adds(why,
	    is_full ? "git fsck has said more than 1 MiB" :
		      "git fsck has failed, or the check has taken more than "
		      "six hours");
	return WHOLE_UNKNOWN;
}

enum whole_state whole_check(struct whole *w, struct text *why)
{
	enum whole_state state;

	set_limit(w);
	state = run_fsck(w, why);
	if (state != WHOLE_DAMAGED)
		return state;
	state = run_fsck(w, why);
	if (state != WHOLE_UNKNOWN)
		return state;
	/* A second look that does not end disproves nothing. */
	text_clear(why);
	return WHOLE_DAMAGED;
}

static void print_pack(void *arg, const char *pack)
{
	const struct whole *w = arg;

	print_line(stdout, "%s: the pack objects/pack/%s.pack is damaged",
	    w->wish->path, pack);
}

void whole_print(const struct whole *w, enum whole_state state)
{
	char *copy = xstrdup(w->said.data ? w->said.data : ""), *line;
	char *next = copy;
	int nr = 0;

	if (state == WHOLE_DAMAGED)
		each_damaged_pack(w, print_pack, (void *)w);
	while (nr++ < LINES_MOST && (line = strsep(&next, "\n")))
		if (*line)
			print_line(stdout, "%s: %s: %s", w->wish->path,
			    state == WHOLE_DAMAGED ?
				"objects are damaged: git" :
				"git",
			    line);
	free(copy);
}

/* ---- repairing ---- */

struct repair {
	struct whole *w;
	int refd;    /* refd/ of the repository */
	int fetched; /* refd/fetched/, with the directory pack/ */
	int pack;
	int damaged; /* refd/damaged/ */
	long long now_s;
	int err; /* the first failure to move a file */
	const char *pack_name;
	bool places_indexes;
};

static int enter(int parent, const char *name)
{
	return mkdirat(parent, name, 0700) < 0 && errno != EEXIST ?
	    -errno :
	    fetch_repo_beneath(parent, name, O_RDONLY | O_DIRECTORY);
}

static void remove_fetched(struct repair *r)
{
	struct tree tree = { .task = TREE_REMOVE };

	if (r->refd >= 0)
		tree_walk(&tree, r->refd, "fetched");
}

static bool begin(struct repair *r, struct text *why)
{
	r->refd = enter(r->w->repo.fd, "refd");
	remove_fetched(r);
	r->fetched = r->refd < 0 ? r->refd : enter(r->refd, "fetched");
	r->pack = r->fetched < 0 ? r->fetched : enter(r->fetched, "pack");
	r->damaged = r->pack < 0 ? r->pack : enter(r->refd, "damaged");
	if (r->damaged < 0)
		text_addf(why, "cannot make directories in refd/ of '%s': %s",
		    r->w->wish->path, strerror(-r->damaged));
	return r->damaged >= 0;
}

static void end(struct repair *r)
{
	const int fds[] = { r->damaged, r->pack, r->fetched };
	size_t i;

	for (i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	remove_fetched(r);
	if (r->refd >= 0)
		close(r->refd);
}

/* Renames, and never replaces a file. */
static void move(struct repair *r, int from, const char *name, int to,
    const char *as)
{
	if (renameat2(from, name, to, as, RENAME_NOREPLACE) < 0 &&
	    errno != ENOENT && r->err == 0)
		r->err = errno;
}

static void put_aside(struct repair *r, int from, const char *name)
{
	const char *slash = strrchr(name, '/');
	char *as = xasprintf("%lld-%.*s%s", r->now_s,
	    slash ? (int)(slash - name) : 0, name, slash ? slash + 1 : name);

	move(r, from, name, r->damaged, as);
	free(as);
}

/* A file of the pack r->pack_name. */
static void put_part_aside(void *arg, int from, const char *name)
{
	struct repair *r = arg;

	if (has_prefix(name, r->pack_name) && name[strlen(r->pack_name)] == '.')
		put_aside(r, from, name);
}

/* git uses a pack as long as it has an index, so the index goes first. */
static void put_pack_aside(void *arg, const char *pack)
{
	struct repair *r = arg;
	char *index = xasprintf("%s.idx", pack);

	put_aside(r, r->w->repo.pack, index);
	r->pack_name = pack;
	tree_each(r->w->repo.pack, put_part_aside, r);
	free(index);
}

/* It names packs that are gone now. */
static void put_index_of_all_aside(void *arg, int from, const char *name)
{
	if (has_prefix(name, "multi-pack-index"))
		put_aside(arg, from, name);
}

/* git names the file of a loose object: .../objects/12/3456... */
static void put_loose_aside(struct repair *r)
{
	const size_t len = refd_object_format_hex(r->w->wish->format);
	const char *at = r->w->said.data ? r->w->said.data : "";
	char name[REFD_OID_MAX_HEX + 2];

	while ((at = strstr(at, "/objects/"))) {
		at += strlen("/objects/");
		snprintf(name, len + 2, "%s", at);
		if (strspn(name, "0123456789abcdef") == HEX_IN_PATH &&
		    name[HEX_IN_PATH] == '/' &&
		    strspn(name + HEX_IN_PATH + 1, "0123456789abcdef") ==
			len - HEX_IN_PATH)
			put_aside(r, r->w->repo.objects, name);
	}
}

static void place(void *arg, int from, const char *name)
{
	struct repair *r = arg;
	const bool is_index = strstr(name, ".idx") != NULL;

	if (!has_prefix(name, "pack-") || is_index != r->places_indexes)
		return;
	move(r, from, name, r->w->repo.pack, name);
	/* The repository has the same pack, and that one is whole. */
	if (r->err == EEXIST)
		r->err = 0;
}

/* The fetched packs are on the disk before a file is moved. */
static bool exchange(struct repair *r, struct text *why)
{
	set_limit(r->w);
	if (syncfs(r->pack) < 0)
		r->err = errno;
	if (r->err == 0) {
		each_damaged_pack(r->w, put_pack_aside, r);
		tree_each(r->w->repo.pack, put_index_of_all_aside, r);
		put_loose_aside(r);
		tree_each(r->pack, place, r);
		r->places_indexes = true;
		tree_each(r->pack, place, r);
	}
	if (r->err == 0 && syncfs(r->pack) < 0)
		r->err = errno;
	if (r->err)
		text_addf(why, "cannot exchange the packs of '%s': %s",
		    r->w->wish->path, strerror(r->err));
	return r->err == 0;
}

static bool fetch(struct repair *r, const char *source,
    const struct text *wanted, struct text *why)
{
	const struct text none = { 0 };
	struct fetch_wish wish = *r->w->wish;
	struct fetch_git git;
	int status;

	set_limit(r->w);
	git = git_of(r->w);
	wish.source = source;
	git.wish = &wish;
	git.objects = r->fetched;
	git.pack = r->pack;
	fetch_git_refs(&git, &none);
	status = fetch_git_objects(&git, wanted);
	fetch_git_done(&git);
	if (status != 0)
		text_addf(why,
		    "git fetch of all objects of '%s' has failed: see its "
		    "messages above",
		    wish.path);
	return status == 0;
}

bool whole_repair(struct whole *w, const char *source,
    const struct text *wanted, struct text *why)
{
	struct repair r = { .w = w,
		.fetched = -1,
		.pack = -1,
		.damaged = -1,
		.now_s = (long long)time(NULL) };
	const bool is_done = begin(&r, why) && fetch(&r, source, wanted, why) &&
	    exchange(&r, why);

	end(&r);
	return is_done;
}
