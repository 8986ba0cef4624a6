/*
 * refd group join: makes this machine a node of the group, while the other
 * nodes go on. Neither the daemon nor refd-group runs here meanwhile. The happy
 * path:
 *
 *	check	configuration, role, standbys, clock, versions, the leader
 *	list	the leader names its repositories (lister.h)
 *	pin	this node is in the group as a node that has applied the row L,
 *		which the refs of the leader have. From now on the group keeps
 *		the rows behind L
 *	list	again, and after the copies, until all are copied
 *	copy	git fetches objects and refs of each repository from the leader
 *		into a repository aside, which is then complete, with hooks, and
 *		gets into its place. What was there is moved aside
 *	forget	no old copy, and no part of a new one, has the id of a
 *		repository that was not copied
 *	mark	the group knows which repositories this node lacks
 *	journal	begins behind L, and has the values that git has copied. So a
 *		copy that is damaged later does not count as the truth
 *
 * The copies are of different moments behind L. The node then applies all rows
 * behind L, also those that a copy has, and of each ref the last row wins. So
 * the refs are right as soon as the node has the whole log, and before that it
 * neither leads nor serves as /follower. A copied value may be of any row up to
 * the end of the log after the last copy, and the journal keeps this LSN with
 * the value: then a row that finds it knows that it is not a foreign one.
 *
 * Reflogs, configuration, hooks, descriptions, a detached HEAD, and a HEAD that
 * leads nowhere are not copied.
 *
 * A repository that cannot be copied is left out, because otherwise its owner
 * could keep a node from being replaced. The journal has no value of the
 * repository, and no directory has the id, so the first row that continues the
 * repository waits (group_repo.c), and the node neither leads nor serves as
 * /follower then (decision 029). The node cannot lead before such a row either,
 * because of a mark in refd.node (damage.h), until refd group verify finds the
 * repository there. The mark comes before the journal, because a node does not
 * run without a journal. The mark of a former join stays until then, because
 * this join can fail while the former journal is still there.
 *
 * In a group that a node has made after refd recover --leave, the leader can
 * lack values of its refs, and then a row does not say that the repository had
 * refs before. So nothing may be left out there, except what the leader does
 * not name any more.
 *
 * Failures: nobody else is touched, and the command is repeated. It copies all
 * again, with a new L, because an old copy can have a configuration, symbolic
 * refs or damage that git would follow. A node that gives up must leave,
 * because rows are kept for it.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "client/base/child.h"
#include "client/base/scan.h"
#include "client/program.h"
#include "daemon/group/service/console_session.h"
#include "daemon/group/service/damage.h"
#include "daemon/group/service/fetch_git.h"
#include "daemon/group/service/fetch_repo.h"
#include "daemon/group/service/join_ask.h"
#include "daemon/group/service/join_copy.h"
#include "daemon/group/service/lease.h"
#include "daemon/group/service/schema.h"
#include "daemon/group/service/verbs.h"
#include "proto/left_log.h"

#define CLOCK_MOST_S 5
/* A repository can be renamed meanwhile, and an owner can do so in each
 * round. */
#define ROUNDS 4

struct joining {
	const struct group_config *config;
	struct session s;
	struct lease lease; /* the leader is the source */
	const char *source;
	char *state; /* the directory */
	struct fetch_site site;
	struct join_list list;
	uint64_t lsn;
	bool is_clean;      /* prepare() */
	bool copies;        /* the first copy has begun */
	bool must_be_whole; /* nothing that the leader names is left out */
};

/* ---- checks ---- */

static void check_config(struct joining *j)
{
	if (j->config->nr_roots != 1)
		die("daemon.root is missing in the configuration: it is the "
		    "directory of the repositories");
	j->source = group_config_source(j->config, j->lease.owner);
	if (!strcmp(j->lease.owner, j->config->node))
		die("'%s' leads the group, so it is a node already: give this "
		    "machine a group.node of its own",
		    j->config->node);
	if (j->lease.is_over)
		cli_die(EXIT_AWAY,
		    "no node leads the group: refd group status shows its "
		    "nodes");
	if (!j->source)
		die("group.source in the configuration does not name the "
		    "leader '%s'",
		    j->lease.owner);
}

/* The lease and the certificates need the right time, so a wrong clock is found
 * here. */
static void check_clock(struct session *s)
{
	PGresult *r = session_run(s,
	    "SELECT floor(extract(epoch FROM clock_timestamp()))", NULL);
	long long ahead;

	if (!r)
		console_session_die(s, SESSION_AWAY);
	ahead = (long long)time(NULL) - (long long)session_number(r, 0, 0);
	PQclear(r);
	if (llabs(ahead) > CLOCK_MOST_S)
		die("the clock of this machine is %lld seconds %s that of "
		    "PostgreSQL: correct the wrong one, for example by chrony",
		    llabs(ahead), ahead > 0 ? "ahead of" : "behind");
}

static bool is_from_left_node(struct session *s)
{
	uint8_t group[GROUP_UUID_BYTES];
	enum session_result result = schema_check(s, group);
	uint64_t lsn;

	if (result != SESSION_OK)
		console_session_die(s, result);
	return left_log_lsn(group, &lsn);
}

/* Two joins of one node would take each other's copies for their own. The lock
 * ends with the session, without which this join ends, too. */
static void lock_node(struct joining *j)
{
	struct params p = { 0 };
	PGresult *r;

	params_text(&p, j->config->name);
	params_text(&p, j->config->node);
	r = session_run(&j->s,
	    "SELECT pg_try_advisory_lock(hashtext($1), hashtext($2))", &p);
	if (!r)
		console_session_die(&j->s, SESSION_AWAY);
	if (*PQgetvalue(r, 0, 0) != 't')
		die("another refd group join makes the node '%s' now: wait "
		    "until it has ended, or choose another group.node",
		    j->config->node);
	PQclear(r);
}

static void check(struct joining *j)
{
	struct console_node node;

	console_session_open(&j->s);
	lock_node(j);
	j->must_be_whole = is_from_left_node(&j->s);
	if (!lease_look(&j->s, &j->lease))
		console_session_die(&j->s, SESSION_AWAY);
	check_config(j);
	console_check_server(&j->s);
	check_clock(&j->s);
	if (console_session_find_node(&j->s, j->config->node, &node) &&
	    node.is_seen)
		die("the node '%s' wrote to the database %" PRIu64
		    " seconds ago: if it is this machine, stop refd.socket, "
		    "refd.service and refd-group.service, and try again after "
		    "15 seconds; otherwise choose another group.node",
		    j->config->node, node.seen_s);
}

/* A repository that the group does not have would come to the group when this
 * node leads, so it must go first. */
static void look(const char *dir, void *data)
{
	const char *path, *name = strrchr(dir, '/');
	const struct join_repo *repo = NULL;
	char hex[FETCH_ID_HEX + 1];
	struct joining *j = data;

	path = dir + strlen(j->config->roots[0]);
	path += strspn(path, "/");
	if (has_prefix(name ? name : dir, "/.refd-"))
		return;
	if (fetch_id_read(dir, hex) != OWN_FILE_FOREIGN)
		repo = join_list_find(&j->list, hex);
	if (repo && !strcmp(repo->path, path))
		return;
	j->is_clean = false;
	if (repo)
		say_error("%s: the leader has this repository as '%s': move "
			  "it there, or away",
		    dir, repo->path);
	else
		say_error("%s: the leader does not have this repository: move "
			  "it away",
		    dir);
}

static struct fetch_wish wish_of(const struct joining *j,
    const struct join_repo *repo, uint8_t uuid[GROUP_UUID_BYTES])
{
	size_t i;

	for (i = 0; i < GROUP_UUID_BYTES; i++)
		sscanf(repo->hex + 2 * i, "%2hhx", &uuid[i]);
	return (struct fetch_wish){ .source = j->source,
		.source_path = repo->path,
		.path = repo->path,
		.uuid = uuid,
		.copies = true,
		.format = repo->format,
		.cancel = -1 };
}

/* Moves an old copy of REPO, or a part of a new one, away. Otherwise a row
 * would take it for a copy with all earlier refs. */
static void forget(void *arg, const struct join_repo *repo)
{
	uint8_t uuid[GROUP_UUID_BYTES];
	const struct joining *j = arg;
	const struct fetch_wish wish = wish_of(j, repo, uuid);

	if (!fetch_repo_leave(&j->site, &wish))
		die("'%s', or .refd-%s beside it, has no present copy, and "
		    "cannot be moved away: move it, and run refd group join "
		    "again",
		    repo->path, repo->hex);
}

/* Returns how many repositories can be copied, and are not. */
static size_t list(struct joining *j)
{
	struct join_list old = j->list;
	const struct join_repo *repo;
	size_t i, nr;

	j->list = (struct join_list){ .nr = 0 };
	join_ask(&j->list, &j->s, j->lease.owner);
	for (i = 1; i < j->list.nr; i++) {
		repo = &j->list.repos[i];
		if (!strcmp(repo->hex, repo[-1].hex))
			die("'%s' and '%s' have the same refd/id: run refd "
			    "enable on the leader for the one that is a copy",
			    repo[-1].path, repo->path);
	}
	nr = join_list_follow(&j->list, &old, j->copies, forget, j);
	join_list_done(&old);
	return nr;
}

static void say_fault(struct joining *j, const struct join_repo *repo)
{
	if (j->must_be_whole)
		say_error("'%s': %s", repo->path, repo->fault);
	else
		say_warning("'%s' is left out: %s", repo->path, repo->fault);
	j->is_clean = j->is_clean && !j->must_be_whole;
}

static void warn_of_unnamed(const struct joining *j)
{
	if (j->list.nr_unnamed > 0)
		say_warning("the leader has %zu directories that are too deep "
			    "for a search, and no copy of a repository there "
			    "is made: the log of refd-group there names the "
			    "first",
		    j->list.nr_unnamed);
}

/* Comes a second time behind the pin. False: messages were printed. */
static bool prepare(struct joining *j)
{
	size_t i, nr_missed = 0, nr = list(j);

	for (i = 0; i < j->list.nr; i++) {
		if (j->list.repos[i].fault && !j->state)
			say_fault(j, &j->list.repos[i]);
		nr_missed += join_list_is_missed(&j->list.repos[i]);
	}
	/* The reason is then a setting of the leader's machine, or the like. */
	if (nr == 0 && nr_missed > 0)
		say_error("no repository of the leader can be copied");
	if (j->must_be_whole && j->list.nr_unnamed > 0) {
		warn_of_unnamed(j);
		j->is_clean = false;
	}
	return (nr > 0 || nr_missed == 0) &&
	    scan_repositories(j->config->roots[0], look, j) && j->is_clean;
}

/* ---- the journal ---- */

/* False: a message was printed. */
static bool recover(const struct joining *j, const char *option,
    const char *value, int in)
{
	const char *argv[] = { j->site.guard.refd, "recover", "--state",
		j->state, option, value, NULL };
	struct launch l = { .argv = argv,
		.in = in,
		.err = STDERR_FILENO,
		.seconds = CHILD_SECONDS };

	return child_read(&l, &(struct child_output){ .cancel = -1 }) == 0;
}

/* Each file counts, because one left alone would be read as the end of the next
 * journal. */
static bool has_journal(const struct joining *j)
{
	static const char *const names[] = { "journal.db", "journal.db-wal",
		"journal.db-room" };
	bool has = false;
	char *path;
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		path = xasprintf("%s/%s", j->state, names[i]);
		has = access(path, F_OK) == 0 || errno != ENOENT || has;
		free(path);
	}
	return has;
}

/* Moves the former journal aside, because the journal of another group, or of
 * the machine before, has later values than the copies. The copies replace the
 * repositories, so no update of the former journal needs to be replayed before.
 * The move also proves that the daemon does not run. */
static void discard_journal(const struct joining *j)
{
	if (has_journal(j))
		recover(j, "--discard", NULL, LAUNCH_NULL);
	if (has_journal(j))
		die("the journal in '%s' is in use, or cannot be moved aside: "
		    "stop refd.socket, refd.service and refd-group.service",
		    j->state);
}

/* Makes the journal with the values of the copies. A value can be of any row
 * that came during the copies. Such a row is in the log by now, because a row
 * is in the log before the refs of the leader have the row. So the last LSN of
 * the log covers all values. */
static void make_journal(struct joining *j)
{
	char *lsn = xasprintf("%" PRIu64, j->lsn);
	struct text values = { 0 };
	struct console_node node;
	size_t i;
	int in;

	if (!console_session_find_node(&j->s, j->config->node, &node))
		cli_die(EXIT_FAILED,
		    "the node '%s' has left the group meanwhile: run refd "
		    "group join again",
		    j->config->node);
	text_addf(&values, "%" PRIu64 " %" PRIu64, node.last, node.now_ms);
	text_addc(&values, '\0');
	for (i = 0; i < j->list.nr; i++)
		text_add(&values, j->list.repos[i].values.data,
		    j->list.repos[i].values.len);
	in = fetch_git_file(&values);
	if (!recover(j, "--join", lsn, in))
		die("cannot make the journal in '%s'", j->state);
	close(in);
	text_done(&values);
	free(lsn);
}

/* ---- the pin ---- */

/* Pins the row L, which the leader has applied, so its refs have the row. L is
 * read from the row of the leader in refd.node, in the same statement:
 * otherwise old rows could be deleted before this node has a row of its own
 * there. */
static const char pin_sql[] =
    "INSERT INTO refd.node (grp, node, applied, seen)"
    " SELECT grp, $2, applied, " CONSOLE_JOINS " FROM refd.node"
    " WHERE grp = $1 AND node = $3"
    " ON CONFLICT (grp, node) DO UPDATE SET applied = excluded.applied,"
    " seen = excluded.seen, machine = NULL, refuses = NULL"
    " WHERE node.seen <= clock_timestamp() - " CONSOLE_SEEN
    " RETURNING applied";

static void pin(struct joining *j)
{
	struct params p = { 0 };
	PGresult *r;

	params_text(&p, j->config->name);
	params_text(&p, j->config->node);
	params_text(&p, j->lease.owner);
	r = session_run(&j->s, pin_sql, &p);
	if (!r)
		console_session_die(&j->s, SESSION_AWAY);
	if (PQntuples(r) != 1)
		die("the node '%s' has just written to the database, so it "
		    "runs already",
		    j->config->node);
	j->lsn = session_number(r, 0, 0);
	PQclear(r);
	if (!session_prove(&j->s))
		console_session_die(&j->s, SESSION_AWAY);
}

/* ---- the copies ---- */

#define NULL_ID "0000000000000000000000000000000000000000"

static void set_values(const struct joining *j, struct join_repo *repo,
    const struct text *refs)
{
	char root[PATH_MAX];

	if (!realpath(j->config->roots[0], root))
		die("'%s': %s", j->config->roots[0], strerror(errno));
	text_addf(&repo->values, "repository %s %s/%s", repo->hex, root,
	    repo->path);
	text_addc(&repo->values, '\0');
	text_add(&repo->values, refs->data, refs->len);
	/* Without a value the daemon would take the repository for one that
	 * the leader did not list (group_repo.c). */
	if (refs->len == 0) {
		text_adds(&repo->values, NULL_ID " refs/heads/main ");
		text_addc(&repo->values, '\0');
	}
}

static bool copy_one(struct joining *j, struct join_repo *repo)
{
	uint8_t uuid[GROUP_UUID_BYTES];
	const struct fetch_wish wish = wish_of(j, repo, uuid);
	struct text refs = { 0 }, why = { 0 };
	bool ok = join_copy(&j->site, &wish, &refs, &why);

	if (ok)
		set_values(j, repo, &refs);
	else
		say_error("%s", why.data);
	text_done(&refs);
	text_done(&why);
	return ok;
}

static void copy_all(struct joining *j)
{
	struct join_repo *repo = j->list.repos;
	size_t i;

	for (i = 0; i < j->list.nr; i++, repo++) {
		if (repo->is_copied || repo->fault)
			continue;
		print_line(stdout, "%zu of %zu: %s", i + 1, j->list.nr,
		    repo->path);
		cli_flush();
		repo->is_copied = copy_one(j, repo);
	}
}

/* Copies all repositories, and lists them again. A repository that is made,
 * imported or renamed before L is not in the first list, and its rows behind L
 * do not bring all its refs. Later lists serve failed copies, because the
 * leader may have renamed or removed a repository. False: messages were
 * printed. */
static bool copy(struct joining *j)
{
	int rounds = 0;

	if (!prepare(j))
		return false;
	j->copies = true;
	do
		copy_all(j);
	while (list(j) > 0 && ++rounds < ROUNDS);
	return true;
}

/* ---- without a copy ---- */

static void __attribute__((noreturn)) give_up(void)
{
	cli_die(EXIT_FAILED,
	    "not all repositories are copied: remove the reasons above, and "
	    "run refd group join again, or refd group leave, because the group "
	    "keeps its rows for this node");
}

/* A row searches the root for its repository, and must not find an old copy. So
 * two kinds of old copies are moved away: those of a repository that is not
 * copied now, and those aside whose repository the leader does not list now. */
static void look_for_old(const char *dir, void *data)
{
	const char *path, *name = strrchr(dir, '/');
	struct join_repo old = { .path = NULL };
	const struct join_repo *repo;
	struct joining *j = data;
	bool is_aside;

	is_aside = has_prefix(name ? name : dir, "/.refd-");
	if (has_prefix(name ? name : dir, "/" FETCH_REPO_WAY) ||
	    fetch_id_read(dir, old.hex) == OWN_FILE_FOREIGN)
		return;
	repo = join_list_find(&j->list, old.hex);
	if (repo ? repo->is_copied : !is_aside)
		return;
	path = dir + strlen(j->config->roots[0]);
	old.path = xstrdup(path + strspn(path, "/"));
	forget(j, &old);
	free(old.path);
}

/* Moves all old copies away, and syncs the moves before the journal is made. If
 * the journal were durable first, an old copy could be in its place again after
 * a power loss. */
static void forget_all(struct joining *j)
{
	const char *root = j->config->roots[0];
	size_t i;
	int fd;

	for (i = 0; i < j->list.nr; i++)
		if (!j->list.repos[i].is_copied)
			forget(j, &j->list.repos[i]);
	if (!scan_repositories(root, look_for_old, j))
		die("'%s' was not searched for old copies", root);
	fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || syncfs(fd) < 0)
		die("cannot sync the file system of '%s': %s", root,
		    strerror(errno));
	close(fd);
}

/* Adds the repositories that this node lacks to MISSED (damage.h). True: they
 * may not be left out, or the reason is a failure of this machine, or of the
 * leader. */
static bool list_missed(const struct joining *j, struct text *missed)
{
	bool has_copy = false, are_left = false;
	const struct join_repo *repo = j->list.repos;
	size_t i;

	for (i = 0; i < j->list.nr; i++, repo++) {
		has_copy |= repo->is_copied;
		if (!join_list_is_missed(repo))
			continue;
		are_left |= !repo->is_gone;
		say_error("'%s' is not copied: %s", repo->path,
		    repo->fault ? repo->fault :
				  "the messages above have the reason");
		damage_add_absent(missed, repo->hex, repo->path);
	}
	return are_left && (j->must_be_whole || !has_copy);
}

static void mark(struct joining *j, const struct text *missed)
{
	struct params p = { 0 };

	params_text(&p, j->config->name);
	params_text(&p, j->config->node);
	params_text(&p, missed->data);
	if (session_change(&j->s,
		"UPDATE refd.node SET damaged = $3::text || gen_random_uuid()"
		" WHERE grp = $1 AND node = $2",
		&p) < 0 ||
	    !session_prove(&j->s))
		console_session_die(&j->s, SESSION_AWAY);
}

/* True: this node lacks repositories, and messages were printed. */
static bool leave_out(struct joining *j)
{
	struct text missed = { 0 };
	bool are_missed;

	if (list_missed(j, &missed))
		give_up();
	are_missed = missed.len > 0;
	forget_all(j);
	mark(j, &missed);
	text_done(&missed);
	return are_missed;
}

/* ---- all ---- */

static void open_site(struct joining *j, const char *socket)
{
	const char *slash = strrchr(socket, '/');
	char *dir;

	j->state = slash ? xasprintf("%.*s", (int)(slash - socket), socket) :
			   xstrdup(".");
	dir = xasprintf("%s/group-git", j->state);
	if (mkdir(j->state, 0700) == 0)
		say("made the directory '%s'", j->state);
	fetch_dirs_make(dir);
	j->site = (struct fetch_site){ j->config->roots, j->config->nr_roots,
		dir, { program_refd(), j->config->socket } };
}

int join_run(const struct group_config *config, const struct verb_options *opt)
{
	struct joining j = { .config = config,
		.s.config = config,
		.is_clean = true };
	bool are_missed;
	int status;

	check(&j);
	if (!prepare(&j))
		return EXIT_FAILED;
	open_site(&j, opt->socket);
	discard_journal(&j);
	pin(&j);
	if (!copy(&j))
		give_up();
	are_missed = leave_out(&j);
	make_journal(&j);
	warn_of_unnamed(&j);
	print_line(stdout,
	    "'%s' is a node of the group '%s'%s: %sstart refd.socket, "
	    "refd.service and refd-group.service",
	    config->node, config->name,
	    are_missed ? ", without the repositories above" : "",
	    are_missed ? "copy each from the leader, with refd/, and " : "");
	status = are_missed || j.list.nr_unnamed > 0 ? EXIT_FAILED : EXIT_DONE;
	session_done(&j.s);
	join_list_done(&j.list);
	free((char *)j.site.dir);
	free(j.site.guard.refd);
	free(j.state);
	return status;
}
