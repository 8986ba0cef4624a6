/*
 * The hook reference-transaction of a repository with a gate. Git runs the hook
 * for every transaction of plain git.
 *
 *	preparing	the chained hook
 *	prepared	the chained hook, then the daemon reads the refs while
 *			git holds their locks
 *	committed	the daemon records the refs as they are on disk, and
 *			answers when the record is durable; then the chained
 *			hook. A look follows a deletion that stands alone
 *	aborted		the chained hook; the daemon forgets a deletion, which
 *			git calls the hook for twice
 *
 * Refs with names that are too long for refd are left to git. For refd, the
 * transaction has only the other refs, in all phases alike: otherwise git would
 * be refused, or a call would not find the note of the call before.
 *
 * On a node of several, git changes no value of a ref (below), so the daemon is
 * not asked.
 *
 * What fails:
 *	prepared	git aborts the transaction, if refd.fallback does not
 *			let git go on alone, or if refs may await recovery
 *	committed	git has written the refs, and does not look at the exit
 *			status: the hook makes them durable by a sync of the
 *			file system, and says which refs history lacks, and why.
 *			Refs with too long names always end here
 */
#include "client/gate/gate.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/base/child.h"
#include "client/git/gitdir.h"
#include "client/hooks/gate_link.h"
#include "client/program.h"
#include "client/request/changes.h"
#include "client/request/connect.h"
#include "client/request/context.h"
#include "client/request/unserved.h"
#include "proto/lib/clock.h"
#include "proto/lib/lock_pid.h"
#include "proto/lib/sha.h"
#include "proto/refname.h"

/* ---- on a node of several ---- */

/*
 * The hook reference-transaction on a node of several: the others would never
 * get what git writes. So git may not change a value of a ref, whether the
 * daemon is there or not.
 *
 * Permitted are transactions that change no value: git pack-refs, git gc; the
 * refs of a worktree, such as HEAD; and the deletion of a value that this node
 * has kept for another program (REFD_DIVERGED).
 *
 * Blocking; one thread.
 */

#define LOOSE_MAX  8192
#define PACKED_MAX ((size_t)1 << 30)

/* "<old> SP <new> SP <ref>" */
struct gate_line {
	const char *old, *new, *name;
	bool is_allowed;
	const char *packed; /* the value in packed-refs that allows the line */
};

struct gate_lines {
	struct gate_line *list; /* owned */
	size_t nr;
};

static bool is_null(const char *hex)
{
	return hex[strspn(hex, "0")] == '\0';
}

/* ---- the lines ---- */

static bool split(char *text, struct gate_line *line)
{
	char *new = strchr(text, ' ');
	char *name = new ? strchr(++new, ' ') : NULL;

	if (!name)
		return false;
	new[-1] = '\0';
	*name++ = '\0';
	*line = (struct gate_line){ .old = text, .new = new, .name = name };
	return true;
}

/* Takes COPY apart. */
static bool read_lines(struct text *copy, struct gate_lines *lines)
{
	char *line, *rest = NULL;
	size_t nr = 0;

	for (line = copy->data; (line = strchr(line, '\n')); line++)
		nr++;
	lines->list = xcalloc(nr + 1, sizeof(*lines->list));
	for (line = strtok_r(copy->data, "\n", &rest); line;
	    line = strtok_r(NULL, "\n", &rest))
		if (!split(line, &lines->list[lines->nr++]))
			return false;
	return true;
}

/* ---- the values ---- */

/* Has the file of the loose ref the value HEX? */
static bool is_loose(const struct gitdir *gd, const char *name, const char *hex,
    bool *is_there)
{
	char *path = xasprintf("%s/%s", gd->common, name);
	size_t len = strlen(hex);
	struct text t = { 0 };
	bool is;

	*is_there = text_read_regular(&t, path, LOOSE_MAX) == 0;
	is = *is_there && t.len > len && !strncmp(t.data, hex, len) &&
	    t.data[len] == '\n';
	text_done(&t);
	free(path);
	return is;
}

/* git pack-refs deletes the file of a ref that is in packed-refs. A deletion of
 * the ref has a line without an old value first, for packed-refs. */
static void look(const struct gitdir *gd, struct gate_line *line)
{
	const char *bare, *id;
	bool is_there;
	size_t id_len;

	if (refd_refname_place(line->name, &id, &id_len, &bare) !=
		REFD_PLACE_COMMON ||
	    (is_null(line->new) && refd_refname_is_kept(line->name)))
		line->is_allowed = true;
	else if (is_null(line->new) && is_null(line->old))
		return;
	else if (is_null(line->new))
		line->packed = is_loose(gd, line->name, line->old, &is_there) ?
		    line->old :
		    NULL;
	else if (is_loose(gd, line->name, line->new, &is_there))
		line->is_allowed = true;
	else if (!is_there)
		line->packed = line->new;
}

static int by_name(const void *va, const void *vb)
{
	const struct gate_line *a = va, *b = vb;

	return strcmp(a->name, b->name);
}

/* ENTRY: "<hex> SP <ref>" of packed-refs. */
static void look_at_packed(struct gate_lines *lines, char *entry)
{
	char *name = strchr(entry, ' ');
	struct gate_line *line, key;

	if (entry[0] == '#' || entry[0] == '^' || !name)
		return;
	*name++ = '\0';
	key.name = name;
	line = bsearch(&key, lines->list, lines->nr, sizeof(key), by_name);
	if (line && line->packed && !strcmp(line->packed, entry))
		line->is_allowed = true;
}

static void look_in_packed(const struct gitdir *gd, struct gate_lines *lines)
{
	char *path = xasprintf("%s/packed-refs", gd->common);
	struct text t = { 0 };
	char *entry, *rest = NULL;

	if (text_read_regular(&t, path, PACKED_MAX) == 0)
		for (entry = strtok_r(t.data, "\n", &rest); entry;
		    entry = strtok_r(NULL, "\n", &rest))
			look_at_packed(lines, entry);
	text_done(&t);
	free(path);
}

/* ---- the decision ---- */

static const struct gate_line *find_refused(const struct gate_lines *lines)
{
	size_t i;

	for (i = 0; i < lines->nr; i++)
		if (!lines->list[i].is_allowed)
			return &lines->list[i];
	return NULL;
}

static const struct gate_line *decide(const struct gitdir *gd,
    struct gate_lines *lines)
{
	size_t i;

	for (i = 0; i < lines->nr; i++)
		look(gd, &lines->list[i]);
	if (!find_refused(lines))
		return NULL;
	qsort(lines->list, lines->nr, sizeof(*lines->list), by_name);
	look_in_packed(gd, lines);
	return find_refused(lines);
}

/* May git do the lines of INPUT, in phase prepared? False: an error was
 * printed. */
static bool group_gate_allows(const struct gitdir *gd, const struct text *input)
{
	const struct gate_line *refused = NULL;
	struct gate_lines lines = { 0 };
	struct text copy = { 0 };
	bool ok;

	text_add(&copy, input->data, input->len);
	ok = read_lines(&copy, &lines);
	if (!ok)
		say_error("%s: a line of git has no known form", gd->common);
	else
		refused = decide(gd, &lines);
	if (refused)
		say_error("'%s' of %s is not %s: the repository is in a group "
			  "of nodes, and the other nodes would not get what "
			  "git writes; push to the leader, or use 'refd "
			  "update' there ('refd group status' names it)",
		    refused->name, gd->common,
		    is_null(refused->new) ? "deleted" : "updated");
	free(lines.list);
	text_done(&copy);
	return ok && !refused;
}

/* Git holds locks in phase prepared. */
#define ADMIT_MS  10000
#define RECORD_MS REFD_HOOK_DEADLINE_MS
#define FORGET_MS 1000
#define GRACE_MS  5000
/* A prepared session of refd, or a different git, may hold a ref for long. */
#define LOCK_MS 10000
/* More than any transaction of git, where the shortest line has 84 bytes. */
#define INPUT_BYTES_MAX ((size_t)1 << 30)

struct gate_call {
	enum refd_gate phase;
	struct gitdir gd;
	struct gitconfig config;
	enum refd_object_format format;
	struct refd *daemon;
	char *socket; /* of the daemon; owned */
	struct refd_txid key;
	uint64_t deadline;
	struct text why;  /* it failed */
	struct text left; /* why refs are left to git, or empty */
};

/* ---- the lines of git ---- */

static bool is_oid(const char *hex, size_t len, enum refd_object_format format,
    struct refd_oid *oid)
{
	char text[REFD_OID_MAX_HEX + 1];

	if (len != refd_object_format_hex(format))
		return false;
	memcpy(text, hex, len);
	text[len] = '\0';
	return refd_oid_parse(text, format, oid) == 0;
}

/* "<old> SP <new> SP <ref>". The old value is only what git was asked for, so
 * the daemon is not told. Takes LINE apart. NULL if LINE has another form. */
static const char *take_names(char *line, struct refd_update *u)
{
	char *new = strchr(line, ' ');
	char *name = new ? strchr(++new, ' ') : NULL;

	if (!name)
		return NULL;
	*name++ = '\0';
	*u = (struct refd_update){ .action = REFD_UPDATE, .name = name };
	if (has_prefix(new, "ref:")) {
		u->action = REFD_SYMREF_UPDATE;
		u->target = new + 4;
	}
	return new;
}

static bool add_line(const struct gate_call *g, char *line,
    struct changes *changes)
{
	struct refd_update u;
	const char *new = take_names(line, &u);

	if (!new)
		return false;
	if (!u.target && !is_oid(new, strlen(new), g->format, &u.new_oid))
		return false;
	if (!u.target && refd_oid_is_null(&u.new_oid))
		u.action = REFD_DELETE;
	changes_add(changes, &u);
	return true;
}

/* Appends the lines of INPUT that refd can record to LINES. */
static void drop_long(struct gate_call *g, const struct text *input,
    struct text *lines)
{
	struct text copy = { 0 };
	struct refd_update u;
	char *line, *rest = NULL;
	const char *why;
	size_t len, nr = 0;

	text_add(&copy, input->data, input->len);
	for (line = strtok_r(copy.data, "\n", &rest); line;
	    line = strtok_r(NULL, "\n", &rest)) {
		len = lines->len;
		text_adds(lines, line);
		text_addc(lines, '\n');
		why = take_names(line, &u) ? unserved_update(&u) : NULL;
		if (!why)
			continue;
		lines->len = len;
		lines->data[len] = '\0';
		if (nr++ == 0)
			text_adds(&g->left, why);
	}
	if (nr > 1)
		text_addf(&g->left, " (and %zu more)", nr - 1);
	text_done(&copy);
}

/* ---- a request ---- */

/* 0: not known. */
static uint64_t started_at(pid_t pid)
{
	char *path = xasprintf("/proc/%ld/stat", (long)pid);
	struct text t = { 0 };
	uint64_t ticks = 0;

	if (text_read_file(&t, path, SMALL_FILE_BYTES) == 0)
		ticks = lock_pid_started(t.data);
	text_done(&t);
	free(path);
	return ticks;
}

static void hash(const struct text *t, uint8_t *sum, size_t bytes)
{
	uint8_t whole[SHA256_BYTES];
	struct sha sha;

	sha_init(&sha, REFD_FORMAT_SHA256);
	sha_add(&sha, t->data, t->len);
	sha_done(&sha, whole);
	memcpy(sum, whole, bytes);
}

/* Names the transaction of the git that runs this hook, in all phases. The last
 * two bytes number the parts. */
static void make_key(struct gate_call *g, const struct text *input)
{
	struct text git = { 0 };

	text_addf(&git, "%ld %llu %s", (long)getppid(),
	    (unsigned long long)started_at(getppid()), g->gd.path);
	hash(&git, g->key.bytes, 8);
	hash(input, g->key.bytes + 8, 6);
	text_done(&git);
}

static void next_key(struct gate_call *g)
{
	if (++g->key.bytes[15] == 0)
		g->key.bytes[14]++;
}

static void call(struct gate_call *g, const struct changes *changes,
    struct refd_answer *ans)
{
	struct refd_request req;

	context_request(&req, &g->gd, &g->config);
	req.object_format = g->format;
	req.gate = g->phase;
	req.gate_key = g->key;
	req.message = "git";
	req.has_ref_lock_timeout = true;
	req.ref_lock_timeout_ms = LOCK_MS;
	req.updates = changes->updates;
	req.nr_updates = changes->nr;
	if (refd_txid_make(&req.txid) < 0)
		die("cannot make a transaction id");
	connect_call(g->daemon, &req, g->deadline, GRACE_MS, ans);
}

static void set_why(struct gate_call *g, enum refd_status status,
    const char *text)
{
	text_clear(&g->why);
	text_addf(&g->why, "%s: %s", refd_status_name(status),
	    text && *text ? text : refd_status_text(status));
}

/* Git has not changed a ref with the status aborted, so nothing is to be
 * recorded. */
static bool is_recorded(struct gate_call *g, const struct refd_answer *ans)
{
	size_t i;

	if (ans->kind != REFD_ANSWER_RESULTS) {
		set_why(g, ans->status, ans->text);
		return false;
	}
	for (i = 0; i < ans->nr_results; i++) {
		const struct refd_result *res = &ans->results[i];

		if (res->status == REFD_OK || res->status == REFD_ABORTED)
			continue;
		set_why(g, res->status, NULL);
		text_addf(&g->why, " ('%s')", res->name);
		return false;
	}
	return true;
}

/* Refs that the daemon does not serve are left to git. */
static bool may_leave(struct gate_call *g, const char *reason)
{
	text_clear(&g->why);
	return connect_may_leave(NULL, &g->config, &g->gd,
		   clock_deadline_ms(ADMIT_MS), reason,
		   &g->why) == CONNECT_USE_GIT;
}

static bool is_admitted(struct gate_call *g, const struct refd_answer *ans)
{
	const char *unserved = unserved_push(ans, &g->gd, &g->config);

	if (ans->kind == REFD_ANSWER_PONG)
		return true;
	if (unserved)
		return may_leave(g, unserved);
	if (ans->kind == REFD_ANSWER_REFUSED)
		set_why(g, ans->status, ans->text);
	else
		set_why(g, REFD_UNKNOWN, NULL);
	return false;
}

/* ---- all lines, in requests of a permitted size ---- */

/* The length of the whole lines for a request, and their number, *NR. */
static size_t take_some(const struct gate_call *g, const char *lines,
    size_t len, size_t *nr)
{
	const struct refd_hello *hello = refd_hello(g->daemon);
	size_t most = hello->max_bytes / 2, at = 0, next;
	const char *end;

	for (*nr = 0; at < len && *nr < hello->max_updates; ++*nr) {
		end = memchr(lines + at, '\n', len - at);
		next = end ? (size_t)(end - lines) + 1 : len;
		if (*nr && next > most)
			break;
		at = next;
	}
	return at;
}

static bool add_lines(const struct gate_call *g, const char *lines, size_t len,
    struct changes *changes)
{
	struct text copy = { 0 };
	char *line, *rest = NULL;
	bool ok = true;

	text_add(&copy, lines, len);
	for (line = strtok_r(copy.data, "\n", &rest); line && ok;
	    line = strtok_r(NULL, "\n", &rest))
		ok = add_line(g, line, changes);
	text_done(&copy);
	return ok;
}

static bool send_some(struct gate_call *g, const char *lines, size_t len)
{
	struct changes changes = { 0 };
	struct refd_answer ans;
	bool ok;

	if (!add_lines(g, lines, len, &changes)) {
		changes_done(&changes);
		set_why(g, REFD_BADREQUEST, "a line of git has no known form");
		return false;
	}
	call(g, &changes, &ans);
	ok = g->phase == REFD_GATE_COMMITTED ? is_recorded(g, &ans) :
					       is_admitted(g, &ans);
	refd_answer_done(&ans);
	changes_done(&changes);
	return ok;
}

static bool send_all(struct gate_call *g, const struct text *input)
{
	size_t at = 0, len, nr;
	bool ok = true;

	make_key(g, input);
	for (; at < input->len; at += len, next_key(g)) {
		len = take_some(g, input->data + at, input->len - at, &nr);
		ok = send_some(g, input->data + at, len) && ok;
		if (!ok && g->phase == REFD_GATE_PREPARED)
			break;
	}
	return ok;
}

/* ---- the phases ---- */

static enum connect_result connect_gate(struct gate_call *g, int ms)
{
	enum connect_result result;
	struct daemon_socket socket;

	connect_choose(&socket, NULL, &g->config, &g->gd);
	g->daemon = connect_new(&socket);
	g->deadline = clock_deadline_ms(ms);
	result = connect_daemon(g->daemon, socket.path,
	    connect_fallback(&g->config, FALLBACK_GIT), &g->gd, g->deadline,
	    &g->why);
	g->socket = socket.path;
	return result;
}

static int refuse(const struct gate_call *g)
{
	say_error("refd's gate does not admit the transaction: %s",
	    g->why.data);
	return EXIT_FAILED;
}

static int leave_to_git(struct gate_call *g, const char *reason)
{
	return may_leave(g, reason) ? EXIT_DONE : refuse(g);
}

static int admit(struct gate_call *g, const struct text *lines)
{
	if (!lines->len)
		return leave_to_git(g, g->left.data);
	switch (connect_gate(g, ADMIT_MS)) {
	case CONNECT_SERVED:
		if (send_all(g, lines))
			return EXIT_DONE;
		break;
	case CONNECT_USE_GIT:
		say("%s; git updates the refs alone", g->why.data);
		return EXIT_DONE;
	case CONNECT_FAILED:
	case CONNECT_DENIED:
		break;
	}
	return refuse(g);
}

/* Git may not have synced the refs, or not the names, so all is synced. */
static const char *sync_alone(const struct gate_call *g)
{
	int fd = open(g->gd.common, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool ok = fd >= 0 && syncfs(fd) == 0;

	if (fd >= 0)
		close(fd);
	return ok ? "they are on disk now" : "they may not be on disk yet";
}

static int warn(const struct gate_call *g, const struct text *why)
{
	say_warning("git has updated refs that the daemon could not record: "
		    "%s; %s, but history and feed lack them",
	    why->data, sync_alone(g));
	return EXIT_FAILED;
}

/* Git names HEAD too, if HEAD points to the branch, so HEAD does not count. */
static bool is_lone_deletion(const struct gate_call *g,
    const struct text *lines)
{
	struct changes changes = { 0 };
	bool is = add_lines(g, lines->data, lines->len, &changes);
	size_t i, nr = 0;

	for (i = 0; i < changes.nr; i++) {
		is = is && changes.updates[i].action == REFD_DELETE;
		nr += strcmp(changes.updates[i].name, "HEAD") != 0;
	}
	changes_done(&changes);
	return is && nr == 1;
}

/* Git runs no hook for the new name of a branch that it renames, and a deletion
 * alone would let mirrors delete the branch. So a deletion that stands alone is
 * followed by a look, in the background: git waits for this hook before it
 * writes the new name. */
static void look_later(const struct gate_call *g, const struct text *lines)
{
	char *git = xasprintf("%ld", (long)getppid()), *refd = program_refd();
	const char *argv[] = { refd, "look", "--after", git, "--socket",
		g->socket, g->gd.common, NULL };
	const struct launch l = { .argv = argv,
		.kind = LAUNCH_TERMINAL,
		.is_left = true,
		.in = LAUNCH_NULL,
		.out = LAUNCH_NULL,
		.err = LAUNCH_NULL,
		.dir = "/" };
	struct launched c;

	/* The look outlives this process, and nobody sees its failure. After a
	 * failure, the next look finds the new name. */
	if (is_lone_deletion(g, lines))
		launch_start(&c, &l);
	free(refd);
	free(git);
}

static int record(struct gate_call *g, const struct text *lines)
{
	int rc = EXIT_DONE;

	if (lines->len) {
		if (connect_gate(g, RECORD_MS) == CONNECT_SERVED &&
		    send_all(g, lines))
			look_later(g, lines);
		else
			rc = warn(g, &g->why);
	}
	if (g->left.len)
		rc = warn(g, &g->left);
	return rc;
}

static int forget(struct gate_call *g, const struct text *lines)
{
	if (connect_gate(g, FORGET_MS) == CONNECT_SERVED)
		send_all(g, lines);
	return EXIT_DONE;
}

static int run_phase(struct gate_call *g, const struct text *lines)
{
	switch (g->phase) {
	case REFD_GATE_PREPARED:
		return admit(g, lines);
	case REFD_GATE_COMMITTED:
		return record(g, lines);
	case REFD_GATE_ABORTED:
		return forget(g, lines);
	case REFD_GATE_SEEN:
	case REFD_GATE_NONE:
		break;
	}
	return EXIT_DONE;
}

/* Only a deletion begins with two null oids. */
static bool may_be_nested(const struct text *lines)
{
	return lines->len && strspn(lines->data, "0 ") > REFD_OID_MAX_HEX + 1;
}

static int ask_daemon(struct gate_call *g, const struct text *lines)
{
	const char *why;
	int rc = EXIT_DONE;

	context_config(&g->config, &g->gd);
	g->gd.is_reftable = gitconfig_is_reftable(&g->config);
	g->format = gitconfig_object_format(&g->config, &g->gd);
	why = unserved_reason(&g->gd, &g->config);
	if (why && g->phase == REFD_GATE_COMMITTED)
		say_warning("%s: history lacks this transaction", why);
	if (!why)
		rc = run_phase(g, lines);
	else if (g->phase == REFD_GATE_PREPARED)
		rc = leave_to_git(g, why);
	refd_free(g->daemon);
	free(g->socket);
	text_done(&g->why);
	gitconfig_done(&g->config);
	return rc;
}

/* The daemon of a node records nothing that git writes. */
static int ask_group(const struct gate_call *g, const struct text *input)
{
	return g->phase != REFD_GATE_PREPARED ||
		group_gate_allows(&g->gd, input) ?
	    EXIT_DONE :
	    EXIT_FAILED;
}

static int ask(struct gate_call *g, const struct text *input)
{
	struct text lines = { 0 };
	int rc = EXIT_DONE;

	if (!input->len)
		return EXIT_DONE;
	drop_long(g, input, &lines);
	if (g->phase != REFD_GATE_ABORTED || may_be_nested(&lines)) {
		gitdir_require(&g->gd, getenv("GIT_DIR"));
		rc = connect_is_in_group(&g->gd) ? ask_group(g, input) :
						   ask_daemon(g, &lines);
		gitdir_done(&g->gd);
	}
	text_done(&lines);
	text_done(&g->left);
	return rc;
}

/* ---- the chained hook ---- */

static int run_chained(const char *path, const char *phase,
    const struct text *input)
{
	char *hook = path ? xasprintf("%s" GATE_LINK_CHAINED, path) : NULL;
	const char *argv[] = { hook, phase, NULL };
	int rc = EXIT_DONE;

	if (hook && access(hook, X_OK) == 0)
		rc = child_hook(argv, ".", environ, input);
	free(hook);
	return rc < 0 ? EXIT_FAILED : rc;
}

int gate_run(const char *path, const char *phase)
{
	struct gate_call g = { .phase = REFD_GATE_NONE };
	struct text input = { 0 };
	int rc = EXIT_DONE, err = text_read(&input, 0, INPUT_BYTES_MAX);

	if (err)
		die("cannot read the lines of git: %s", strerror(-err));
	if (!strcmp(phase, "prepared"))
		g.phase = REFD_GATE_PREPARED;
	else if (!strcmp(phase, "committed"))
		g.phase = REFD_GATE_COMMITTED;
	else if (!strcmp(phase, "aborted"))
		g.phase = REFD_GATE_ABORTED;
	if (g.phase != REFD_GATE_PREPARED)
		rc = ask(&g, &input);
	err = run_chained(path, phase, &input);
	if (g.phase == REFD_GATE_PREPARED && !err)
		rc = ask(&g, &input);
	text_done(&input);
	return err ? err : rc;
}
