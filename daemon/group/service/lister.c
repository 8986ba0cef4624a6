#include "daemon/group/service/lister.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/base/child.h"
#include "client/base/scan.h"
#include "daemon/group/service/fetch_id.h"
#include "daemon/group/service/lister_config.h"
#include "proto/group_frame.h"

#define CONFIG_S   30
#define CONFIG_MAX 65536
#define PATH_BYTES 3900 /* a notice has less than 8000 */

/* False: the session has failed. */
static bool tell(struct lister *l, const char *what)
{
	char *text = xasprintf("%s %s", l->request, what);
	struct params p = { 0 };
	PGresult *r;

	params_text(&p, text);
	r = session_run(&l->s, "SELECT pg_notify('refd_listed', $1)", &p);
	PQclear(r);
	free(text);
	return r != NULL;
}

/* ---- one repository ---- */

static void add_path(struct text *what, const char *path)
{
	for (; *path; path++)
		text_addf(what, "%02x", (unsigned)(uint8_t)*path);
}

/* False: git cannot read the configuration. */
static bool read_config(const char *dir, struct text *config)
{
	static const char *const argv[] = { "git", "--git-dir=.", "config",
		"-z", "--get-regexp",
		"^(extensions\\.objectformat|(transfer|uploadpack)\\.hiderefs)$",
		NULL };
	struct launch l = { .argv = argv,
		.in = LAUNCH_NULL,
		.err = STDERR_FILENO,
		.dir = dir,
		.no_git = true,
		.seconds = CONFIG_S };
	int status = child_read(&l,
	    &(struct child_output){ .out = config,
		.out_max = CONFIG_MAX,
		.cancel = -1 });

	return status == 0 || status == 1; /* 1: no such key */
}

static bool awaits_import(const char *dir)
{
	char *path = xasprintf("%s/refd/import", dir);
	bool awaits = access(path, F_OK) == 0;

	free(path);
	return awaits;
}

/* Git leaves refs out of a fetch from a shallow repository, and says nothing,
 * so a copy would lack refs. */
static bool is_shallow(const char *dir)
{
	char *path = xasprintf("%s/shallow", dir);
	struct stat st;
	bool is = stat(path, &st) == 0 && st.st_size > 0;

	free(path);
	return is;
}

/* If others may write the id of a repository, the id may be that of a different
 * repository. The new node would then take the refs of the wrong repository. */
static void tell_repository(struct lister *l, const char *dir, const char *uuid,
    enum own_file whose)
{
	const char *path = dir + strlen(l->config->roots[0]);
	const char *state = "unreadable";
	struct text text = { 0 }, what = { 0 };
	struct lister_config config = { false, false };

	if (read_config(dir, &text)) {
		config = lister_config_parse(&text);
		state = config.hides_refs ? "hidden" :
		    awaits_import(dir)    ? "importing" :
		    is_shallow(dir)       ? "shallow" :
					    "shown";
	}
	if (whose == OWN_FILE_OPEN)
		state = "open";
	path += strspn(path, "/");
	if (strlen(path) > PATH_BYTES) {
		state = "long";
		path = uuid;
	}
	text_addf(&what, "%s %s %s ", uuid,
	    config.is_sha256 ? "sha256" : "sha1", state);
	add_path(&what, path);
	l->is_whole = tell(l, what.data);
	l->nr++;
	text_done(&text);
	text_done(&what);
}

/* ---- all ---- */

/* A repository without an id gets to the other nodes by rows, so it is not
 * named. */
static void look(const char *dir, void *data)
{
	const char *name = strrchr(dir, '/');
	char uuid[FETCH_ID_HEX + 1];
	struct lister *l = data;
	enum own_file whose;

	if (!l->is_whole || atomic_load(&l->has_ended) ||
	    has_prefix(name ? name : dir, "/.refd-"))
		return;
	whose = fetch_id_read(dir, uuid);
	if (whose != OWN_FILE_FOREIGN)
		tell_repository(l, dir, uuid, whose);
}

static bool tell_unnamed(struct lister *l, size_t nr)
{
	char *what = xasprintf("unnamed %zu", nr);
	bool is_told = nr == 0 || tell(l, what);

	free(what);
	return is_told;
}

static bool tell_all(struct lister *l)
{
	size_t nr_beyond;

	return scan_all_but_beyond(l->config->roots[0], look, l, &nr_beyond) &&
	    l->is_whole && !atomic_load(&l->has_ended) &&
	    tell_unnamed(l, nr_beyond);
}

static void *run(void *arg)
{
	struct lister *l = arg;
	char *end;

	l->s = (struct session){ .config = l->config };
	l->is_whole = session_open(&l->s) == SESSION_OK &&
	    session_do(&l->s, "SET synchronous_commit = off") &&
	    tell(l, "busy");
	l->nr = 0;
	if (l->is_whole) {
		l->is_whole = tell_all(l);
		end = l->is_whole ? xasprintf("end %zu", l->nr) :
				    xstrdup("failed");
		tell(l, end);
		free(end);
	}
	session_done(&l->s);
	atomic_store(&l->is_working, false);
	return NULL;
}

void lister_take(struct lister *l, const char *payload)
{
	char group[GROUP_NAME_MAX + 1], node[GROUP_NAME_MAX + 1];

	if (atomic_load(&l->is_working) || l->config->nr_roots == 0 ||
	    sscanf(payload, "%64s %64s %16s", group, node, l->request) != 3 ||
	    strcmp(group, l->config->name) != 0 ||
	    strcmp(node, l->config->node) != 0)
		return;
	if (l->has_thread)
		pthread_join(l->thread, NULL);
	atomic_store(&l->is_working, true);
	l->has_thread = pthread_create(&l->thread, NULL, run, l) == 0;
	if (!l->has_thread)
		atomic_store(&l->is_working, false);
}

void lister_end(struct lister *l)
{
	atomic_store(&l->has_ended, true);
	if (l->has_thread)
		pthread_join(l->thread, NULL);
}
