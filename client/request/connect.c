#include "client/request/connect.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "client/librefd/answer.h"
#include "client/librefd/refd_internal.h"
#include "client/request/daemons.h"
#include "client/request/rows.h"
#include "proto/lib/clock.h"

#define ACCOUNT_SOCKETS CONNECT_ACCOUNT_BEGIN "*/refd.sock"
#define BOOT_ID         "/proc/sys/kernel/random/boot_id"
/* Room for 400,000 repositories that await recovery. */
#define MARKER_MAX (16UL << 20)
/* A daemon that accepts a connection and sends no hello is away. */
#define HELLO_MS 10000
#define NAP_MS   50
/* An attempt costs other nodes a fetch, so the pauses become longer. */
#define NAP_MOST_MS 800
#define LAST_MS     200 /* of the last attempt, at least */
#define LEAST_MS    (NAP_MS + LAST_MS)
/* For what a daemon that serves still has to redo. Short, because git may hold
 * locks meanwhile. */
#define REST_MS 5000
/* Between two questions whether the node follows. */
#define ASK_MS 2000

static bool is_own(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && (!st.st_uid || st.st_uid == geteuid());
}

/* The path of a user's own daemon, or NULL. su(1) leaves XDG_RUNTIME_DIR of the
 * calling user in the environment, so root could meet the daemon of this user,
 * which could say anything. So directory and socket must belong to the account
 * of this process, or to root. */
static char *own_socket(void)
{
	const char *run = getenv("XDG_RUNTIME_DIR");
	char *path = NULL;

	if (run && *run && is_own(run))
		path = xasprintf("%s/refd.sock", run);
	if (path && is_own(path))
		return path;
	free(path);
	return NULL;
}

void connect_guard(struct daemon_socket *s, const struct gitconfig *config,
    const struct gitdir *gd)
{
	s->is_guarded = strcmp(s->path, REFD_SYSTEM_SOCKET) != 0 &&
	    !gitconfig_has_outside(config, "refd.socket", s->path);
	s->owner = gd->owner;
}

void connect_choose(struct daemon_socket *s, const char *option,
    const struct gitconfig *config, const struct gitdir *gd)
{
	const char *env = getenv("REFD_SOCKET");
	const char *set = config ? gitconfig_get(config, "refd.socket") : NULL;

	memset(s, 0, sizeof(*s));
	if (!option && env && *env)
		option = env;
	if (option) {
		s->path = xstrdup(option);
	} else if (set && *set) {
		s->path = xstrdup(set);
		if (gd)
			connect_guard(s, config, gd);
	} else {
		s->path = own_socket();
	}
	if (!s->path)
		s->path = xstrdup(REFD_SYSTEM_SOCKET);
}

struct refd *connect_new(const struct daemon_socket *s)
{
	struct refd *r = refd_new(s->path);

	if (!r)
		die("out of memory");
	if (s->is_guarded)
		refd_accept_only(r, s->owner);
	return r;
}

size_t connect_running_sockets(const char *path, char ***sockets)
{
	glob_t found = { 0 };
	size_t nr = 1, i;

	if (strcmp(path, REFD_SYSTEM_SOCKET) || access(path, F_OK) == 0 ||
	    glob(ACCOUNT_SOCKETS, 0, NULL, &found) != 0) {
		*sockets = xcalloc(1, sizeof(**sockets));
		(*sockets)[0] = xstrdup(path);
	} else {
		nr = found.gl_pathc;
		*sockets = xcalloc(nr, sizeof(**sockets));
		for (i = 0; i < nr; i++)
			(*sockets)[i] = xstrdup(found.gl_pathv[i]);
	}
	globfree(&found);
	return nr;
}

void connect_choose_running(struct daemon_socket *s)
{
	char **sockets;
	size_t nr = connect_running_sockets(s->path, &sockets), i;
	struct text names = { 0 };

	for (i = 0; i < nr; i++)
		text_addf(&names, "\n\t--socket %s", sockets[i]);
	if (nr > 1)
		die("several daemons run here, which refd status --all "
		    "describes; choose one:%s",
		    names.data);
	text_done(&names);
	free(s->path);
	s->path = sockets[0];
	free(sockets);
}

enum fallback connect_fallback(const struct gitconfig *config,
    enum fallback unset)
{
	const char *value = gitconfig_get(config, "refd.fallback");

	if (!value)
		return unset;
	if (!strcmp(value, "git"))
		return FALLBACK_GIT;
	if (strcmp(value, "refuse"))
		die("refd.fallback is '%s': it can be git or refuse", value);
	return FALLBACK_REFUSE;
}

/* Appends the uuid of the repository, written by the daemon. False: the file
 * has a different form. */
static bool read_uuid(const char *path, struct text *uuid)
{
	static const char key[] = "uuid ";
	struct text id = { 0 };
	bool ok;

	ok = text_read_regular(&id, path, SMALL_FILE_BYTES) == 0 &&
	    !strncmp(id.data, key, 5) && strcspn(id.data + 5, "\n") == 32;
	if (ok)
		text_add(uuid, id.data + 5, 32);
	text_done(&id);
	return ok;
}

/* The first line of the marker names a boot. Each further line names a
 * repository with refs that still await recovery. */
static bool is_listed(const char *list, const char *id_path)
{
	struct text uuid = { 0 }, line = { 0 };
	bool listed = true;

	if (!*list)
		return false;
	if (read_uuid(id_path, &uuid)) {
		text_addf(&line, "\nawaits %s\n", uuid.data);
		listed = strstr(list - 1, line.data) != NULL;
	}
	text_done(&uuid);
	text_done(&line);
	return listed;
}

/* A tmpfs is lost together with the page cache, so a marker there was written
 * while this kernel ran. A marker elsewhere outlives the kernel and has to name
 * this boot. A container may show a boot id of its own; then the marker names
 * another boot, and git has to wait. */
static bool is_of_this_boot(int fd, const char *marker)
{
	struct statfs fs;
	struct text boot = { 0 };
	bool same;

	if (fstatfs(fd, &fs) == 0 && fs.f_type == TMPFS_MAGIC)
		return true;
	same = text_read_file(&boot, BOOT_ID, SMALL_FILE_BYTES) == 0 &&
	    boot.len && has_prefix(marker, boot.data);
	text_done(&boot);
	return same;
}

/* What the marker says of a repository. */
enum marked {
	MARKED_NOT,    /* there is no marker, or it may be of another boot */
	MARKED_AWAITS, /* the repository is listed */
	MARKED_REPLAYED
};

/* Another program's file at this path must not block the client or fill its
 * memory. Such a file proves nothing, so git waits. */
static enum marked read_marker(const char *socket, const struct gitdir *gd)
{
	char *id_path = xasprintf("%s/refd/id", gd->common);
	char *path = xasprintf("%s.replayed", socket);
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct text marker = { 0 };
	enum marked marked = MARKED_NOT;
	const char *end = NULL;

	if (fd >= 0 && text_read(&marker, fd, MARKER_MAX) == 0)
		end = strchr(marker.data, '\n');
	if (end && is_listed(end + 1, id_path))
		marked = MARKED_AWAITS;
	else if (end && is_of_this_boot(fd, marker.data))
		marked = MARKED_REPLAYED;
	if (fd >= 0)
		close(fd);
	text_done(&marker);
	free(path);
	free(id_path);
	return marked;
}

bool connect_is_in_group(const struct gitdir *gd)
{
	char *path = xasprintf("%s/refd/group", gd->common);
	bool is = access(path, F_OK) == 0;

	free(path);
	return is;
}

bool connect_is_untouched(const struct gitdir *gd)
{
	char *path = xasprintf("%s/refd", gd->common);
	bool is = access(path, F_OK) < 0 && errno == ENOENT;

	free(path);
	return is;
}

bool connect_may_bypass(const char *socket, const struct gitdir *gd)
{
	char *id = xasprintf("%s/refd/id", gd->common);
	bool may =
	    access(id, F_OK) < 0 && (errno == ENOENT || errno == ENOTDIR);

	may = may ||
	    (!connect_is_in_group(gd) &&
		read_marker(socket, gd) == MARKED_REPLAYED);
	free(id);
	return may;
}

uint32_t connect_ms_left(uint64_t deadline)
{
	uint64_t now = clock_now_ms();
	uint64_t left = deadline > now ? deadline - now : 1;

	return left > REFD_DEADLINE_MAX_MS ? REFD_DEADLINE_MAX_MS :
					     (uint32_t)left;
}

static int hello_timeout(uint64_t deadline)
{
	uint32_t left = connect_ms_left(deadline);

	return left > HELLO_MS ? HELLO_MS : (int)left;
}

enum connect_result connect_daemon(struct refd *r, const char *socket,
    enum fallback fallback, const struct gitdir *gd, uint64_t deadline,
    struct text *why)
{
	bool is_there = false;
	int err, ms;

	for (;;) {
		ms = hello_timeout(deadline);
		err = refd_connect(r, ms);
		if (err == 0 && refd_hello(r)->state == REFD_SERVING)
			return CONNECT_SERVED;
		/* The earlier answer is the reason to report, not the short
		 * rest of the time. */
		if (err == -ETIMEDOUT && is_there && ms < HELLO_MS)
			return CONNECT_FAILED;
		is_there = err == 0 || err == -EBUSY;
		text_clear(why);
		if (err == 0)
			text_addf(why, "the daemon at %s is %s", socket,
			    refd_server_state_name(refd_hello(r)->state));
		else
			text_adds(why, refd_error(r));
		if (fallback == FALLBACK_REFUSE)
			daemons_add_start(socket, err, why);
		if (err == -EPROTO)
			return CONNECT_FAILED;
		if ((err == -EPERM || (err == -EACCES && !r->is_guarded)) &&
		    fallback == FALLBACK_GIT && connect_is_untouched(gd))
			return CONNECT_USE_GIT;
		if (err == -EPERM || err == -EACCES)
			return CONNECT_DENIED;
		/* A busy daemon is not away. */
		if (err == -EBUSY)
			err = 0;
		if (err < 0 && fallback == FALLBACK_REFUSE) {
			text_adds(why,
			    " (refd.fallback=git would let git do "
			    "it)");
			return CONNECT_FAILED;
		}
		if (err < 0 && connect_may_bypass(socket, gd))
			return CONNECT_USE_GIT;
		if (err < 0)
			text_addf(why,
			    connect_is_in_group(gd) ?
				"; the repository is in a group of nodes, so "
				"git has to wait" :
				"; refs await recovery, so "
				"refd.fallback=git has to wait too");
		/* A daemon that cannot start waits for its administrator, so no
		 * later attempt helps. */
		if (err == -EHOSTDOWN)
			return CONNECT_FAILED;
		/* The reason of an attempt after the deadline would only be the
		 * lack of time. */
		clock_nap(NAP_MS, deadline);
		if (clock_now_ms() >= deadline)
			return CONNECT_FAILED;
	}
}

/* The daemon counts exactly what its marker lists. */
static bool none_await(struct refd *r, uint64_t deadline)
{
	struct refd_request req = { .verb = REFD_VERB_STATUS };
	struct refd_answer ans;
	bool none;

	if (refd_call(r, &req, (int)connect_ms_left(deadline), &ans) < 0)
		return false;
	none = !strcmp(rows_value(&ans, "awaiting_repos"), "0");
	refd_answer_done(&ans);
	return none;
}

/* A daemon that serves may have put off updates. Its marker lists their
 * repositories, but the marker may be missing, or not readable here, so the
 * daemon is asked then. */
static bool has_recovered(struct refd *r, const char *socket,
    const struct gitdir *gd, uint64_t deadline)
{
	enum marked marked = read_marker(socket, gd);

	return marked == MARKED_REPLAYED ||
	    (marked == MARKED_NOT && none_await(r, deadline));
}

/* The daemon tries again each second what was put off, so a short wait may be
 * enough. */
static enum connect_result await_rest(struct refd *r, const char *socket,
    const struct gitdir *gd, uint64_t deadline, struct text *why)
{
	uint64_t until = clock_deadline_ms(REST_MS);

	if (until > deadline)
		until = deadline;
	do {
		if (has_recovered(r, socket, gd, until))
			return CONNECT_USE_GIT;
		clock_nap(NAP_MS, until);
	} while (clock_now_ms() < until);
	text_clear(why);
	text_adds(why,
	    "the daemon may have updates that wait: 'refd status' says why");
	return CONNECT_FAILED;
}

static enum connect_result await_recovery(const struct daemon_socket *s,
    const struct gitdir *gd, uint64_t deadline, struct text *why)
{
	struct refd *r;
	enum connect_result result;

	if (connect_may_bypass(s->path, gd))
		return CONNECT_USE_GIT;
	r = connect_new(s);
	result = connect_daemon(r, s->path, FALLBACK_GIT, gd, deadline, why);
	if (result == CONNECT_SERVED)
		result = await_rest(r, s->path, gd, deadline, why);
	refd_free(r);
	return result;
}

enum connect_result connect_may_leave(const char *option,
    const struct gitconfig *config, const struct gitdir *gd, uint64_t deadline,
    const char *reason, struct text *why)
{
	struct daemon_socket socket;
	struct text away = { 0 };
	enum connect_result result;

	if (connect_is_in_group(gd)) {
		text_addf(why,
		    "only git can do this, and not in a group of nodes: %s",
		    reason);
		return CONNECT_FAILED;
	}
	connect_choose(&socket, option, config, gd);
	result = await_recovery(&socket, gd, deadline, &away);
	if (result == CONNECT_DENIED)
		text_addf(why, "only git can do this: %s; and refd denies: %s",
		    reason, away.data);
	else if (result != CONNECT_USE_GIT)
		text_addf(why,
		    "only git can do this, and not while refs may await "
		    "recovery: %s; %s",
		    reason, away.data);
	text_done(&away);
	free(socket.path);
	return result;
}

/* Did the daemon do nothing because it is busy? The request may then be sent
 * again under its id. */
static bool is_put_off(const struct refd_answer *ans)
{
	bool is_busy = false;
	size_t i;

	if (ans->kind == REFD_ANSWER_REFUSED)
		return ans->status == REFD_BUSY;
	if (ans->kind != REFD_ANSWER_RESULTS || ans->outcome != REFD_REJECTED)
		return false;
	for (i = 0; i < ans->nr_results; i++) {
		if (ans->results[i].status == REFD_BUSY)
			is_busy = true;
		else if (ans->results[i].status != REFD_ABORTED)
			return false;
	}
	return is_busy;
}

static void answer_failure(struct refd *r, const struct refd_request *req,
    struct refd_answer *ans)
{
	int err = req->verb == REFD_VERB_SESSION ?
	    refd_answer_refusal(req, REFD_DEADLINE, refd_error(r), ans) :
	    refd_answer_unknown(req, ans);

	if (err < 0)
		die("out of memory");
}

char *connect_leader(struct refd *r, int timeout_ms)
{
	struct refd_request req = { .verb = REFD_VERB_STATUS };
	struct refd_answer ans;
	char *leader = NULL;

	if (refd_call(r, &req, timeout_ms, &ans) < 0)
		return NULL;
	if (!strcmp(rows_value(&ans, "role"), "follower"))
		leader = xstrdup(rows_value(&ans, "group_leader"));
	refd_answer_done(&ans);
	return leader;
}

static bool follows(struct refd *r, int timeout_ms)
{
	char *leader = connect_leader(r, timeout_ms);
	bool is_there = leader != NULL;

	free(leader);
	return is_there;
}

/* Waits before another attempt, longer each time. False: there is no time for
 * an attempt. It would fail, and hide the reason of the last answer. */
static bool nap(uint32_t *nap_ms, uint64_t deadline)
{
	const uint32_t left_ms = connect_ms_left(deadline);

	if (left_ms < LEAST_MS)
		return false;
	if (*nap_ms > left_ms - LAST_MS)
		*nap_ms = left_ms - LAST_MS;
	clock_nap(*nap_ms, deadline);
	if (*nap_ms < NAP_MOST_MS)
		*nap_ms *= 2;
	return true;
}

void connect_call(struct refd *r, struct refd_request *req, uint64_t deadline,
    int grace_ms, struct refd_answer *ans)
{
	uint32_t nap_ms = NAP_MS;
	uint64_t ask_ms = 0;
	int err;

	for (;;) {
		req->deadline_ms = connect_ms_left(deadline);
		err = refd_call(r, req, (int)req->deadline_ms + grace_ms, ans);
		if (err < 0)
			answer_failure(r, req, ans);
		if (err < 0 || !is_put_off(ans) ||
		    connect_ms_left(deadline) < LEAST_MS)
			return;
		/* A busy daemon shall not get much more to do, so the question
		 * is seldom. A leader that has lost its lease follows as soon
		 * as another node leads. */
		if (clock_now_ms() >= ask_ms) {
			if (follows(r, (int)connect_ms_left(deadline)))
				return;
			ask_ms = clock_now_ms() + ASK_MS;
		}
		if (!nap(&nap_ms, deadline))
			return;
		refd_answer_done(ans);
	}
}

void connect_end_session(struct refd *r, const struct refd_request *session,
    enum refd_verb verb, uint64_t deadline, int grace_ms,
    struct refd_answer *ans)
{
	struct refd_request end = *session;
	uint32_t nap_ms = NAP_MS;
	int err;

	end.verb = verb;
	if (verb == REFD_VERB_ABORT)
		end.nr_updates = 0;
	for (;;) {
		err = refd_call(r, &end,
		    (int)connect_ms_left(deadline) + grace_ms, ans);
		if (err < 0 && refd_answer_unknown(&end, ans) < 0)
			die("out of memory");
		if (ans->kind != REFD_ANSWER_REFUSED ||
		    ans->status != REFD_BUSY || !nap(&nap_ms, deadline))
			return;
		refd_answer_done(ans);
	}
}
