#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/scripted_txn.h"
#include "tests/lib/story_internal.h"

/* ---- updates ---- */

/* '\0': this is no value. */
static char value_of(const char *word)
{
	if (word == NULL)
		return '\0';
	if (strcmp(word, "none") == 0)
		return '0';
	return word[1] == '\0' ? word[0] : '\0';
}

/* The value of U, which is appended to SPEC in the notation of
 * world_apply(). */
static bool add_value(char **text, char **spec, struct story_update *u)
{
	const char *verb = story_word(text), *value = story_word(text);

	if (value == NULL)
		return false;
	if (strcmp(verb, "->") == 0) {
		u->value = '>';
		*spec += sprintf(*spec, "@%s>@%s", u->name, value);
		return true;
	}
	u->value = value_of(value);
	*spec += sprintf(*spec, "@%s=%c", u->name, u->value);
	return strcmp(verb, "=") == 0 && u->value != '\0';
}

static bool add_update(struct acting *a, char *text, char *spec,
    struct story_update *u)
{
	char *word = story_word(&text);
	const bool itself = word != NULL && strcmp(word, "itself") == 0;
	bool deletes;

	if (itself)
		word = story_word(&text);
	deletes = word != NULL && strcmp(word, "delete") == 0;
	if (deletes)
		word = story_word(&text);
	if (word == NULL)
		return false;
	snprintf(u->name, sizeof(u->name), "%s", word);
	u->is_direct = itself || story_ref(a, word) != '>';
	u->value = '0';
	spec += sprintf(spec, "%s", itself ? "!" : "");
	if (deletes)
		spec += sprintf(spec, "-@%s", word);
	else if (!add_value(&text, &spec, u))
		return false;
	u->is_pruned = u->value == 'p';
	word = story_word(&text);
	if (word == NULL)
		return true;
	if (strcmp(word, "was") != 0)
		return false;
	sprintf(spec, ":%c", value_of(story_word(&text)));
	return spec[1] != '\0' && story_word(&text) == NULL;
}

/* Fills in SPEC, and makes the event of the transaction. */
static struct story_event *read_updates(struct acting *a, char *args,
    char spec[1024])
{
	struct story_event *event = &a->events[a->nr_events++];
	char *colon, *update;

	assert(a->nr_events <= STORY_EVENTS);
	*event = (struct story_event){ .name = "" };
	event->atomic = strncmp(args, "atomic ", 7) == 0;
	args += event->atomic ? 7 : 0;
	colon = strchr(args, ':');
	if (colon != NULL && (size_t)(colon - args) < sizeof(event->id)) {
		memcpy(event->id, args, (size_t)(colon - args));
		args = colon + 1;
	}
	while ((update = strsep(&args, ",")) != NULL) {
		assert(event->nr_asked < STORY_UPDATES);
		if (!add_update(a, update, spec,
			&event->updates[event->nr_asked++]))
			story_fail(a, "this is no update: %s", spec);
		spec += strlen(spec);
		if (args != NULL)
			*spec++ = ';';
	}
	return event;
}

/* Notes what the client is told, and returns this as "ok, stale". Static. */
static const char *tell(struct acting *a, struct story_event *event,
    const struct txn *txn)
{
	static char text[256];
	const bool is_stopped = story_is_stopped(a);
	const struct txn_update *u;
	const char *name;
	size_t i, len = 0;

	if (txn == NULL)
		return "no answer";
	event->txid = txn->req.txid;
	event->nr = txn->nr_updates;
	assert(event->nr <= STORY_UPDATES);
	for (i = 0; i < event->nr; i++) {
		u = &txn->updates[i];
		if (u->status == REFD_OK)
			event->updates[i].told = TOLD_OK;
		else if (!is_stopped && u->status != REFD_UNKNOWN)
			event->updates[i].told = TOLD_NO;
		name =
		    u->status == REFD_PENDING && u->again == TXN_AGAIN_LOCKED ?
		    "locked" :
		    refd_status_name(u->status);
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s",
		    i > 0 ? ", " : "", name);
	}
	return text;
}

/* WANT may be one word for all NR updates. */
static void expect_answers(struct acting *a, const char *want, size_t nr,
    const char *have)
{
	char all[256];
	size_t len;

	len = (size_t)snprintf(all, sizeof(all), "%s", want);
	while (strchr(want, ',') == NULL && nr-- > 1)
		len += (size_t)snprintf(all + len, sizeof(all) - len, ", %s",
		    want);
	if (a->run->fault == NULL)
		story_expect(a, all, have);
}

static void apply(struct acting *a, char *args, const char *want)
{
	char spec[1024];
	struct story_event *event = read_updates(a, args, spec);
	struct txn *txn = world_apply(a->w, spec, event->atomic);

	expect_answers(a, want, txn != NULL ? txn->nr_updates : 1,
	    tell(a, event, txn));
	world_done(a->w, txn);
}

static void ok(struct acting *a, char *args)
{
	apply(a, args, "ok");
}

static void unknown(struct acting *a, char *args)
{
	apply(a, args, "unknown");
}

static void refused(struct acting *a, char *args)
{
	char *because = strstr(args, " because ");

	if (because == NULL) {
		story_fail(a, "because of what?");
		return;
	}
	*because = '\0';
	apply(a, args, because + strlen(" because "));
}

static struct acting *killing;

/* The commit of a daemon that is killed right after it. */
static int commit_then_die(void *arg, struct journal_row *rows, size_t nr,
    bool flush)
{
	struct acting *a = killing;
	int r = pipeline_commit(((struct world *)arg)->store.pipeline, rows, nr,
	    flush);

	if (r == 0 && a != NULL && !story_is_stopped(a)) {
		killing = NULL;
		story_end_fault(a);
		memfs_crash_at(a->w->fs, 0);
	}
	return r;
}

static void killed(struct acting *a, char *args)
{
	char spec[1024];
	struct story_event *event = read_updates(a, args, spec);
	struct txn *txn = world_begin(a->w, spec, event->atomic);
	size_t i;

	killing = a;
	if (txn != NULL) {
		a->w->store.pipeline->applier.commit = commit_then_die;
		world_batch(a->w, &txn, 1);
	}
	tell(a, event, txn);
	for (i = 0; killing == NULL && i < event->nr; i++)
		event->updates[i].told = TOLD_NOTHING;
	world_done(a->w, txn);
	if (killing != NULL && a->run->fault == NULL)
		story_fail(a, "the journal did not get the transaction");
	if (killing != NULL)
		story_end_fault(a);
	killing = NULL;
	if (a->w->up)
		story_down(a, NULL);
}

/* ---- sessions ---- */

static void prepare(struct acting *a, char *args)
{
	char spec[1024];
	struct story_event *event = read_updates(a, args, spec);
	struct txn *txn = world_session(a->w, spec, event->atomic);

	if (txn != NULL)
		event->txid = txn->req.txid;
	if (txn != NULL && txn->prepared != NULL && !story_is_stopped(a)) {
		a->session = txn;
		a->of_session = event;
		return;
	}
	if (a->run->fault == NULL)
		story_fail(a, "not prepared: %s", tell(a, event, txn));
	else
		tell(a, event, txn);
	world_done(a->w, txn);
}

static void end_session(struct acting *a, bool commits)
{
	struct txn *txn = a->session;

	if (txn == NULL) {
		if (a->run->fault == NULL)
			story_fail(a, "no session is prepared");
		return;
	}
	a->session = NULL;
	world_session_end(a->w, txn, commits);
	if (commits)
		expect_answers(a, "ok", txn->nr_updates,
		    tell(a, a->of_session, txn));
	world_done(a->w, txn);
}

static void commit(struct acting *a, char *args)
{
	(void)args;
	end_session(a, true);
}

static void abort_session(struct acting *a, char *args)
{
	(void)args;
	end_session(a, false);
}

/* ---- the daemon and the machine ---- */

static void die(struct acting *a, char *args)
{
	(void)args;
	if (a->w->up)
		story_down(a, NULL);
	else if (a->run->fault == NULL)
		story_fail(a, "the daemon does not run");
}

static void start(struct acting *a, char *args)
{
	(void)args;
	if (!a->w->up)
		story_start(a);
	else if (a->run->fault == NULL)
		story_fail(a, "the daemon runs already");
}

static void checkpoint(struct acting *a, char *args)
{
	int r = world_checkpoint(a->w);

	(void)args;
	if (r != 0 && a->run->fault == NULL)
		story_fail(a, "checkpoint: %s", strerror(-r));
}

static void retry(struct acting *a, char *args)
{
	(void)args;
	world_retry(a->w);
}

static void lose_power(struct acting *a, char *args)
{
	static const struct {
		const char *name;
		long keep;
		enum memfs_data data;
	} losses[] = { { "keeps nothing", 0, MEMFS_DATA_NONE },
		{ "keeps names", LONG_MAX, MEMFS_DATA_NONE },
		{ "keeps names with NULs", LONG_MAX, MEMFS_DATA_NULS },
		{ "keeps everything", LONG_MAX, MEMFS_DATA_ALL } };
	struct memfs_choice choice = { .seed = 1 };
	size_t i;

	for (i = 0; i < sizeof(losses) / sizeof(losses[0]); i++)
		if (strcmp(args, losses[i].name) == 0)
			break;
	if (i == sizeof(losses) / sizeof(losses[0])) {
		story_fail(a, "this power loss is unknown");
		return;
	}
	choice.keep[0] = losses[i].keep;
	choice.data = losses[i].data;
	story_down(a, &choice);
}

/* ---- other programs and people ---- */

static void git(struct acting *a, char *args)
{
	if (!story_git(a, args) && a->run->fault == NULL)
		story_fail(a, "git: a lock is in the way");
}

static void beside(struct acting *a, char *args)
{
	static char text[256];

	if (strncmp(args, "git ", 4) != 0) {
		story_fail(a, "only git acts beside a step");
		return;
	}
	snprintf(text, sizeof(text), "%s", args + 4);
	a->beside = text;
}

static void sync_all(struct acting *a, char *args)
{
	(void)args;
	scripted_sync(a->w);
}

static void remove_path(struct acting *a, char *args)
{
	const struct sys *sys = memfs_other(a->w->fs);
	char *list, *at, *lock;
	int nr = 0;

	if (strcmp(args, "locks") == 0) {
		list = at = memfs_list_locks(a->w->fs, WORLD_REPO);
		while ((lock = strsep(&at, "\n")) != NULL)
			nr += *lock != '\0' &&
			    SYS(sys, unlinkat, AT_FDCWD, lock) == 0;
		free(list);
		a->locks[0] = '\0';
	} else {
		nr = SYS(sys, unlinkat, AT_FDCWD, story_path(args)) == 0;
	}
	if (nr == 0 && a->run->fault == NULL)
		story_fail(a, "there is nothing to remove");
}

/* TEXT with "\n" for the end of a line, and ids. */
static char *content(char *text)
{
	char *at;

	while ((at = strstr(text, "\\n")) != NULL) {
		*at = '\n';
		memmove(at + 1, at + 2, strlen(at + 2) + 1);
	}
	return world_text(text);
}

static void write_path(struct acting *a, char *args)
{
	char *path = story_word(&args), *text;

	text = content(args != NULL ? args : path + strlen(path));
	memfs_advance(a->w->fs, INT64_C(1000000000));
	memfs_write(a->w->fs, story_path(path), text);
	free(text);
	story_note(a, path, '*');
}

#define HOUR_NS INT64_C(3600000000000)

/* The number before UNIT, which is "h" for hours, or "" for seconds. */
static long number(struct acting *a, char *args, const char *unit)
{
	const char *word = story_word(&args);
	char *end;
	long nr = strtol(word, &end, 10);

	if (nr == 0 || strcmp(end, unit) != 0)
		story_fail(a, "'%s' is no number of %s", word,
		    *unit != '\0' ? "hours" : "seconds");
	return nr;
}

/* Somebody sets the clock by "+1h" or "-1h". */
static void set_clock(struct acting *a, char *args)
{
	memfs_step_clock(a->w->fs, number(a, args, "h") * HOUR_NS);
}

/* A tool sets the time of a file: "PATH 1h" is an hour ahead. After a fault the
 * file may be missing. */
static void touch(struct acting *a, char *args)
{
	const char *path = story_path(story_word(&args));
	const int64_t ns = number(a, args, "h") * HOUR_NS;

	if (a->run->fault == NULL || memfs_exists(a->w->fs, path))
		memfs_set_mtime(a->w->fs, path, ns);
}

/* As ext4 with inodes of 128 bytes. */
static void tick(struct acting *a, char *args)
{
	(void)args;
	memfs_set_tick(a->w->fs, INT64_C(1000000000));
}

/* The next lines have the time of lines before. */
static void second(struct acting *a, char *args)
{
	a->w->seconds -= (unsigned)number(a, args, "");
	a->has_equal_lines = true;
}

#define AWAY "/srv/away"

static void move_away(struct acting *a, char *args)
{
	(void)args;
	a->is_away = SYS(memfs_other(a->w->fs), renameat, AT_FDCWD, WORLD_REPO,
			 AT_FDCWD, AWAY) == 0;
}

static void move_back(struct acting *a, char *args)
{
	(void)args;
	/* A power loss can undo an earlier move. */
	if (memfs_exists(a->w->fs, AWAY))
		SYS(memfs_other(a->w->fs), renameat, AT_FDCWD, AWAY, AT_FDCWD,
		    WORLD_REPO);
	a->is_away = false;
}

static void fail(struct acting *a, char *args)
{
	static const char *const calls[] = {
#define X(name, call) #call,
		MEMFS_CALLS(X)
#undef X
	};
	char *name = story_word(&args), *word = story_word(&args);
	const bool is_after = word != NULL && strcmp(word, "after") == 0;
	size_t call;

	if (a->run->fault != NULL)
		return;
	if (is_after)
		word = story_word(&args);
	for (call = 0; call < MEMFS_NR_CALLS; call++)
		if (strcmp(name, calls[call]) == 0)
			break;
	if (call == MEMFS_NR_CALLS || word == NULL ||
	    strcmp(word, "EIO") != 0 || story_word(&args) != NULL) {
		story_fail(a, "there is no such call, or no such error");
		return;
	}
	if (is_after)
		memfs_fail_after(a->w->fs, (enum memfs_call)call, 0, -EIO);
	else
		memfs_fail_call(a->w->fs, (enum memfs_call)call, 0, -EIO);
	a->is_failing = true;
}

/* The files of refd have another mode, or more names. */
static bool is_of_git(struct acting *a, const char *lock)
{
	struct sys_stat st;

	return SYS(memfs_other(a->w->fs), lstatat, AT_FDCWD, lock, &st) == 0 &&
	    st.nlink == 1 && (st.mode & 0777) == 0666;
}

void story_settle(struct acting *a)
{
	const struct sys *sys = memfs_other(a->w->fs);
	char *list, *at, *lock;

	move_back(a, NULL);
	list = at = memfs_list_locks(a->w->fs, WORLD_REPO);
	while ((lock = strsep(&at, "\n")) != NULL)
		if (*lock != '\0' && is_of_git(a, lock))
			SYS(sys, unlinkat, AT_FDCWD, lock);
	free(list);
	if (is_of_git(a, WORLD_REPO "/packed-refs.new"))
		SYS(sys, unlinkat, AT_FDCWD, WORLD_REPO "/packed-refs.new");
	a->locks[0] = '\0';
}

/* ---- expectations ---- */

static const char *value_text(char value)
{
	static char text[2];

	text[0] = value;
	return value == '0' ? "none" :
	    value == '>'    ? "symbolic" :
	    value == '?'    ? "broken" :
			      text;
}

static void ref(struct acting *a, char *args)
{
	char *name = story_word(&args), *is = story_word(&args);
	char *value = story_word(&args);

	if (strcmp(is, "=") != 0)
		story_fail(a, "this is no ref with a value");
	else
		story_expect(a, value, value_text(story_ref(a, name)));
}

static void log_lines(struct acting *a, char *args)
{
	char *name = story_word(&args);
	const char *have = story_log(a, name);

	story_expect(a, args != NULL ? args : "",
	    *have != '\0' ? have : "none");
}

static int by_text(const void *x, const void *y)
{
	return strcmp(*(char *const *)x, *(char *const *)y);
}

static void locks(struct acting *a, char *args)
{
	char *want[16], text[2048] = "", *name, *have;
	size_t nr = 0, i;

	while ((name = story_word(&args)) != NULL && nr < 16)
		if (strcmp(name, "none") != 0)
			want[nr++] = strdup(story_lock(a, name));
	qsort(want, nr, sizeof(want[0]), by_text);
	for (i = 0; i < nr; i++) {
		strcat(strcat(text, want[i]), "\n");
		free(want[i]);
	}
	have = memfs_list_locks(a->w->fs, WORLD_REPO);
	story_expect(a, text, have);
	free(have);
}

static void answer(struct acting *a, char *args)
{
	char *id = story_word(&args), *is;
	size_t i;

	for (i = 0; i < a->nr_events; i++)
		if (id != NULL && *id != '\0' &&
		    strcmp(a->events[i].id, id) == 0)
			break;
	is = story_word(&args);
	if (i == a->nr_events || is == NULL || strcmp(is, "=") != 0 ||
	    args == NULL)
		story_fail(a, "there is no such id, or no answer");
	else
		expect_answers(a, args, a->events[i].nr,
		    story_answer(a, &a->events[i]));
}

static void finding(struct acting *a, char *args)
{
	char text[512] = "";
	size_t len = 0;
	int i;

	for (i = 0; i < STORE_FINDINGS; i++)
		if (a->w->found[i] > 0)
			len += (size_t)snprintf(text + len, sizeof(text) - len,
			    "%s%s %llu", len > 0 ? ", " : "",
			    store_finding_name((enum store_finding)i),
			    (unsigned long long)a->w->found[i]);
	story_expect(a, args, len > 0 ? text : "none");
}

static void deferred(struct acting *a, char *args)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu",
	    (unsigned long long)a->w->deferred);
	story_expect(a, args, text);
}

static void file(struct acting *a, char *args)
{
	char *path = story_word(&args), *want, *have;

	have = memfs_read(a->w->fs, story_path(path), NULL);
	want = content(args != NULL ? args : path + strlen(path));
	story_expect(a, want, have != NULL ? have : "none");
	free(have);
	free(want);
}

static const struct story_verb verbs[] = {
	{ .name = "ok",
	    .act = ok,
	    .needs_daemon = true,
	    .nr_words = STORY_ANY_WORDS },
	{ .name = "unknown",
	    .act = unknown,
	    .needs_daemon = true,
	    .nr_words = STORY_ANY_WORDS },
	{ .name = "refused",
	    .act = refused,
	    .needs_daemon = true,
	    .nr_words = STORY_ANY_WORDS },
	{ .name = "killed",
	    .act = killed,
	    .needs_daemon = true,
	    .nr_words = STORY_ANY_WORDS },
	{ .name = "prepare",
	    .act = prepare,
	    .needs_daemon = true,
	    .nr_words = STORY_ANY_WORDS },
	{ .name = "commit", .act = commit, .needs_daemon = true },
	{ .name = "abort", .act = abort_session, .needs_daemon = true },
	{ .name = "kill", .act = die },
	{ .name = "start", .act = start },
	{ .name = "power-loss",
	    .act = lose_power,
	    .nr_words = STORY_ANY_WORDS },
	{ .name = "checkpoint", .act = checkpoint, .needs_daemon = true },
	{ .name = "retry", .act = retry, .needs_daemon = true },
	{ .name = "fail", .act = fail, .nr_words = STORY_ANY_WORDS },
	{ .name = "git", .act = git, .nr_words = STORY_ANY_WORDS },
	{ .name = "beside", .act = beside, .nr_words = STORY_ANY_WORDS },
	{ .name = "sync", .act = sync_all },
	{ .name = "remove", .act = remove_path, .nr_words = 1 },
	{ .name = "write", .act = write_path, .nr_words = STORY_ANY_WORDS },
	{ .name = "clock", .act = set_clock, .nr_words = 1 },
	{ .name = "touch", .act = touch, .nr_words = 2 },
	{ .name = "times-in-seconds", .act = tick },
	{ .name = "seconds-back", .act = second, .nr_words = 1 },
	{ .name = "away", .act = move_away },
	{ .name = "back", .act = move_back },
	{ .name = "ref", .act = ref, .is_look = true, .nr_words = 3 },
	{ .name = "log",
	    .act = log_lines,
	    .is_look = true,
	    .nr_words = STORY_ANY_WORDS },
	{ .name = "lock",
	    .act = locks,
	    .is_look = true,
	    .nr_words = STORY_ANY_WORDS },
	{ .name = "answer",
	    .act = answer,
	    .needs_daemon = true,
	    .is_look = true,
	    .nr_words = STORY_ANY_WORDS },
	{ .name = "finding",
	    .act = finding,
	    .is_look = true,
	    .nr_words = STORY_ANY_WORDS },
	{ .name = "deferred", .act = deferred, .is_look = true, .nr_words = 1 },
	{ .name = "file",
	    .act = file,
	    .is_look = true,
	    .nr_words = STORY_ANY_WORDS },
};

const struct story_verb *story_verb(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (strcmp(verbs[i].name, name) == 0)
			return &verbs[i];
	return NULL;
}
