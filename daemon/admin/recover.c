/*
 * "refd recover": recovery without a daemon, for example before other programs
 * read the repositories after a power loss, because refs may be stale or empty
 * until then.
 *
 * Exit: 0 all refs agree with the journal; 1 redo is deferred, or a ref was
 * left or dropped; 74 there is no journal, or the journal failed, and keeps all
 * records; 75 a daemon runs on this state directory. --forget, --discard: the
 * worse of the status of the recovery and of their own. --join: 74 also if the
 * journal has updates. --leave: 0 the node has left the others; 1 no consent.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/admin/admin.h"
#include "daemon/store/recovery/tally.h"
#include "proto/left_log.h"
#include "proto/lib/consent.h"
#include "proto/lib/json.h"
#include "proto/lib/print.h"
#include "proto/lib/progress.h"
#include "proto/refname.h"

struct recover_options {
	const char *state;
	struct command_list roots;
	bool json, discard, adopt, leave, yes;
	const char *forget; /* a repository; or NULL */
	const char *join;   /* an LSN; or NULL */
	uint64_t join_lsn;
};

static const struct command_option options[] = {
	{ OPTION_STRING("state", 0, "DIR",
	    "the state directory of the daemon, with the journal",
	    struct recover_options, state) },
	{ OPTION_LIST("root", 0, "DIR", "recover only repositories below DIR",
	    struct recover_options, roots) },
	{ OPTION_FLAG("json", 0, "print JSON, for programs",
	    struct recover_options, json) },
	{ OPTION_FLAG("adopt", 0, "accept a journal of another machine",
	      struct recover_options, adopt),
	    .excludes = 'x' },
	{ OPTION_FLAG("discard", 0,
	      "move the journal aside; its updates are not replayed",
	      struct recover_options, discard),
	    .excludes = 'x' },
	{ OPTION_STRING("forget", 0, "REPO",
	      "drop the deferred updates of REPO, a lost repository",
	      struct recover_options, forget),
	    .excludes = 'x' },
	{ OPTION_STRING("join", 0, "LSN",
	      "make the journal for a copy of a node of a group, which has the "
	      "rows up to LSN",
	      struct recover_options, join),
	    .excludes = 'x' },
	{ OPTION_FLAG("leave", 0,
	      "leave the group: this node becomes a single machine",
	      struct recover_options, leave),
	    .excludes = 'x' },
	{ OPTION_FLAG("yes", 0, "with --forget or --leave: ask no question",
	    struct recover_options, yes) },
	{ 0 },
};

static const struct command command = {
	.name = "recover",
	.purpose = "Replays the journal as the daemon does when it starts, and "
		   "reports the findings. The daemon must not run.",
	.example = "refd recover --root /srv/git",
	.outcome = "Replays the updates of repositories below /srv/git.",
	.manual = "refd-recover(8)",
	.options = options,
};

/* ---- the report ---- */

/* The report of refd recover on standard output, as text or JSON, by one
 * thread. */

/* ---- for people ---- */

static void print_finding(const struct tally_finding *f)
{
	bool is_kept = f->evidence != NULL;

	print_line(stdout, "  %-18s %s%s%s%s%s", store_finding_name(f->finding),
	    f->ref, f->ref[0] != '\0' ? ": " : "", f->text,
	    is_kept ? "; it is kept as " : "", is_kept ? f->evidence : "");
}

/* ERR: the errno that ended it, or 0. */
static void report_text(const struct finding_tally *tally, uint64_t deferred)
{
	char words[TALLY_WORDS_MAX];
	uint64_t repaired = tally_repaired(tally->counts);
	const struct tally_repo *repo;
	size_t i;

	for (repo = tally->repos; repo != NULL; repo = repo->hh.next) {
		tally_words(repo->counts, words);
		print_line(stdout, "%s: %s", repo->path, words);
		for (i = 0; i < repo->nr; i++)
			print_finding(&repo->items[i]);
		if (repo->more > 0)
			print_line(stdout, "  and %" PRIu64 " more",
			    repo->more);
	}
	print_line(stdout,
	    "%" PRIu64 " ref%s repaired, %" PRIu64 " left as another wrote "
	    "them, %" PRIu64 " dropped, %" PRIu64 " deferred",
	    repaired, repaired == 1 ? "" : "s", tally_left(tally->counts),
	    tally_dropped(tally->counts), deferred);
}

/* ---- as JSON ---- */

static void put_counts(struct json *j, const uint64_t *counts)
{
	int i;

	json_begin(j, "totals", '{');
	for (i = 0; i < STORE_FINDINGS; i++)
		json_count(j, store_finding_name((enum store_finding)i),
		    counts[i]);
	json_end(j, '}');
}

static void put_finding(struct json *j, const struct tally_repo *repo,
    const struct tally_finding *f)
{
	char path[2 * REFD_PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", repo->path,
	    f->evidence != NULL ? f->evidence : "");
	json_begin(j, NULL, '{');
	json_text(j, "finding", store_finding_name(f->finding));
	json_text(j, "ref", f->ref);
	json_text(j, "text", f->text);
	json_text(j, "evidence", f->evidence != NULL ? path : NULL);
	json_end(j, '}');
}

static void put_repo(struct json *j, const struct tally_repo *repo)
{
	size_t i;

	json_begin(j, NULL, '{');
	json_text(j, "repo", repo->path);
	put_counts(j, repo->counts);
	json_begin(j, "findings", '[');
	for (i = 0; i < repo->nr; i++)
		put_finding(j, repo, &repo->items[i]);
	json_end(j, ']');
	json_count(j, "more", repo->more);
	json_end(j, '}');
}

static void report_json(const struct finding_tally *tally, uint64_t deferred,
    int err)
{
	struct json json = { .to = stdout }, *j = &json;
	const struct tally_repo *repo;

	json_begin(j, NULL, '{');
	json_flag(j, "ok", err == 0);
	json_text(j, "error", err != 0 ? strerror(err) : NULL);
	json_count(j, "repaired", tally_repaired(tally->counts));
	json_count(j, "left", tally_left(tally->counts));
	json_count(j, "dropped", tally_dropped(tally->counts));
	json_count(j, "deferred", deferred);
	put_counts(j, tally->counts);
	json_begin(j, "repositories", '[');
	for (repo = tally->repos; repo != NULL; repo = repo->hh.next)
		put_repo(j, repo);
	json_end(j, ']');
	json_finish(j, '}');
}

/* ---- the report ---- */

static void found(void *arg, const struct store_found *found)
{
	tally_add(arg, found);
}

static void progress(void *arg, uint64_t done, uint64_t total)
{
	(void)arg;
	progress_show("Replaying records", done, total, "", "");
}

static int worse(int status, int other)
{
	return status > other ? status : other;
}

static int status_of(const struct finding_tally *tally, uint64_t deferred)
{
	return deferred + tally_left(tally->counts) +
		    tally_dropped(tally->counts) >
		0 ?
	    1 :
	    0;
}

static int sum_up(struct store *store, const struct finding_tally *tally,
    uint64_t deferred, bool json, int r)
{
	char *why;

	progress_clear();
	if (json)
		report_json(tally, deferred, -r);
	else
		report_text(tally, deferred);
	if (r == 0)
		return status_of(tally, deferred);
	why = store_recover_why(store);
	admin_say("recovery failed: %s; nothing was forgotten, "
		  "run it again once the cause is gone",
	    why != NULL ? why : strerror(-r));
	free(why);
	return 74;
}

/* ---- discarding ---- */

/* Renames STATE/NAME aside, and returns 0 or a negative errno. J is NULL, or in
 * an array. */
static int move_aside(const char *state, const char *name, long long now,
    struct json *j)
{
	char *from = NULL, *to = NULL;
	int r = -ENOMEM;

	if (asprintf(&from, "%s/%s", state, name) >= 0 &&
	    asprintf(&to, "%s.discarded-%lld", from, now) >= 0)
		r = SYS(&sys_kernel, renameat, SYS_TRUSTED, from, SYS_TRUSTED,
		    to);
	if (r == 0 && j != NULL)
		json_text(j, NULL, to);
	else if (r == 0)
		print_line(stdout, "moved aside: %s", to);
	free(from);
	free(to);
	return r;
}

/* Either file may be missing alone, because such a loss can be the reason to
 * discard the journal. */
static int move_journal_aside(const char *state, struct json *j)
{
	long long now = (long long)time(NULL);
	int r = move_aside(state, "journal.db", now, j);
	int wal = move_aside(state, "journal.db-wal", now, j);
	/* A size of the discarded WAL would make the next one look cut. */
	int room = move_aside(state, "journal.db-room", now, j);

	if (wal == 0 || wal == -ENOENT)
		wal = room < 0 && room != -ENOENT ? room : wal;
	if (r == -ENOENT && wal == 0)
		r = 0;
	if (r == 0 && wal < 0 && wal != -ENOENT)
		r = wal;
	return r;
}

static int open_state(const char *state)
{
	return SYS(&sys_kernel, openat, SYS_TRUSTED, state,
	    O_RDONLY | O_DIRECTORY, 0);
}

/* Otherwise a power loss could bring back some of the files. */
static int sync_state(const char *state)
{
	int fd = open_state(state), r = fd;

	if (fd >= 0) {
		r = SYS(&sys_kernel, fsync, fd);
		SYS(&sys_kernel, close, fd);
	}
	return r;
}

/* The caller has the lock of the state directory. */
static int discard(const struct recover_options *opt)
{
	struct json json = { .to = stdout }, *j = opt->json ? &json : NULL;
	int r;

	if (j != NULL) {
		json_begin(j, NULL, '{');
		json_begin(j, "moved_aside", '[');
	}
	r = move_journal_aside(opt->state, j);
	if (r == 0)
		r = sync_state(opt->state);
	if (j != NULL) {
		json_end(j, ']');
		json_finish(j, '}');
	}
	if (r < 0) {
		admin_say("can't move the journal in '%s' aside: %s",
		    opt->state, strerror(-r));
		return 1;
	}
	if (j == NULL)
		print_line(stdout,
		    "What it held and the disks did not is lost to a "
		    "recovery. Repositories that belong to it are served again "
		    "once 'refd disown' was run for each.");
	return 0;
}

/* The journal cannot be opened, so no store has the lock. */
static int discard_unread(const struct recover_options *opt)
{
	int dir = open_state(opt->state),
	    fd = dir < 0 ? dir :
			   SYS(&sys_kernel, openat, dir, "lock",
			       O_RDWR | O_CREAT | O_NOFOLLOW, 0600),
	    r = fd < 0 ? fd : SYS(&sys_kernel, flock_try, fd);

	if (dir >= 0)
		SYS(&sys_kernel, close, dir);
	if (r < 0)
		admin_say("can't lock the state directory '%s': %s", opt->state,
		    strerror(-r));
	else
		r = discard(opt);
	if (fd >= 0)
		SYS(&sys_kernel, close, fd);
	return r == -EAGAIN ? 75 : r < 0 ? 74 : r;
}

static void no_wake(void *arg)
{
	(void)arg;
}

/* YES: what --yes does without a question. */
static bool may(const struct recover_options *opt, const char *question,
    const char *yes)
{
	enum consent consent;

	if (opt->yes)
		return true;
	consent = consent_ask(question);
	if (consent == CONSENT_NOBODY)
		admin_say("nothing was changed: --yes %s without a question",
		    yes);
	else if (consent == CONSENT_NO)
		admin_say("nothing was changed");
	return consent == CONSENT_YES;
}

static bool may_forget(const struct recover_options *opt, uint64_t nr)
{
	char *question = NULL;
	bool may_it;

	if (nr == 0)
		return true;
	if (asprintf(&question,
		"The journal has %llu deferred record%s of '%s'. If the "
		"repository comes back, the updates are missing there. Drop "
		"%s?",
		(unsigned long long)nr, nr == 1 ? "" : "s", opt->forget,
		nr == 1 ? "it" : "them") < 0)
		return false;
	may_it = may(opt, question, "drops the records");
	free(question);
	return may_it;
}

static const char *why_kept(int err)
{
	if (err == -ENOENT)
		return "the journal knows no repository by that path or id";
	if (err == -EBUSY)
		return "it is there, and a node gives up no update of its "
		       "group: remove the cause that the report names";
	return strerror(-err);
}

static int forget_status(int err)
{
	switch (err) {
	case 0:
		return 0;
	case -ENOENT:
	case -ENOTUNIQ:
	case -ECANCELED:
	case -EBUSY:
		return 1;
	}
	return 74;
}

/* *DEFERRED: those that are left. */
static int forget(struct store *store, const struct recover_options *opt,
    uint64_t *deferred)
{
	const char *repo = opt->forget;
	char *uuids = NULL;
	uint64_t id, nr = 0;
	int r = store_find_known(store, repo, &id, &uuids);

	if (r == 0)
		r = store_count_deferred(store, id, &nr);
	if (r == 0 && !may_forget(opt, nr))
		r = -ECANCELED;
	else if (r == 0 && (r = store_forget(store, id, &nr)) == 0)
		admin_say("dropped %llu record%s of '%s'",
		    (unsigned long long)nr, nr == 1 ? "" : "s", repo);
	if (r == 0)
		r = store_count_deferred(store, 0, deferred);
	if (r == -ENOTUNIQ)
		admin_say("can't drop the records of '%s': several "
			  "repositories had that path; name one by its id: %s",
		    repo, uuids);
	else if (r < 0 && r != -ECANCELED)
		admin_say("can't drop the records of '%s': %s", repo,
		    why_kept(r));
	free(uuids);
	return forget_status(r);
}

/* ---- joining other nodes ---- */

static bool parse_number(const char *text, uint64_t *number)
{
	char *end;

	errno = 0;
	*number = strtoull(text, &end, 10);
	return text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0 &&
	    *number <= INT64_MAX;
}

/*
 * The values of the copies, on standard input, from refd group join. Each
 * record ends with a NUL, because a path can have any other byte. git adds
 * newlines, which stand before the next record:
 *
 *	<LSN> <ms>			the last row that the copies can have,
 *					and the time of the database
 *	repository <uuid> <path>	of the next values
 *	<id> <ref> <target, or nothing>	zeros: there is no such ref
 *
 * Without any record the values are not known.
 */
struct copies {
	char *record, *path;
	size_t size;
	uint64_t lsn, joined_ms;
};

static int begin_repository(struct copies *v, const char *uuid,
    const char *path, struct journal_repo *repo)
{
	size_t i;

	repo->id = 0;
	for (i = 0; i < sizeof(repo->uuid); i++, uuid += 2)
		if (sscanf(uuid, "%2hhx", &repo->uuid[i]) != 1)
			return -EINVAL;
	free(v->path);
	repo->path = v->path = strdup(path);
	return v->path != NULL ? 0 : -ENOMEM;
}

/* 1: the record is a value, which is in *TO. 0: the record is of a different
 * kind, or the name of its ref is so long that refd never writes the ref.
 * Otherwise negative errno. */
static int take_record(struct copies *v, char *rest, struct journal_given *to)
{
	const char *first = strsep(&rest, " "), *second = strsep(&rest, " ");
	enum refd_object_format format = strlen(first) == REFD_SHA1_HEX ?
	    REFD_FORMAT_SHA1 :
	    REFD_FORMAT_SHA256;

	if (rest == NULL)
		return -EINVAL;
	if (strcmp(first, "repository") == 0)
		return begin_repository(v, second, rest, &to->repo);
	to->ref = second;
	to->value = (struct journal_value){ .lsn = v->lsn,
		.exists = *rest == '\0',
		.target = *rest != '\0' ? rest : NULL };
	if (v->path == NULL || strncmp(second, "refs/", 5) != 0 ||
	    !refd_refname_format_ok(second) ||
	    refd_oid_parse(first, format, &to->value.oid) < 0)
		return -EINVAL;
	to->value.exists &= !refd_oid_is_null(&to->value.oid);
	return !refd_refname_is_too_long(second);
}

static bool read_record(struct copies *v)
{
	return getdelim(&v->record, &v->size, '\0', stdin) > 1;
}

static int next_value(void *arg, struct journal_given *given)
{
	struct copies *v = arg;
	char *record = NULL;
	int r = 0;

	while (r == 0 && read_record(v)) {
		record = v->record + strspn(v->record, "\n");
		r = take_record(v, record, given);
	}
	if (r < 0)
		admin_say("standard input has no value of a ref: %s", record);
	return r == 0 && ferror(stdin) ? -EIO : r;
}

static bool take_first(struct copies *v)
{
	char *ms = v->record, *lsn = strsep(&ms, " ");

	return parse_number(lsn, &v->lsn) && ms != NULL &&
	    parse_number(ms, &v->joined_ms);
}

static int join(struct store *store, const struct recover_options *opt)
{
	struct copies v = { .record = NULL };
	int r = -EINVAL;

	/* A person who gives the position by hand has no values, so a terminal
	 * is not read. */
	if (isatty(STDIN_FILENO) || !read_record(&v) || take_first(&v))
		r = store_join(store, opt->join_lsn, v.joined_ms, next_value,
		    &v);
	free(v.record);
	free(v.path);
	if (r < 0)
		admin_say("can't join the group: %s",
		    r == -EEXIST ? "the journal has updates: move it aside by "
				   "'refd recover --discard' first" :
				   strerror(-r));
	return r < 0 ? 74 : 0;
}

/* ---- leaving the other nodes ---- */

static bool may_leave(const struct recover_options *opt, uint64_t lsn)
{
	char question[256];

	snprintf(question, sizeof(question),
	    "This node has the rows of its group up to LSN %llu. Later updates "
	    "are on other nodes only, and the node cannot come back without a "
	    "copy of another node. Leave the group?",
	    (unsigned long long)lsn);
	return may(opt, question, "leaves the group");
}

/* Asks for consent only if the journal shares rows. After an interrupted call
 * the journal shares none any more, so the repetition asks no question. */
static int leave(struct store *store, const struct recover_options *opt)
{
	uint8_t uuid[GROUP_UUID_BYTES];
	char origin[LEFT_LOG_TEXT_MAX];
	uint64_t lsn;
	int r;

	if (store_shares_rows(store, &lsn) && !may_leave(opt, lsn))
		return 1;
	r = store_leave(store, uuid);
	if (r < 0) {
		admin_say("can't leave the group: %s",
		    r == -EBUSY ?
			"rows of the group wait here, and would be lost: "
			"remove the cause that the report, or "
			"'group-row-waits' in the log of the daemon, names, "
			"start the daemon, and repeat" :
			strerror(-r));
		return 74;
	}
	admin_say("this node has left its group: remove the section [group] "
		  "from the configuration. Or begin a new group with this "
		  "node: refd group create %s",
	    left_log_print(uuid, origin));
	return 0;
}

/* Is there no journal? store_open() would then make a new journal, although the
 * path may be mistyped, or the journal may be lost. A clean stop leaves an
 * empty WAL beside journal.db, so an empty WAL alone is no journal. A journal
 * that cannot be read is left to store_open(). */
static bool is_journal_missing(const char *state)
{
	const struct sys *sys = &sys_kernel;
	struct sys_stat st;
	bool is_missing;
	int fd, r;

	fd = SYS(sys, openat, SYS_TRUSTED, state, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0)
		return fd == -ENOENT || fd == -ENOTDIR;
	is_missing = SYS(sys, lstatat, fd, "journal.db", &st) == -ENOENT;
	r = SYS(sys, lstatat, fd, "journal.db-wal", &st);
	SYS(sys, close, fd);
	return is_missing && (r == -ENOENT || (r == 0 && st.size == 0));
}

/* As the owner of the state. */
static int recover(void *arg)
{
	const struct recover_options *opt = arg;
	static const char *everywhere = "/";
	struct finding_tally tally = { .nr = 0 };
	struct store_report report = { found, progress, &tally };
	struct store_config cfg = { .sys = &sys_kernel,
		.durability = REFD_DURABILITY_JOURNAL,
		.max_open_repos = 16,
		.is_offline = true,
		.wake = no_wake };
	struct store *store;
	uint64_t deferred = 0;
	char *why;
	int r, err, lock;

	cfg.state_dir = opt->state;
	/* Only repositories that the journal names are opened, so the root may
	 * be "/". */
	cfg.roots = opt->roots.nr > 0 ? opt->roots.items : &everywhere;
	cfg.nr_roots = opt->roots.nr > 0 ? opt->roots.nr : 1;
	cfg.adopt = opt->adopt;
	umask(0);
	r = store_open(&cfg, &store, &why);
	if (r < 0 && opt->discard && r != -EAGAIN) {
		free(why);
		return discard_unread(opt);
	}
	if (r < 0) {
		admin_say("%s", why != NULL ? why : strerror(-r));
		free(why);
		return r == -EAGAIN ? 75 : 74;
	}
	if (why != NULL)
		admin_say("warning: %s", why);
	free(why);
	r = store_recover(store, &report, &deferred);
	err = r;
	r = sum_up(store, &tally, deferred, opt->json, r);
	if (err == 0 && opt->forget != NULL) {
		r = forget(store, opt, &deferred);
		r = worse(r, status_of(&tally, deferred));
	}
	tally_done(&tally);
	if (err == 0 && opt->join != NULL)
		r = join(store, opt);
	if (err == 0 && opt->leave)
		r = leave(store, opt);
	store_stop(store);
	lock = store_free_keep_lock(store);
	if (opt->discard)
		r = worse(r, discard(opt));
	SYS(&sys_kernel, close, lock);
	return r;
}

static int run(struct recover_options *opt)
{
	if (opt->yes && !opt->leave && opt->forget == NULL) {
		admin_say("--yes is for --forget and --leave");
		return 129;
	}
	if (opt->join != NULL && !parse_number(opt->join, &opt->join_lsn)) {
		admin_say("--join has '%s': it needs the LSN in 'refd status "
			  "-v' of the copied node",
		    opt->join);
		return 129;
	}
	if (opt->join == NULL && is_journal_missing(opt->state)) {
		admin_say("there is no journal in '%s': name the daemon's "
			  "state directory by --state",
		    opt->state);
		return 74;
	}
	return admin_as_owner(&opt->state, 74,
	    (struct work){ .run = recover, .arg = opt });
}

int admin_recover(int argc, char **argv)
{
	struct recover_options opt = { .state = admin_state() };
	int r;

	admin_parse(&command, &opt, &argc, &argv);
	r = run(&opt);
	command_list_done(&opt.roots);
	return r;
}
