/*
 * Admission to a repository in a group whose refs no other node has
 * (group_repo.c). Only the transaction that imports the refs is admitted,
 * because another row would change refs that the other nodes do not have.
 *
 * The happy path: the transaction is atomic, gives every ref the value that the
 * ref has, and leaves no ref out, because such a ref would stay on this node
 * alone. Under the locks, the values are compared as in any transaction. A
 * program without refd may make a ref in between. The import leaves this ref
 * out, as the group leaves out any ref of such a program.
 *
 * Failures: any other transaction is refused, and the message names the command
 * that imports. A damaged ref is named.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/busy_cause.h"
#include "daemon/group/group_internal.h"
#include "daemon/store/admission/admit.h"
#include "daemon/store/looking/seen_refs.h"
#include "proto/lib/shell_word.h"
#include "proto/refname.h"

/* How many refs and directories that are not in an import are looked at. Beyond
 * this number the search ends, so the work depends on the size of the request,
 * and not on the repository. */
#define OTHERS_MAX 1000
#define LINKS_MAX  5 /* git's SYMREF_MAXDEPTH */

static bool keeps_value(const struct refd_update *ask)
{
	switch (ask->action) {
	case REFD_UPDATE:
		return ask->has_old && !refd_oid_is_null(&ask->new_oid) &&
		    refd_oid_eq(&ask->new_oid, &ask->old_oid);
	case REFD_SYMREF_UPDATE:
		return ask->old_target != NULL &&
		    strcmp(ask->target, ask->old_target) == 0;
	case REFD_CREATE:
	case REFD_DELETE:
	case REFD_VERIFY:
	case REFD_SYMREF_CREATE:
	case REFD_SYMREF_DELETE:
	case REFD_SYMREF_VERIFY:
		break;
	}
	return false;
}

static bool is_import(const struct txn *txn)
{
	size_t i;

	for (i = 0; i < txn->nr_updates; i++)
		if (!txn->updates[i].ask->no_deref ||
		    !keeps_value(txn->updates[i].ask))
			return false;
	return txn->req.atomic && txn->nr_updates > 0;
}

static int by_name(const void *va, const void *vb)
{
	const char *const *a = va, *const *b = vb;

	return strcmp(*a, *b);
}

/* Does the symbolic ref REF lead to a value? Otherwise git does not list it. */
static bool has_value(const struct seen_refs *refs, struct seen_ref ref)
{
	unsigned depth;

	for (depth = 0; ref.target != NULL; depth++)
		if (depth == LINKS_MAX ||
		    !seen_refs_find(refs, SEEN_DISK, ref.target, &ref))
			return false;
	return true;
}

/* Must an import have REF? Two kinds of refs may be missing: kept values,
 * because they are of one node, and HEAD, because it may have a value of its
 * own. */
static bool is_wanted(const struct seen_refs *refs, const struct seen_ref *ref)
{
	return strncmp(ref->name, "refs/", 5) == 0 && has_value(refs, *ref) &&
	    !refd_refname_is_kept(ref->name);
}

/* Sets MISSING to the first ref that NAMES, which are sorted, lack. */
static bool is_missing(const struct seen_refs *refs, const char *const *names,
    size_t nr, struct seen_ref *missing)
{
	size_t i;

	for (i = 0; i < seen_refs_nr(refs); i++)
		if (seen_refs_get(refs, SEEN_DISK, i, missing) &&
		    is_wanted(refs, missing) &&
		    bsearch(&missing->name, names, nr, sizeof(*names),
			by_name) == NULL)
			return true;
	return false;
}

static bool compare(struct txn *txn, const struct seen_refs *refs)
{
	const char **names = calloc(txn->nr_updates, sizeof(*names));
	struct seen_ref missing;
	bool has_all;
	size_t i;

	if (names == NULL)
		return admit_refuse(txn, busy_cause_count(BUSY_MEMORY), NULL);
	for (i = 0; i < txn->nr_updates; i++)
		names[i] = txn->updates[i].ask->name;
	qsort(names, txn->nr_updates, sizeof(*names), by_name);
	has_all = !is_missing(refs, names, txn->nr_updates, &missing);
	free(names);
	return has_all ||
	    admit_refuse(txn, REFD_STALE,
		repo_why(missing.is_unknown ?
			"the ref '%s' of '%s' is damaged: remove its file" :
			"'%s' of '%s' is missing in the import: run 'refd "
			"enable' again",
		    missing.name, txn->repo->path));
}

static bool has_all_refs(const struct sys *sys, struct txn *txn)
{
	struct seen_refs *refs = seen_refs_new(txn->nr_updates + OTHERS_MAX);
	bool has_all = false;
	int r;

	if (refs == NULL)
		return admit_refuse(txn, busy_cause_count(BUSY_MEMORY), NULL);
	r = seen_refs_read(sys, txn->repo, refs);
	if (r == -EFBIG)
		admit_refuse(txn, REFD_STALE,
		    repo_why("'%s' has more refs than the import, or very many "
			     "directories below refs/: run 'git pack-refs "
			     "--all', and 'refd enable' again",
			txn->repo->path));
	else if (r < 0)
		admit_refuse(txn, txn_status_of(r),
		    repo_why("can't list the refs of '%s': %s", txn->repo->path,
			strerror(-r)));
	else
		has_all = compare(txn, refs);
	seen_refs_free(refs);
	return has_all;
}

bool admit_import(const struct sys *sys, struct txn *txn)
{
	struct group_txn *kept = group_txn_of(txn);
	char word[SHELL_WORD_MAX(REFD_PATH_MAX)];

	if (kept == NULL || txn->is_own)
		return true;
	kept->imports = false;
	if (!group_repo_awaits_import(txn->repo))
		return true;
	if (!is_import(txn))
		return admit_refuse(txn, REFD_DENIED,
		    repo_why(
			"the other nodes of the group do not have the refs "
			"of '%s' yet: run \"refd enable %s\" here",
			txn->repo->path, shell_word(word, txn->repo->path)));
	kept->imports = has_all_refs(sys, txn);
	return kept->imports;
}
