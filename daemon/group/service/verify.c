/*
 * refd group verify: compares repositories of this node with those of the other
 * nodes, on the disks, while refd works. The happy path for a repository:
 *
 *	1. The objects of this node are whole (whole.h), or are repaired.
 *	2. For each other node: both nodes have applied the log up to its last
 *	   LSN. Then git lists the refs of both (listing.h).
 *	3. A ref differs if the listings do, and no row behind the LSN has its
 *	   name. Otherwise the row can explain the difference, and both nodes
 *	   are listed again.
 *
 * If both nodes have the same refs, and git finds all objects of the refs on
 * each node, their objects are the same. So each node reads its own objects
 * only.
 *
 * Failures: whatever could not be compared counts as a finding. One thread;
 * blocks.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/base/scan.h"
#include "client/base/tree.h"
#include "daemon/group/service/console_session.h"
#include "daemon/group/service/damage.h"
#include "daemon/group/service/fetch_id.h"
#include "daemon/group/service/join_ask.h"
#include "daemon/group/service/lease.h"
#include "daemon/group/service/listing.h"
#include "daemon/group/service/verbs.h"
#include "daemon/group/service/whole.h"
#include "proto/lib/clock.h"
#include "proto/lib/interrupt.h"

#define ROUNDS_MOST 6
#define APPLY_MS    30000
#define LATE_MS     1000
#define LOOK_MS     50

struct group_verify {
	const struct group_config *config;
	const char *root;
	struct fetch_site site;
	bool repairs;
	size_t nr_repos, nr_wrong; /* NR_WRONG: repositories */
	struct text late;          /* nodes: a space before and behind each */
	/* damage.h; owned; or NULL. */
	char *damaged;   /* the first one */
	char *former;    /* DAMAGED of the last run */
	bool has_former; /* it is still of the group */
	bool is_unsure;  /* objects of FORMER were not read */
	char *noted;     /* the list of refd group join */
	char *absent;    /* the same, without those found */
	/* If there is a list: */
	struct lease lease;     /* OWNER is empty if no other node leads */
	struct join_list shown; /* by the leader; is_copied: whole here */
};

/* One repository. */
struct verified {
	struct group_verify *v;
	struct session s;
	const char *path; /* below the root */
	bool is_wrong;
	bool is_former; /* v->former */
	bool is_whole;  /* all objects are here */
	bool is_alike;  /* the leader has the same refs */
};

static void begin_finding(struct verified *f)
{
	f->is_wrong = true;
	print_part(stdout, "%s: ", f->path);
}

#define find(f, ...) (begin_finding(f), print_line(stdout, __VA_ARGS__))

static bool list(struct verified *f, const char *source, struct listing *refs,
    struct text *why)
{
	const struct fetch_wish wish = { .source = source,
		.source_path = f->path,
		.path = f->path,
		.cancel = -1 };

	listing_done(refs);
	return listing_read(refs, &f->v->site, &wish, why);
}

/* ---- the log ---- */

/* The records of all rows of the repository behind LSN, which have the names of
 * their refs. */
static void add_rows(struct verified *f, uint64_t lsn, struct text *records)
{
	struct params p = { 0 };
	PGresult *r;
	int i;

	params_text(&p, f->v->config->name);
	params_number(&p, lsn);
	params_bytes(&p, f->path, strlen(f->path));
	r = session_run_binary(&f->s,
	    "SELECT body FROM refd.log WHERE grp = $1 AND lsn > $2"
	    " AND path = $3",
	    &p);
	if (!r)
		console_session_die(&f->s, SESSION_AWAY);
	text_adds(records, "");
	for (i = 0; i < PQntuples(r); i++)
		text_add(records, PQgetvalue(r, i, 0),
		    (size_t)PQgetlength(r, i, 0));
	PQclear(r);
}

static bool is_late(const struct group_verify *v, const char *name)
{
	char *word = xasprintf(" %s ", name);
	const bool is = v->late.data && strstr(v->late.data, word);

	free(word);
	return is;
}

/* Waits until NAME has applied *LSN; 0: the last row, which *LSN gets. A node
 * whose rows wait would hold up a run over ten thousand repositories for days,
 * so a run gives each node the whole time once. A node that was late gets a
 * short time afterwards: it may follow again, and even then the newest row is
 * always a moment away. */
static bool await_node(struct verified *f, const char *name, uint64_t *lsn)
{
	const uint64_t until_ms =
	    clock_now_ms() + (is_late(f->v, name) ? LATE_MS : APPLY_MS);
	struct console_node node;

	for (;;) {
		if (!console_session_find_node(&f->s, name, &node)) {
			find(f, "not compared: the group has no node '%s'",
			    name);
			return false;
		}
		if (*lsn == 0)
			*lsn = node.last;
		if (node.applied >= *lsn)
			return true;
		if (clock_now_ms() >= until_ms)
			break;
		usleep(LOOK_MS * 1000);
	}
	if (!is_late(f->v, name))
		text_addf(&f->v->late, " %s ", name);
	find(f,
	    "not compared: the node '%s' has not applied the row %" PRIu64
	    " of the log within %d seconds; if refd-group runs there, the log "
	    "of its daemon has the reason (group-row-waits)",
	    name, node.applied + 1, APPLY_MS / 1000);
	return false;
}

/* ---- refs ---- */

/* One comparison. */
struct round {
	uint64_t lsn; /* both nodes had applied it before */
	struct listing own, other;
	struct text records; /* of later rows of the repository */
};

static void round_done(struct round *r)
{
	listing_done(&r->own);
	listing_done(&r->other);
	text_done(&r->records);
	*r = (struct round){ 0 };
}

/* False: told. */
static bool read_round(struct verified *f, const char *node, struct round *r)
{
	const struct group_config *config = f->v->config;
	struct text why = { 0 };
	bool is_read;

	if (!await_node(f, config->node, &r->lsn) ||
	    !await_node(f, node, &r->lsn))
		return false;
	is_read = list(f, f->v->root, &r->own, &why) &&
	    list(f, group_config_source(config, node), &r->other, &why);
	if (is_read)
		add_rows(f, r->lsn, &r->records);
	else
		find(f, "not compared with the node '%s': %s", node, why.data);
	text_done(&why);
	return is_read;
}

/* The ref OWN here and OTHER on NODE; NULL: missing. True: a later row may
 * explain a difference. */
static bool is_doubtful(struct verified *f, const char *node,
    const struct round *r, const struct listing_ref *own,
    const struct listing_ref *other, bool prints)
{
	const char *name = own ? own->name : other->name;

	if (own && other && !strcmp(own->value, other->value))
		return false;
	if (memmem(r->records.data, r->records.len, name, strlen(name)))
		return true;
	if (prints)
		find(f, "%s is %s on '%s', and %s on '%s'", name,
		    own ? own->value : "missing", f->v->config->node,
		    other ? other->value : "missing", node);
	return false;
}

/* Returns the number of doubtful refs. */
static size_t judge(struct verified *f, const char *node, const struct round *r,
    bool prints)
{
	const struct listing_ref *a = r->own.refs, *b = r->other.refs;
	const struct listing_ref *a_end = a + r->own.nr;
	const struct listing_ref *b_end = b + r->other.nr;
	size_t nr = 0;
	int order;

	while (a < a_end || b < b_end) {
		order = a == a_end ? 1 :
		    b == b_end     ? -1 :
				     strcmp(a->name, b->name);
		nr += is_doubtful(f, node, r, order <= 0 ? a : NULL,
		    order >= 0 ? b : NULL, prints);
		a += order <= 0;
		b += order >= 0;
	}
	return nr;
}

static void compare(struct verified *f, const char *node)
{
	const bool was_wrong = f->is_wrong;
	struct round r = { 0 };
	size_t nr_doubtful;
	int i = 0;

	do {
		round_done(&r);
		if (!read_round(f, node, &r)) {
			round_done(&r);
			return;
		}
		nr_doubtful = judge(f, node, &r, false);
	} while (nr_doubtful > 0 && ++i < ROUNDS_MOST);
	f->is_wrong = false;
	judge(f, node, &r, true);
	f->is_alike |= nr_doubtful == 0 && !f->is_wrong &&
	    !strcmp(node, f->v->lease.owner);
	f->is_wrong |= was_wrong;
	if (nr_doubtful > 0)
		print_line(stdout,
		    "%s: %zu refs changed at each comparison with the node "
		    "'%s', and were not compared",
		    f->path, nr_doubtful, node);
	round_done(&r);
}

/* ---- objects ---- */

/* True: the objects come from a node. */
static bool repair(struct verified *f, struct whole *w)
{
	struct text why = { 0 }, wanted = { 0 };
	struct listing refs = { 0 };
	bool is_done = false;
	size_t i;

	for (i = 0; i < f->v->config->nr_sources && !is_done; i++) {
		const struct group_source *from = &f->v->config->sources[i];

		text_clear(&why);
		text_clear(&wanted);
		is_done = list(f, from->url, &refs, &why);
		listing_add_values(&refs, &wanted);
		is_done = is_done && refs.nr > 0 &&
		    whole_repair(w, from->url, &wanted, &why) &&
		    whole_check(w, &why) == WHOLE;
		if (is_done)
			print_line(stdout,
			    "%s: repaired with the objects of the node '%s'; "
			    "what was damaged is in refd/damaged/",
			    f->path, from->node);
		else
			print_line(stdout,
			    "%s: not repaired by the node '%s': %s", f->path,
			    from->node,
			    why.len ? why.data :
				      "objects are still missing or damaged");
	}
	listing_done(&refs);
	text_done(&wanted);
	text_done(&why);
	return is_done;
}

static void check_objects(struct verified *f, struct whole *w)
{
	struct text why = { 0 };

	switch (whole_check(w, &why)) {
	case WHOLE:
		f->is_whole = true;
		if (w->said.len == 0)
			break;
		whole_print(w, WHOLE);
		find(f,
		    "git finds faults that no repair changes: objects that "
		    "came so, or values that no other node has");
		break;
	case WHOLE_DAMAGED:
		whole_print(w, WHOLE_DAMAGED);
		f->is_whole = f->v->repairs && repair(f, w);
		if (f->is_whole)
			break;
		if (!f->v->damaged)
			f->v->damaged = damage_path(f->path);
		find(f, "is damaged on the node '%s'%s", f->v->config->node,
		    f->v->repairs ?
			"" :
			": repair it with refd group verify --repair");
		break;
	case WHOLE_UNKNOWN:
		whole_print(w, WHOLE_UNKNOWN);
		f->v->is_unsure |= f->is_former;
		find(f, "its objects were not checked: %s", why.data);
		break;
	}
	text_done(&why);
}

static void open_objects(struct verified *f, const struct listing *own,
    enum refd_object_format format)
{
	const struct fetch_wish wish = { .source_path = f->path,
		.path = f->path,
		.format = format,
		.cancel = -1 };
	struct whole w = { .site = &f->v->site, .wish = &wish };
	struct text why = { 0 };

	if (whole_open(&w, f->v->root, &why)) {
		/* No listing has the values of hidden refs, nor those that refd
		 * keeps for this node alone. So the values are read from the
		 * repository, too. */
		fetch_repo_values(w.repo.fd, w.site, &wish, &w.heads);
		listing_add_values(own, &w.heads);
		listing_add_values(own, &w.needed);
		check_objects(f, &w);
	} else {
		f->v->is_unsure |= f->is_former;
		find(f, "its objects were not checked: %s", why.data);
	}
	whole_done(&w);
	text_done(&why);
}

/* ---- repositories ---- */

static void compare_all(struct verified *f)
{
	struct params p = { 0 };
	const char *node;
	PGresult *nodes;
	int i;

	console_session_open(&f->s);
	params_text(&p, f->v->config->name);
	params_text(&p, f->v->config->node);
	nodes = session_run(&f->s,
	    "SELECT node FROM refd.node WHERE grp = $1 AND node <> $2"
	    " ORDER BY node",
	    &p);
	if (!nodes)
		console_session_die(&f->s, SESSION_AWAY);
	for (i = 0; i < PQntuples(nodes); i++) {
		node = PQgetvalue(nodes, i, 0);
		if (group_config_source(f->v->config, node))
			compare(f, node);
		else
			find(f,
			    "not compared: group.source in the configuration "
			    "does not name the node '%s'",
			    node);
	}
	PQclear(nodes);
	session_done(&f->s);
}

/* Sets *FORMAT to the format of the refs here. Without a ref here, the first
 * node that has a ref decides. False: the repository is empty. */
static bool find_format(struct verified *f, const struct listing *own,
    enum refd_object_format *format)
{
	const struct group_config *config = f->v->config;
	struct listing refs = { 0 };
	struct text why = { 0 };
	size_t i, nr = own->nr;

	*format = listing_format(own);
	for (i = 0; i < config->nr_sources && nr == 0; i++)
		if (list(f, config->sources[i].url, &refs, &why)) {
			nr = refs.nr;
			*format = listing_format(&refs);
		}
	listing_done(&refs);
	text_done(&why);
	return nr > 0;
}

/* The objects come first: a check of them can take longer than a connection to
 * PostgreSQL. */
static void verify(struct verified *f)
{
	enum refd_object_format format;
	struct text why = { 0 };
	struct listing own = { 0 };

	if (list(f, f->v->root, &own, &why)) {
		f->is_whole = !find_format(f, &own, &format);
		if (!f->is_whole)
			open_objects(f, &own, format);
		compare_all(f);
	} else {
		f->v->is_unsure |= f->is_former;
		find(f, "not compared: %s", why.data);
	}
	listing_done(&own);
	text_done(&why);
}

static void note_whole(struct group_verify *v, const struct verified *f,
    const char *dir)
{
	char hex[FETCH_ID_HEX + 1];
	struct join_repo *repo = fetch_id_read(dir, hex) == OWN_FILE_CLOSED ?
	    join_list_find(&v->shown, hex) :
	    NULL;

	if (repo && !strcmp(repo->path, f->path) && !repo->fault)
		repo->is_copied = true;
}

static void verify_repo(const char *dir, void *arg)
{
	struct group_verify *v = arg;
	struct verified f = { .v = v,
		.s.config = v->config,
		.path = dir + strlen(v->root) + 1 };
	char *path = damage_path(f.path);

	f.is_former = v->former && !strcmp(path, v->former);
	v->has_former |= f.is_former;
	verify(&f);
	if (f.is_whole && f.is_alike)
		note_whole(v, &f, dir);
	v->nr_repos++;
	v->nr_wrong += f.is_wrong;
	free(path);
}

/* Repositories aside belong to no path of the group. */
static void look(const char *dir, void *arg)
{
	char *group = xasprintf("%s/refd/group", dir);
	const bool is_of_group =
	    access(group, F_OK) == 0 && !strstr(dir, "/.refd-");

	free(group);
	if (is_of_group)
		verify_repo(dir, arg);
}

/* The directory of REPO, owned. */
static char *find_named(const struct group_verify *v, const char *repo)
{
	const size_t len = strlen(v->root);
	char dir[PATH_MAX];

	if (!realpath(repo, dir))
		die("'%s': %s", repo, strerror(errno));
	if (!has_prefix(dir, v->root) || dir[len] != '/' ||
	    !scan_is_repository(dir))
		die("'%s' is no repository below daemon.root, '%s'", repo,
		    v->root);
	return xstrdup(dir);
}

/* DIRS: those of the named repositories, freed here; none: all. */
static void verify_all(struct group_verify *v, char **dirs)
{
	bool is_all = !*dirs;

	for (; *dirs; dirs++) {
		if (!interrupt_came())
			verify_repo(*dirs, v);
		free(*dirs);
	}
	if (is_all && !scan_repositories(v->root, look, v)) {
		is_all = false;
		v->nr_wrong++;
	}
	v->is_unsure |= !is_all && !v->has_former;
}

/* ---- the lead ---- */

/* This node may have lacked repositories since refd group join. Such a
 * repository counts as found if it is whole here, with the refs of the leader:
 * nothing else shows that a copy has all refs, because another node can lack
 * them, too. Refs that the leader hides are in no listing. So the leader is
 * asked about them before and after all comparisons. */
static void ask_leader(struct group_verify *v, struct session *s)
{
	v->absent = xstrdup(v->noted);
	if (!lease_look(s, &v->lease))
		console_session_die(s, SESSION_AWAY);
	if (v->lease.is_over || !strcmp(v->lease.owner, v->config->node))
		*v->lease.owner = '\0';
	else
		join_ask(&v->shown, s, v->lease.owner);
}

/* A repository that is in neither answer is removed. */
static bool is_found(const struct group_verify *v, const struct join_list *now,
    const char *hex)
{
	const struct join_repo *was = join_list_find(&v->shown, hex);
	const struct join_repo *repo = join_list_find(now, hex);

	return was && repo ? join_list_keeps_copy(repo, was) : !was && !repo;
}

/* Without an epoch in between, the same node has led all the time. */
static void drop_found(struct group_verify *v, struct session *s)
{
	char hex[FETCH_ID_HEX + 1], *path;
	struct join_list now = { .nr = 0 };
	struct lease lease;
	size_t at = 0;

	join_ask(&now, s, v->lease.owner);
	if (!lease_look(s, &lease))
		console_session_die(s, SESSION_AWAY);
	while (lease.epoch == v->lease.epoch &&
	    (path = damage_next_absent(v->noted, &at, hex))) {
		if (is_found(v, &now, hex))
			damage_drop_absent(v->absent, hex);
		free(path);
	}
	join_list_done(&now);
}

/* Sets v->former, or v->noted. */
static void read_damage(struct group_verify *v)
{
	struct session s = { .config = v->config };
	struct params p = { 0 };
	PGresult *r;

	console_session_open(&s);
	params_text(&p, v->config->name);
	params_text(&p, v->config->node);
	r = session_run(&s,
	    "SELECT damaged FROM refd.node WHERE grp = $1 AND node = $2"
	    " AND damaged IS NOT NULL",
	    &p);
	if (!r)
		console_session_die(&s, SESSION_AWAY);
	if (PQntuples(r) == 1 && damage_is_list(PQgetvalue(r, 0, 0)))
		v->noted = xstrdup(PQgetvalue(r, 0, 0));
	else if (PQntuples(r) == 1)
		v->former = xstrdup(PQgetvalue(r, 0, 0));
	PQclear(r);
	if (v->noted)
		ask_leader(v, &s);
	session_done(&s);
}

/* Writes the damage down for refd-group, because a damaged node shall not lead
 * if another one can. A former finding goes when its repository was read, or is
 * gone. A repository that cannot be read does not keep the finding of another
 * one: otherwise its owner would decide on the lead for ever. A list that refd
 * group join has made since read_damage() stays as it is. False: told. */
static bool note_damage(struct group_verify *v)
{
	struct session s = { .config = v->config };
	struct params p = { 0 };
	long changed;

	if (!v->noted && !v->damaged && (v->is_unsure || interrupt_came()))
		return true;
	console_session_open(&s);
	if (*v->lease.owner && !interrupt_came())
		drop_found(v, &s);
	params_text(&p, v->config->name);
	params_text(&p, v->config->node);
	params_text(&p, v->absent && *v->absent ? v->absent : v->damaged);
	params_text(&p, v->noted);
	changed = session_change(&s,
	    "UPDATE refd.node SET damaged = $3"
	    " WHERE grp = $1 AND node = $2 AND (damaged = $4::text"
	    " OR ($4::text IS NULL AND NOT " DAMAGE_IS_LIST "))",
	    &p);
	if (changed < 0)
		console_session_die(&s, SESSION_AWAY);
	session_done(&s);
	if (changed == 0)
		say_error("the node '%s' has joined or left the group "
			  "meanwhile: run refd group verify again",
		    v->config->node);
	return changed > 0;
}

/* ---- the directory for git ---- */

static char *top;

/* At each end of the program. */
static void remove_top(void)
{
	struct tree tree = { .task = TREE_REMOVE };

	tree_walk(&tree, AT_FDCWD, top);
	free(top);
}

/* To be freed. */
static char *make_git_dirs(void)
{
	const char *tmp = getenv("TMPDIR");
	char *dir;

	top = xasprintf("%s/refd-group-XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(top))
		die("cannot make a directory for git, '%s': %s", top,
		    strerror(errno));
	atexit(remove_top);
	dir = xasprintf("%s/git", top);
	fetch_dirs_make(dir);
	return dir;
}

/* False: told. */
static bool has_all(const struct group_verify *v)
{
	char hex[FETCH_ID_HEX + 1], *path;
	size_t at = 0;

	if (!v->absent || !*v->absent)
		return true;
	while ((path = damage_next_absent(v->absent, &at, hex))) {
		print_line(stdout,
		    "%s: refd group join could not copy this repository, and "
		    "nothing shows that it is whole here: copy it from the "
		    "leader, with refd/",
		    path);
		free(path);
	}
	return false;
}

int verify_run(const struct group_config *config,
    const struct verb_options *opt)
{
	struct group_verify v = { .config = config, .repairs = opt->repairs };
	char *dir, root[PATH_MAX], **dirs;
	bool is_noted, is_whole;
	size_t nr = 0;

	if (!config->nr_roots || !realpath(config->roots[0], root))
		die("the configuration has no daemon.root that exists");
	v.root = root;
	/* Before the database is asked: a wrong name is no matter of it. */
	while (opt->operands[nr])
		nr++;
	dirs = xcalloc(nr + 1, sizeof(*dirs));
	while (nr-- > 0)
		dirs[nr] = find_named(&v, opt->operands[nr]);
	dir = make_git_dirs();
	v.site = (struct fetch_site){ .roots = config->roots,
		.nr_roots = config->nr_roots,
		.dir = dir };
	/* A run takes hours, so each line is written at once. Otherwise a
	 * reader of the journal would see the findings only at the end, and
	 * nobody would see them after a kill. */
	setvbuf(stdout, NULL, _IOLBF, 0);
	interrupt_catch();
	read_damage(&v);
	verify_all(&v, dirs);
	is_noted = note_damage(&v);
	is_whole = has_all(&v);
	print_line(stdout, "%zu repositories verified, %zu with findings",
	    v.nr_repos, v.nr_wrong);
	text_done(&v.late);
	free(v.damaged);
	free(v.former);
	free(v.noted);
	free(v.absent);
	join_list_done(&v.shown);
	free(dirs);
	free(dir);
	if (interrupt_came())
		return INTERRUPT_STATUS;
	return v.nr_wrong > 0 || !is_noted || !is_whole ? EXIT_FAILED :
							  EXIT_DONE;
}
