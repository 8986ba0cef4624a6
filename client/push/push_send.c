#include "client/push/push_send.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "client/git/gitversion.h"
#include "client/librefd/refd_internal.h"
#include "client/request/changes.h"
#include "client/request/connect.h"
#include "client/request/context.h"
#include "client/request/git_messages.h"
#include "client/request/unserved.h"
#include "proto/detail.h"
#include "proto/lib/clock.h"
#include "proto/lib/lock_pid.h"
#include "proto/lib/query_command.h"
#include "proto/lib/time_text.h"

/* ---- what the pusher is told meanwhile ---- */

/*
 * Tells a pusher why there is no answer yet, because a push that waits in
 * silence looks like a push that hangs. The daemon may be paused or busy. Of
 * several nodes, the others first fetch the objects of an update, and a node
 * that does not lead waits, because it may become the leader. git shows the
 * lines of the hook's standard error as "remote: ...".
 *
 * SIGALRM prints the lines, so between begin and end this hook uses no other
 * alarm and starts no program. System calls end with EINTR meanwhile.
 */

#define FIRST_S 2
#define NEXT_S  10

static const char of_group[] =
    "refd: no answer yet: other nodes of the group fetch the objects first, or "
    "are away, or this node does not lead\n";
static const char of_daemon[] =
    "refd: no answer yet: the daemon is paused or busy, or waits for a disk; "
    "'refd status' on the server says which\n";

static const char *volatile line;
static volatile sig_atomic_t has_told;

/* Only calls that a handler of a signal may make. */
static void tell(int sig)
{
	const int saved = errno;

	(void)sig;
	if (write(STDERR_FILENO, line, strlen(line)) > 0)
		has_told = 1;
	alarm(NEXT_S);
	errno = saved;
}

/* From now on a line is printed after two seconds, and then every ten seconds.
 * Main thread. */
static void push_progress_begin(bool is_in_group)
{
	struct sigaction action = { .sa_handler = tell };

	line = is_in_group ? of_group : of_daemon;
	has_told = 0;
	sigemptyset(&action.sa_mask);
	sigaction(SIGALRM, &action, NULL);
	alarm(FIRST_S);
}

/* Nothing is printed any more. True if a line was printed. */
static bool push_progress_end(void)
{
	alarm(0);
	return has_told;
}

/* ---- one request ---- */

/*
 * One request for some commands of a push, and the verdicts from its answer, in
 * receive-pack's words.
 *
 * One thread. Packing may run git, for the committer's date.
 */

/* Borrows the commands, and parts of the request from the push_send. */
struct push_request {
	struct push_command **commands;
	const char *socket; /* of the daemon that gets the request */
	struct changes changes;
	struct refd_request req;
};

/* ---- the request ---- */

static void add_change(struct changes *changes, const struct push_command *c)
{
	struct refd_update u = { .name = c->ref, .new_oid = c->new_oid };

	u.action = REFD_UPDATE;
	if (refd_oid_is_null(&c->new_oid))
		u.action = REFD_DELETE;
	else if (refd_oid_is_null(&c->old_oid))
		u.action = REFD_CREATE;
	if (u.action != REFD_CREATE) {
		u.has_old = true;
		u.old_oid = c->old_oid;
	}
	changes_add(changes, &u);
}

/* Makes a request for NR commands of D, from AT on. */
static void push_request_pack(struct push_request *p, const struct push_send *d,
    enum refd_verb verb, size_t at, size_t nr)
{
	size_t i;

	memset(p, 0, sizeof(*p));
	p->commands = d->commands + at;
	p->socket = d->daemon->path;
	for (i = 0; i < nr; i++)
		add_change(&p->changes, p->commands[i]);
	context_request(&p->req, d->gd, d->config);
	p->req.verb = verb;
	p->req.object_format = p->commands[0]->object_format;
	p->req.atomic = d->atomic;
	p->req.push = true;
	p->req.message = "push";
	p->req.committer = d->committer;
	/* receive-pack does not look for a work tree, so a repository without
	 * core.bare is bare. */
	if (!gitconfig_get(d->config, "core.logallrefupdates"))
		p->req.log_all_ref_updates =
		    gitconfig_bool(d->config, "core.bare", true) ? "false" :
								   "true";
	p->req.updates = p->changes.updates;
	p->req.nr_updates = p->changes.nr;
	if (refd_txid_make(&p->req.txid) < 0)
		die("cannot make a transaction id");
}

static void push_request_done(struct push_request *p)
{
	changes_done(&p->changes);
}

/* ---- the answer ---- */

/* Gives NR commands without a verdict the reason WHY. */
static void push_request_refuse(struct push_command *const *commands, size_t nr,
    const char *why)
{
	size_t i;

	for (i = 0; i < nr; i++)
		commands[i]->ng = xstrdup(why);
}

static void say_failed(const struct push_request *p, size_t failed)
{
	char id[REFD_TXID_HEX + 1];

	refd_txid_hex(&p->req.txid, id);
	if (failed == p->req.nr_updates)
		say("nothing was updated by transaction %s", id);
	else
		say("%zu of %zu refs were not updated by transaction %s",
		    failed, p->req.nr_updates, id);
}

static char *unknown_text(const struct push_request *p)
{
	char id[REFD_TXID_HEX + 1], *text;
	char *command = query_command(p->socket, &p->req.txid);

	if (!command)
		die("out of memory");
	text = xasprintf("refd: outcome unknown (transaction %s): ask with "
			 "\"%s\"",
	    refd_txid_hex(&p->req.txid, id), command);
	free(command);
	return text;
}

/* Git's sentence names the process, if known, but not the age of the lock, so
 * the age is said here. */
static void say_lock(const struct refd_detail_arg *lock)
{
	char *path = xasprintf("%.*s", (int)lock->len, lock->data);
	char text[TIME_TEXT_MAX];
	struct stat st;
	uint64_t age_s;

	if (lstat(path, &st) == 0) {
		age_s = lock_age_s(time(NULL), st.st_ctime);
		say("the lock is %s old and belongs to the user id %ld; if no "
		    "process holds the lock any more, an administrator can "
		    "remove it with \"refd locks --clear-dead\"",
		    time_text_age((int64_t)age_s, text), (long)st.st_uid);
	}
	free(path);
}

static void say_detail(const struct push_request *p,
    const struct refd_update *u, const struct refd_result *res)
{
	char hex[REFD_OID_MAX_HEX + 1];
	struct text detail = { 0 };
	struct refd_detail why;
	const bool has_detail = refd_detail_read(res->text, &why);

	/* Any other text names an object that the value needs. */
	if (res->status == REFD_NOOBJECT && (has_detail || res->text == NULL)) {
		say_error("unpack should have generated %s, but I can't find "
			  "it!",
		    refd_oid_hex(&u->new_oid, p->req.object_format, hex));
		return;
	}
	git_messages_detail(u, res, GIT_2_55, NULL, &detail);
	say_error("%s", detail.data);
	text_done(&detail);
	if (!has_detail)
		return;
	if (why.kind == REFD_DETAIL_LOCKED)
		say_lock(&why.args[1]);
	else if (why.kind == REFD_DETAIL_PACKED_LOCKED)
		say_lock(&why.args[0]);
}

/* The update that made the transaction fail; the number of updates: none. Bad
 * values come first, since they are checked before any lock. */
static size_t find_culprit(const struct push_request *p,
    const struct refd_answer *ans)
{
	size_t i, first = p->req.nr_updates;

	for (i = ans->nr_results; i-- > 0;) {
		enum refd_status status = ans->results[i].status;

		if (status != REFD_OK && status != REFD_ABORTED &&
		    status != REFD_UNKNOWN)
			first = i;
	}
	for (i = 0; i < ans->nr_results; i++)
		if (git_messages_is_bad_value(ans->results[i].status))
			return i;
	return first;
}

/* For an atomic push, git reports one cause. */
static void take_rejection(const struct push_request *p,
    const struct refd_answer *ans)
{
	size_t culprit = find_culprit(p, ans), i;
	const char *rest = "atomic transaction failed";

	if (culprit < ans->nr_results) {
		const struct refd_result *res = &ans->results[culprit];

		say_detail(p, &p->changes.updates[culprit], res);
		if (git_messages_is_bad_value(res->status)) {
			p->commands[culprit]->ng =
			    xstrdup(git_messages_push(res->status));
			rest = "atomic push failure";
		}
	}
	for (i = 0; i < p->req.nr_updates; i++)
		if (!p->commands[i]->ng)
			p->commands[i]->ng = xstrdup(rest);
	say_failed(p, p->req.nr_updates);
}

static void take_each(const struct push_request *p,
    const struct refd_answer *ans)
{
	static const struct refd_result none = { .status = REFD_UNKNOWN };
	size_t i, failed = 0;

	for (i = 0; i < p->req.nr_updates; i++) {
		const struct refd_result *res =
		    i < ans->nr_results ? &ans->results[i] : &none;
		char **ng = &p->commands[i]->ng;

		if (res->status == REFD_OK)
			continue;
		if (res->status == REFD_UNKNOWN) {
			*ng = unknown_text(p);
			continue;
		}
		*ng = xstrdup(git_messages_push(res->status));
		say_detail(p, &p->changes.updates[i], res);
		failed++;
	}
	if (failed)
		say_failed(p, failed);
}

static void take_results(const struct push_request *p,
    const struct refd_answer *ans)
{
	if (p->req.atomic && ans->outcome == REFD_REJECTED)
		take_rejection(p, ans);
	else
		take_each(p, ans);
}

static void take_refusal(const struct push_request *p,
    const struct refd_answer *ans)
{
	char *why;

	if (ans->kind != REFD_ANSWER_REFUSED || ans->status == REFD_UNKNOWN)
		why = unknown_text(p);
	else
		why = xasprintf("failed to update ref: refd: %s: %s",
		    refd_status_name(ans->status),
		    ans->text && *ans->text ? ans->text :
					      refd_status_text(ans->status));
	if (ans->kind == REFD_ANSWER_REFUSED && ans->status != REFD_UNKNOWN)
		say_failed(p, p->changes.nr);
	push_request_refuse(p->commands, p->req.nr_updates, why);
	free(why);
}

/* Gives each command its verdict, and reports failures on standard error. */
static void push_request_take(const struct push_request *p,
    const struct refd_answer *ans)
{
	if (ans->kind == REFD_ANSWER_RESULTS)
		take_results(p, ans);
	else
		take_refusal(p, ans);
}

/* The time limit of the push. The daemon's limit is shorter, so that its answer
 * arrives in time. */
#define DEADLINE_MS REFD_HOOK_DEADLINE_MS
#define GRACE_MS    5000

/* ---- the order of the commands ---- */

static bool deletes(const struct push_command *c)
{
	return refd_oid_is_null(&c->new_oid);
}

/* Collects the commands: first all for which FIRST is true, then the rest. */
static void gather(struct push_send *d, struct push *push,
    bool (*first)(const struct push_command *c))
{
	size_t i;
	int pass;

	d->commands = xcalloc(push->nr, sizeof(*d->commands));
	for (pass = 0; pass < 2; pass++)
		for (i = 0; i < push->nr; i++) {
			struct push_command *c = &push->commands[i];

			if (!c->is_chained && first(c) == (pass == 0))
				d->commands[d->nr++] = c;
		}
}

static bool any(const struct push_command *c)
{
	(void)c;
	return true;
}

/* Does the push have deletions and other commands? */
static bool is_mixed(const struct push *push)
{
	size_t i, nr = 0, gone = 0;

	for (i = 0; i < push->nr; i++)
		if (!push->commands[i].is_chained) {
			nr++;
			gone += deletes(&push->commands[i]);
		}
	return gone > 0 && gone < nr;
}

/*
 * git 2.51 and later do deletions first, since they make room for names. Older
 * versions follow the order of the commands. Only hooks can see the difference.
 */
static void arrange(struct push_send *d, struct push *push, bool has_rules)
{
	bool is_told = reftx_exists(&d->hook);
	bool is_seen = is_told || (has_rules && is_mixed(push));
	bool is_old = !d->atomic && is_seen && gitversion_before(2, 51);

	gather(d, push, d->atomic || is_old ? any : deletes);
	if (d->atomic || !is_told)
		d->way = PUSH_SEND_WHOLE;
	else
		d->way = is_old ? PUSH_SEND_ONE_BY_ONE : PUSH_SEND_BY_KIND;
}

bool push_send_next(struct push_send *d)
{
	struct push_command **batch;

	d->at += d->nr_batch;
	d->nr_batch = 0;
	if (d->at == d->nr)
		return false;
	batch = d->commands + d->at;
	switch (d->way) {
	case PUSH_SEND_WHOLE:
		d->nr_batch = d->nr;
		break;
	case PUSH_SEND_BY_KIND:
		while (d->at + d->nr_batch < d->nr &&
		    deletes(batch[d->nr_batch]) == deletes(batch[0]))
			d->nr_batch++;
		break;
	case PUSH_SEND_ONE_BY_ONE:
		d->nr_batch = 1;
		break;
	}
	return true;
}

/* Moves commands with a verdict to the end. Returns the number of commands
 * without a verdict. */
static size_t sort_out(struct push_command **commands, size_t nr)
{
	size_t i, left = 0;

	for (i = 0; i < nr; i++)
		if (!commands[i]->ng) {
			struct push_command *c = commands[i];

			commands[i] = commands[left];
			commands[left++] = c;
		}
	return left;
}

/* A transaction cannot have duplicates, so the whole push fails, as in git. */
static bool refuse_duplicates(struct push_send *d)
{
	const char **names = xcalloc(d->nr, sizeof(*names)), *found;
	size_t i, nr = 0;

	for (i = 0; i < d->nr; i++)
		if (!d->commands[i]->ng)
			names[nr++] = d->commands[i]->ref;
	found = cli_duplicate(names, nr);
	free(names);
	if (!found)
		return false;
	say_error("multiple updates for ref '%s' not allowed", found);
	for (i = 0; i < d->nr; i++)
		if (!d->commands[i]->ng)
			d->commands[i]->ng =
			    xstrdup(d->atomic ? "atomic transaction failed" :
						"failed to update refs");
	return true;
}

/* ---- a single transaction ---- */

static bool is_late(const struct refd_answer *ans)
{
	size_t i;

	if (ans->kind == REFD_ANSWER_REFUSED)
		return ans->status == REFD_DEADLINE;
	for (i = 0; i < ans->nr_results; i++)
		if (ans->results[i].status == REFD_DEADLINE)
			return true;
	return false;
}

static void call(const struct push_send *d, struct push_request *p,
    struct refd_answer *ans)
{
	const bool is_in_group = connect_is_in_group(d->gd);

	push_progress_begin(is_in_group);
	connect_call(d->daemon, &p->req, d->deadline - GRACE_MS, GRACE_MS, ans);
	if (push_progress_end() && is_in_group && is_late(ans))
		say("push again: the other nodes go on fetching the objects");
}

/* True if the daemon does not serve the transaction. Nothing of it is done. */
static bool is_unserved(struct push_send *d, const struct refd_answer *ans)
{
	const char *why = unserved_push(ans, d->gd, d->config);

	if (!why)
		return false;
	free(d->unserved);
	d->unserved = xstrdup(why);
	return true;
}

static bool put_whole(struct push_send *d, size_t nr)
{
	struct refd_answer ans;
	struct push_request p;
	bool done;

	push_request_pack(&p, d, REFD_VERB_TRANSACTION, d->at, nr);
	call(d, &p, &ans);
	done = !is_unserved(d, &ans);
	if (done)
		push_request_take(&p, &ans);
	refd_answer_done(&ans);
	push_request_done(&p);
	return done;
}

/* ---- in sessions ---- */

static const char *hooks_reason(const struct push_send *d)
{
	if (d->atomic)
		return "atomic transaction failed";
	return d->way == PUSH_SEND_BY_KIND ? "failed to update refs" :
					     "failed to update ref";
}

static void refuse_by_hook(const struct push_send *d,
    const struct push_request *p)
{
	struct text why = { 0 };

	reftx_why(&d->hook, &why);
	say_error("%s", why.data);
	text_done(&why);
	push_request_refuse(p->commands, p->req.nr_updates, hooks_reason(d));
}

/* A busy daemon must not take the time of the next refs, or hold up what the
 * hook says. */
static void abort_session(struct push_send *d, struct push_request *p)
{
	struct refd_answer ans;

	connect_end_session(d->daemon, &p->req, REFD_VERB_ABORT,
	    clock_deadline_ms(GRACE_MS), 0, &ans);
	refd_answer_done(&ans);
	reftx_aborted(&d->hook);
	refuse_by_hook(d, p);
}

/* The hook may have taken all the time, so the answer is awaited for GRACE_MS
 * at least. */
static void commit_session(struct push_send *d, struct push_request *p)
{
	struct refd_answer ans;

	connect_end_session(d->daemon, &p->req, REFD_VERB_COMMIT,
	    d->deadline - GRACE_MS, GRACE_MS, &ans);
	reftx_ended(&d->hook, &ans, true);
	push_request_take(p, &ans);
	refd_answer_done(&ans);
}

/* Every update failed separately, but to the hook the transaction continues. */
static void tell_of_nothing(struct push_send *d, const struct push_request *p,
    const struct refd_answer *ans)
{
	if (reftx_prepared(&d->hook, &p->changes, ans)) {
		reftx_committed(&d->hook);
		push_request_take(p, ans);
	} else {
		reftx_aborted(&d->hook);
		refuse_by_hook(d, p);
	}
}

/* The hook accepted "preparing", so the daemon is asked for a session. */
static bool hold(struct push_send *d, struct push_request *p)
{
	struct refd_answer ans;
	bool done = true;

	call(d, p, &ans);
	if (ans.kind == REFD_ANSWER_PREPARED &&
	    reftx_prepared(&d->hook, &p->changes, &ans))
		commit_session(d, p);
	else if (ans.kind == REFD_ANSWER_PREPARED)
		abort_session(d, p);
	else if (is_unserved(d, &ans))
		done = false;
	else if (ans.kind == REFD_ANSWER_RESULTS && !d->atomic &&
	    d->way == PUSH_SEND_BY_KIND)
		tell_of_nothing(d, p, &ans);
	else
		push_request_take(p, &ans);
	refd_answer_done(&ans);
	return done;
}

static bool put_session(struct push_send *d, size_t nr)
{
	struct push_request p;
	bool done = true;

	push_request_pack(&p, d, REFD_VERB_SESSION, d->at, nr);
	if (reftx_preparing(&d->hook, &p.changes))
		done = hold(d, &p);
	else
		refuse_by_hook(d, &p);
	push_request_done(&p);
	return done;
}

/* ---- */

/* A push of a mirror may exceed the limits of a transaction. The parts must
 * stay together, so git does the push. */
static bool is_too_large(const struct push_send *d,
    const struct refd_hello *hello)
{
	size_t i, bytes = REFD_PATH_MAX;

	for (i = 0; i < d->nr; i++)
		bytes +=
		    strlen(d->commands[i]->ref) + 2 * REFD_OID_MAX_HEX + 16;
	return d->nr > hello->max_updates || bytes > hello->max_bytes;
}

/* Git must not do it: see connect_daemon(). */
static void refuse_unserved(struct push_send *d, const char *what,
    const char *why)
{
	char *reason = xasprintf("failed to update ref: refd: %s%s", what, why);

	push_request_refuse(d->commands, d->nr, reason);
	free(reason);
}

static enum push_writer connect_and_choose(struct push_send *d,
    const char **gits)
{
	struct daemon_socket socket;
	enum push_writer by = PUSH_BY_NOBODY;
	struct text why = { 0 };

	connect_choose(&socket, NULL, d->config, d->gd);
	d->daemon = connect_new(&socket);
	switch (connect_daemon(d->daemon, socket.path,
	    connect_fallback(d->config, FALLBACK_GIT), d->gd,
	    clock_deadline_ms(PUSH_CONNECT_MS), &why)) {
	case CONNECT_SERVED:
		by = PUSH_BY_DAEMON;
		if (is_too_large(d, refd_hello(d->daemon))) {
			*gits = "the push is more than one transaction holds";
			by = PUSH_BY_GIT;
		}
		break;
	case CONNECT_USE_GIT:
		say("%s; git updates the refs itself", why.data);
		by = PUSH_BY_GIT;
		break;
	case CONNECT_FAILED:
		say("%s", why.data);
		refuse_unserved(d, "the daemon is away: ", why.data);
		break;
	case CONNECT_DENIED:
		refuse_unserved(d, "", why.data);
		break;
	}
	text_done(&why);
	free(socket.path);
	return by;
}

enum push_writer push_send_open(struct push_send *d, struct push *push,
    const struct gitdir *gd, const struct gitconfig *config, bool has_rules,
    const char **why)
{
	memset(d, 0, sizeof(*d));
	d->atomic = push->atomic;
	d->gd = gd;
	d->config = config;
	d->left_ms = DEADLINE_MS;
	reftx_find_here(&d->hook, gd, config);
	arrange(d, push, has_rules);
	return connect_and_choose(d, why);
}

static bool put(struct push_send *d, size_t nr)
{
	/* The batches before may all have been refused, and then nothing was
	 * sent. */
	bool is_first = !d->committer, done;

	if (is_first) {
		d->committer = context_committer(d->config, d->gd);
		reftx_warn(&d->hook);
	}
	if (d->left_ms <= GRACE_MS) {
		push_request_refuse(d->commands + d->at, nr,
		    "failed to update ref: refd: deadline");
		return true;
	}
	d->deadline = clock_deadline_ms((int)d->left_ms);
	done = reftx_exists(&d->hook) ? put_session(d, nr) : put_whole(d, nr);
	d->left_ms = connect_ms_left(d->deadline);
	if (done || is_first)
		return done;
	push_request_refuse(d->commands + d->at, nr, "failed to update ref");
	return true;
}

bool push_send_put(struct push_send *d)
{
	size_t nr;

	if (d->at == 0 && refuse_duplicates(d))
		return true;
	nr = sort_out(d->commands + d->at, d->nr_batch);
	return !nr || put(d, nr);
}

void push_send_close(struct push_send *d)
{
	reftx_done(&d->hook);
	refd_free(d->daemon);
	free(d->commands);
	free(d->committer);
	free(d->unserved);
	memset(d, 0, sizeof(*d));
}
