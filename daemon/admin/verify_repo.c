/*
 * One repository.
 *
 * Happy path:
 *	open	the common dir and its objects, without a claim: a daemon may
 *		serve the repository
 *	walk	refs and locks of the repository and its worktrees, packed-refs,
 *		logs, then the last records of the journal; or the reftables of
 *		the repository and its worktrees
 *	again	the suspects, after a pause; a suspect that fails again is a
 *		finding, and may be repaired
 *
 * Failures: PATH is no repository, or has another format of refs. A part that
 * cannot be read is a finding, and the other parts are checked.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/admin/verify_internal.h"
#include "daemon/store/repos/repo_config.h"
#include "daemon/store/repos/repo_internal.h"
#include "daemon/store/tables/stack/stack_set.h"
#include "proto/lib/interrupt.h"

/* At this number, the suspects are checked again before the walk goes on. */
#define SUSPECTS_MAX 4096

const char *verify_ref_name(const struct ref_place *place, const char *name,
    char buf[REFD_PATH_MAX])
{
	if (place->worktree[0] == '\0')
		return name;
	snprintf(buf, REFD_PATH_MAX, "worktrees/%s/%s", place->worktree, name);
	return buf;
}

/* ---- findings ---- */

void verify_found(struct verify *v, enum finding_id id, const char *ref,
    const char *file, const char *fmt, ...)
{
	struct finding finding = { .id = id,
		.repo = v->repo.path,
		.ref = ref,
		.file = file };
	char path[REFD_PATH_MAX], *text, *repair = NULL;
	va_list ap;

	v->is_suspicious = true;
	v->is_broken = v->is_broken || id == FOUND_REF_BROKEN;
	if (v->subject != NULL && !v->is_sure)
		return;
	if (v->subject != NULL && file[0] != '\0')
		finding.file = verify_ref_name(&v->subject->place, file, path);
	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	finding.text = text;
	if (v->opt->repair && v->is_reftable &&
	    finding_repair(id) != REPAIR_TABLE)
		repair = finding_repair(id) == REPAIR_NONE ?
		    NULL :
		    strdup("refd repairs only footers of reftables");
	else if (v->opt->repair)
		repair = verify_repair(v, id, v->subject, &finding.is_repaired);
	if (repair != NULL && v->value[0] != '\0' && v->opt->restored != NULL)
		v->opt->restored(v->opt->arg, v->repo.path, ref, v->value,
		    v->from);
	finding.repair = repair;
	findings_add(v->opt->findings, &finding);
	free(repair);
	free(text);
}

/* ---- checks ---- */

static void check_subject(struct verify *v, const struct verify_subject *s,
    bool is_sure)
{
	const struct verify_subject *was = v->subject;

	v->subject = s;
	v->is_sure = is_sure;
	v->is_suspicious = false;
	s->check(v, &s->place, s->name);
	v->subject = was;
}

void verify_read_again(struct verify *v)
{
	struct packed_snapshot *snap = NULL;

	if (v->odb != NULL)
		odb_refresh(v->odb);
	v->snap_err = packed_snapshot(v->repo.packed, &snap);
	if (v->snap_err < 0)
		snap = NULL;
	packed_snapshot_put(v->snap);
	v->snap = snap;
	if (v->repo_rows != NULL)
		verify_rows_read_on(v->rows);
}

void verify_check_again(struct verify *v)
{
	struct verify_subject *s = v->suspects;
	size_t i, nr = v->nr_suspects;

	if (nr == 0)
		return;
	if (!interrupt_came())
		SYS(v->sys, sleep_ns, v->opt->patience_ns);
	verify_read_again(v);
	for (i = 0; i < nr; i++)
		if (!interrupt_came())
			check_subject(v, &s[i], true);
	for (i = 0; i < nr; i++)
		free((char *)(uintptr_t)s[i].name);
	v->nr_suspects = 0;
}

void verify_check(struct verify *v, verify_check_fn *check,
    const struct ref_place *place, const char *name)
{
	struct verify_subject s = { check, *place, name };

	if (interrupt_came())
		return;
	findings_progress(v->opt->findings, v->repo.path, name);
	check_subject(v, &s, false);
	if (!v->is_suspicious)
		return;
	s.name = strdup(name);
	if (s.name == NULL) {
		v->aborted = true;
		return;
	}
	v->suspects[v->nr_suspects++] = s;
	if (v->nr_suspects == SUSPECTS_MAX)
		verify_check_again(v);
}

/* ---- the places ---- */

static void verify_place(struct verify *v, const struct ref_place *place)
{
	verify_check(v, verify_ref, place, "HEAD");
	verify_check(v, verify_lock, place, "HEAD");
	verify_walk_refs(v, place);
}

static void verify_all_reftables(struct verify *v)
{
	size_t i;

	for (i = 0; i < v->places.nr; i++)
		verify_reftables(v, &v->places.list[i]);
	verify_check_again(v);
}

static void verify_all(struct verify *v)
{
	const struct ref_place *common = v->places.list;
	size_t i;

	for (i = 0; i < v->places.nr; i++)
		verify_place(v, &v->places.list[i]);
	verify_check(v, verify_lock, common, "packed-refs");
	verify_check(v, verify_packed, common, "packed-refs");
	verify_walk_packed(v);
	for (i = 0; i < v->places.nr; i++)
		verify_walk_logs(v, &v->places.list[i]);
	verify_check_again(v);
}

/* ---- opening ---- */

static int find_repo(struct verify *v, const char *path, char **why)
{
	struct repo_place place;

	if (repo_find_named(&v->repos, path, &place, why) != REFD_OK)
		return -1;
	v->repo.fd = place.fd;
	v->repo.path = strdup(place.path);
	v->repo.packed = packed_new(v->sys, place.fd, &v->repo.object_format);
	v->repo.stacks = stack_set_new(v->sys, &v->repo.object_format);
	return v->repo.path == NULL || v->repo.packed == NULL ||
		v->repo.stacks == NULL ?
	    -1 :
	    0;
}

/* Reads the owner, and opens refd's directories if they exist. */
static int open_dirs(struct verify *v, char **why)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;
	char migration[REPO_MIGRATION_MAX];
	struct sys_stat st, objects;

	if (repo_has_migration(v->sys, v->repo.fd, migration))
		verify_found(v, FOUND_REF_MIGRATION, "", migration,
		    "git refs migrate is at work there, or was killed: the "
		    "refs may be in that directory, and nowhere else");
	if (SYS(v->sys, lstatat, v->repo.fd, "refs", &st) < 0 ||
	    SYS(v->sys, lstatat, v->repo.fd, "objects", &objects) < 0) {
		*why = repo_why("'%s' is not a repository: it has no refs or "
				"no objects",
		    v->repo.path);
		return -1;
	}
	v->repo.owner = st.uid;
	v->repo.group = st.gid;
	v->repo.mode = st.mode;
	v->repo.refd_fd = SYS(v->sys, openat, v->repo.fd, "refd", flags, 0);
	if (v->repo.refd_fd >= 0)
		v->repo.stage_fd =
		    SYS(v->sys, openat, v->repo.refd_fd, "stage", flags, 0);
	return 0;
}

static void found_closed(struct verify *v, char *reason)
{
	verify_found(v, FOUND_NOT_OPENED, "", "",
	    "its objects can't be looked at: %s",
	    reason != NULL ? reason : "out of memory");
	free(reason);
}

/* -1 and *WHY: refd reads no such repository. *LOST: the file does not tell the
 * format of the ids, because it may be empty or have only NULs after a power
 * loss. */
static int read_config(struct verify *v, bool *lost, bool *malformed,
    char **why)
{
	struct repo_config config = { 0 };
	char *reason = NULL;
	enum refd_status status = repo_config_read(v->sys, v->repo.fd,
	    v->repo.path, &config, &reason);

	*malformed = status != REFD_OK;
	*lost = *malformed || !config.has_version;
	v->is_reftable =
	    *lost ? repo_has_reftable(v->sys, &v->repo) : config.is_reftable;
	if (status == REFD_OK) {
		v->git_syncs = config.git_syncs_refs;
		v->repo.object_format = config.object_format;
		repo_config_done(&config);
		return 0;
	}
	if (status == REFD_UNSUPPORTED) {
		*why = reason;
		return -1;
	}
	found_closed(v, reason);
	return 0;
}

/* Does not read HEAD, so that the other refs can be checked if a power loss
 * emptied HEAD. */
static void open_objects(struct verify *v)
{
	const struct object_rule rule = { repo_open_root, &v->repos,
		&v->repo.owner, &v->repo.group };
	int r;

	v->odb = odb_new(v->sys, v->repo.fd, &v->repo.object_format, &rule);
	r = v->odb == NULL ? -ENOMEM : odb_refresh(v->odb);
	if (r == 0)
		return;
	found_closed(v,
	    repo_why("'%s' %s", v->repo.path, object_stores_why(r)));
	odb_free(v->odb);
	v->odb = NULL;
}

static void close_all(struct verify *v)
{
	size_t i;

	for (i = 0; i < v->nr_deferred; i++)
		free(v->deferred[i]);
	free(v->deferred);
	lock_places_close(&v->places, v->sys);
	free(v->suspects);
	packed_snapshot_put(v->snap);
	packed_free(v->repo.packed);
	stack_set_free(v->repo.stacks);
	odb_free(v->odb);
	if (v->repo.stage_fd >= 0)
		SYS(v->sys, close, v->repo.stage_fd);
	if (v->repo.refd_fd >= 0)
		SYS(v->sys, close, v->repo.refd_fd);
	if (v->repo.fd >= 0)
		SYS(v->sys, close, v->repo.fd);
	free(v->repo.path);
	repos_done(&v->repos);
}

static int verify_opened(struct verify *v, char **why)
{
	bool lost, malformed;
	size_t left = SIZE_MAX;
	int r;

	r = read_config(v, &lost, &malformed, why);
	if (r < 0)
		return r;
	r = lock_places_open(&v->places, v->sys, &v->repo, &left);
	if (r == -ENOMEM)
		return r;
	if (r < 0)
		verify_found(v, FOUND_REF_UNREADABLE, "", "worktrees",
		    "not all worktrees can be opened and checked: %s",
		    r == -ELOOP ? "it is a symbolic link" : strerror(-r));
	verify_journal_open(v);
	if (lost)
		verify_find_format(v);
	if (!malformed)
		open_objects(v);
	verify_read_again(v);
	if (v->is_reftable)
		verify_all_reftables(v);
	else
		verify_all(v);
	/* Each look-up in a stack with a fault would take a while to fail. */
	if (!v->has_fault)
		verify_records(v);
	return v->aborted ? -1 : 0;
}

int verify_repo(const struct verify_options *opt, const char *path, char **why)
{
	static const char *const roots[] = { "/" };
	struct verify v = { .opt = opt, .sys = opt->sys, .rows = opt->rows };
	int r;

	*why = NULL;
	repos_init(&v.repos, v.sys, NULL, roots, 1, 1);
	v.repo.fd = v.repo.refd_fd = v.repo.stage_fd = -1;
	v.suspects = calloc(SUSPECTS_MAX, sizeof(*v.suspects));
	r = v.suspects == NULL || v.rows == NULL ? -1 :
						   find_repo(&v, path, why);
	if (r == 0)
		r = open_dirs(&v, why);
	if (r == 0)
		r = verify_opened(&v, why);
	if (r < 0 && *why == NULL)
		*why = repo_why("can't look at '%s': out of memory, or its "
				"directories can't be read",
		    path);
	close_all(&v);
	return r < 0 ? -1 : 0;
}
