/*
 * Admission of one transaction: every check that does not need the locks of the
 * refs (admission_turn.c calls the checks in order).
 *
 * The happy path, once the journal does not know its id (admissions.c):
 *	repo	that of the turn (admission_turn.c)
 *	peer	may the peer write here without refd?
 *	names	valid, each once
 *	objects	exist, and are commits where a branch needs a commit
 *
 * A peer may not learn more than without refd, so the rights are checked before
 * names and objects.
 *
 * A failure refuses the transaction (no repository, not permitted, not
 * supported: nothing else was checked) or decides single updates (a bad name, a
 * missing object). The other updates go on.
 */
#include "daemon/store/admission/admit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/busy_cause.h"
#include "daemon/store/admission/admissions_internal.h"
#include "daemon/store/deferred/deferred_fs.h"
#include "daemon/store/deferred/deferred_retry.h"
#include "daemon/store/recovery/leftover_locks.h"
#include "proto/lib/name_key.h"
#include "proto/refname.h"

bool admit_refuse(struct txn *txn, enum refd_status status, char *why)
{
	txn->refused = status;
	txn->why = why;
	return false;
}

/* ---- the request ---- */

static bool is_committer(const char *ident)
{
	const char *mail = strstr(ident, " <"), *end;

	if (strchr(ident, '\n') != NULL || mail == NULL)
		return false;
	end = strstr(mail, "> ");
	return end != NULL && end[2] != '\0';
}

/* Does refd not know core.logAllRefUpdates or core.sharedRepository? An
 * included configuration file that refd did not read may decide the value. The
 * value is known if the client sets it, or if a later line of the repository's
 * own files does. Packs and looks write no log, and go by the mode of refs/, so
 * they need no such value. */
static bool is_unsure(const struct txn *txn, const struct repo *repo)
{
	if (admission_has_no_updates(txn) || admission_is_own(txn))
		return false;
	return (repo->is_log_unsure && txn->req.log_all_ref_updates == NULL) ||
	    (repo->is_shared_unsure && txn->req.shared_repository == NULL);
}

/* A missing name, a file and a closed repository get the same status and the
 * same words, because the peer could not tell them apart without refd. */
static void refuse_unseen(struct txn *txn)
{
	free(txn->why);
	admit_refuse(txn, REFD_NOREPO,
	    repo_why("'%s' is no repository that uid %u can reach: it is "
		     "missing, or closed to that uid, or not under a root that "
		     "refd serves (daemon.root, --root)",
		txn->req.git_dir, txn->peer.uid));
}

/* An error of the machine is not told either, unless the peer may see the
 * repository. */
static void hide_unseen(struct admission_worker *w, struct txn *txn)
{
	enum refd_status status =
	    repo_peer_may_see(w->cfg->repos, txn->req.git_dir, &txn->peer);

	if (status == REFD_NOREPO) {
		refuse_unseen(txn);
	} else if (status != REFD_OK) {
		free(txn->why);
		admit_refuse(txn, status,
		    repo_why("can't look at the directories above '%s' now",
			txn->req.git_dir));
	}
}

/* Decides by the present owners and modes. */
static enum refd_status check_write(const struct admission_worker *w,
    const struct txn *txn, const struct repo *repo, char **why)
{
	enum refd_status status =
	    repo_peer_may_write(w->cfg->sys, repo, &txn->peer);

	if (status == REFD_OK)
		return REFD_OK;
	if (status != REFD_NOREPO) {
		*why = repo_why("can't look at the directories above '%s' now",
		    repo->path);
		return status;
	}
	*why = repo_why("uid %u may not write refs of '%s' (owner %u, mode "
			"%04o, and every directory on the way must let it "
			"pass)",
	    txn->peer.uid, repo->path, repo->owner, repo->mode & 07777);
	return REFD_DENIED;
}

/* Checks what the request demands of the repository, and what the repository
 * demands of the peer. *GIVEN gets the rights that the root of the repository
 * gives the peer. */
static enum refd_status check_use(const struct admission_worker *w,
    const struct txn *txn, const struct repo *repo, struct rights_given *given,
    char **why)
{
	enum refd_status status = REFD_OK;

	if (txn->req.common_ino != 0 &&
	    (txn->req.common_dev != repo->dev ||
		txn->req.common_ino != repo->ino)) {
		*why = repo_why("'%s' is another directory for the daemon than "
				"for the client: mount the repositories at the "
				"same path for both",
		    repo->path);
		return REFD_NOREPO;
	}
	if (!rights_allow(w->cfg->rights, repo->path, &txn->peer, given) &&
	    !admission_is_own(txn)) {
		*why = repo_why("uid %u is not among those who may use '%s' "
				"(allowUser, allowGroup of its root)",
		    txn->peer.uid, repo->path);
		return REFD_DENIED;
	}
	if (!admission_is_own(txn))
		status = check_write(w, txn, repo, why);
	if (status != REFD_OK)
		return status;
	if (is_unsure(txn, repo)) {
		*why = repo_why("the configuration of '%s' includes a file "
				"that refd does not read (outside of the "
				"repository, or under a condition), which may "
				"set core.logAllRefUpdates or "
				"core.sharedRepository: set both behind it",
		    repo->path);
		return REFD_UNSUPPORTED;
	}
	if (admission_has_no_updates(txn) ||
	    txn->req.object_format == repo->object_format)
		return REFD_OK;
	*why = repo_why("the request is for object-format %s, and '%s' has "
			"object-format %s",
	    refd_object_format_name(txn->req.object_format), repo->path,
	    refd_object_format_name(repo->object_format));
	return REFD_UNSUPPORTED;
}

enum refd_status admit_first(struct admission_worker *w, const struct txn *txn,
    const struct repo *repo, char **why)
{
	struct rights_given given = { 0 };

	return check_use(w, txn, repo, &given, why);
}

/* TXN gets the repository of the turn, which is open already, with a new
 * reference, if its peer may write there. False: TXN is refused. */
static bool check_repo(struct admission_worker *w, struct txn *txn)
{
	struct rights_given given = { 0 };
	struct repo *repo = w->repo;
	enum refd_status status = w->status;
	char *why = NULL;

	if (txn->req.committer != NULL && !is_committer(txn->req.committer))
		return admit_refuse(txn, REFD_BADREQUEST,
		    repo_why("the committer '%s' is "
			     "not of the form \"Name <mail> seconds zone\"",
			txn->req.committer));
	if (repo != NULL) {
		repo_hold(w->cfg->repos, repo);
		txn->repo = repo;
		txn->repo_id = repo->id;
		txn->repo_mount = repo->fs->mount;
		status = check_use(w, txn, repo, &given, &why);
		txn->least = given.least;
		txn->limits = given.limits;
	} else {
		why = w->why;
		w->why = NULL;
	}
	if (status == REFD_OK)
		return true;
	admit_refuse(txn, status, why);
	hide_unseen(w, txn);
	return false;
}

/* ---- names ---- */

/* May refd write ASK's name, or delete it? The rules differ, because git
 * deletes some names that git does not create. */
static bool is_good_name(const struct refd_update *ask)
{
	if (ask->action == REFD_DELETE || ask->action == REFD_SYMREF_DELETE ||
	    (ask->action == REFD_UPDATE && refd_oid_is_null(&ask->new_oid)))
		return refd_refname_may_delete(ask->name);
	return refd_refname_may_write(ask->name);
}

static bool may_push(const struct refd_update *ask)
{
	return ask->action == REFD_DELETE ?
	    refd_refname_may_push_deletion(ask->name) :
	    refd_refname_may_push(ask->name);
}

static void refuse_name(struct txn_update *u)
{
	if (refd_refname_is_too_long(u->ask->name))
		txn_decide(u, REFD_BADNAME, "refname is too long");
	else if (refd_refname_is_reserved(u->ask->name))
		txn_decidef(u, REFD_BADNAME,
		    "refusing to update '%s', which git keeps something else "
		    "under",
		    u->ask->name);
	else
		txn_decide_detail(u, REFD_BADNAME, REFD_DETAIL_BAD_NAME,
		    u->ask->name, NULL, NULL);
}

static void check_name(struct txn *txn, struct txn_update *u)
{
	const struct refd_update *ask = u->ask;

	if (u->status != REFD_PENDING)
		return;
	switch (ask->action) {
	case REFD_UPDATE:
	case REFD_DELETE:
	case REFD_VERIFY:
		break;
	case REFD_CREATE:
		if (refd_oid_is_null(&ask->new_oid))
			txn_decide(u, REFD_BADREQUEST,
			    "a creation with a zero new value");
		break;
	case REFD_SYMREF_UPDATE:
	case REFD_SYMREF_CREATE:
		if (!refd_refname_may_write(ask->target))
			txn_decide_detail(u, REFD_BADNAME,
			    REFD_DETAIL_BAD_TARGET, ask->name, ask->target,
			    NULL);
		break;
	case REFD_SYMREF_DELETE:
	case REFD_SYMREF_VERIFY:
		break;
	}
	if (u->status != REFD_PENDING)
		return;
	if (txn->req.push && !may_push(ask))
		txn_decide_detail(u, REFD_BADNAME, REFD_DETAIL_FUNNY_NAME, NULL,
		    NULL, NULL);
	else if (!is_good_name(ask))
		refuse_name(u);
}

/* Only the programs of the server write reserved refs. The writes of a gate are
 * git's, so they are not checked. */
static void check_reserved(struct rights *rights, struct txn *txn,
    struct txn_update *u)
{
	const struct refd_update *ask = u->ask;
	bool is_master =
	    txn->peer.uid == 0 || txn->peer.uid == (uint32_t)geteuid();

	if (u->status != REFD_PENDING || (is_master && !txn->req.push) ||
	    txn->is_own || txn->req.gate != REFD_GATE_NONE ||
	    ask->action == REFD_VERIFY || ask->action == REFD_SYMREF_VERIFY)
		return;
	if (rights_is_reserved(rights, ask->name) ||
	    (ask->target != NULL && rights_is_reserved(rights, ask->target)))
		txn_decidef(u, REFD_DENIED,
		    "'%s' is reserved (limits.reserved)", ask->name);
}

struct named {
	struct name_key key;
	struct txn_update *u;
};

static int by_name(const void *va, const void *vb)
{
	const struct named *a = va, *b = vb;

	return name_key_compare(&a->key, &b->key);
}

static void sort(struct named *list, const struct txn *txn)
{
	const size_t nr = txn->nr_updates;
	struct txn_update *all = txn->updates;
	size_t i, common = SIZE_MAX;
	bool are_in_order = true;

	for (i = 1; i < nr; i++)
		common =
		    name_key_common(all[0].ask->name, all[i].ask->name, common);
	for (i = 0; i < nr; i++) {
		list[i].u = &all[i];
		name_key_set(&list[i].key, all[i].ask->name,
		    nr > 1 ? common : 0);
		are_in_order = are_in_order &&
		    (i == 0 || by_name(&list[i - 1], &list[i]) <= 0);
	}
	/* Pushes send their updates in order, and sorting very many of them
	 * again would take long. */
	if (!are_in_order)
		qsort(list, nr, sizeof(*list), by_name);
}

static void decide_duplicate(struct txn_update *u)
{
	if (u->status == REFD_PENDING)
		txn_decide_detail(u, REFD_DUPLICATE, REFD_DETAIL_DUPLICATE,
		    u->ask->name, NULL, NULL);
}

static void check_names(struct rights *rights, struct txn *txn)
{
	struct named *sorted = calloc(txn->nr_updates + 1, sizeof(*sorted));
	size_t i;

	for (i = 0; i < txn->nr_updates; i++) {
		check_name(txn, &txn->updates[i]);
		check_reserved(rights, txn, &txn->updates[i]);
		if (sorted == NULL && txn->updates[i].status == REFD_PENDING)
			txn_decide(&txn->updates[i], BUSY(MEMORY));
	}
	if (sorted == NULL)
		return;
	sort(sorted, txn);
	for (i = 1; i < txn->nr_updates; i++)
		if (by_name(&sorted[i - 1], &sorted[i]) == 0) {
			decide_duplicate(sorted[i - 1].u);
			decide_duplicate(sorted[i].u);
		}
	free(sorted);
}

/* ---- objects ---- */

/* A client that may not read an alternate without refd must not learn which
 * objects are there, so the transaction is refused. */
static bool may_read_stores(const struct sys *sys, const struct txn *txn)
{
	const struct object_stores *stores = odb_stores(txn->repo->odb);
	char path[REFD_PATH_MAX];
	struct sys_stat st;
	size_t i;

	if (txn->peer.uid == 0 || txn->peer.uid == (uint32_t)geteuid() ||
	    admission_is_own(txn))
		return true;
	for (i = 1; i < stores->nr; i++)
		if (SYS(sys, fstat, stores->at[i].fd, &st) < 0 ||
		    SYS(sys, fd_path, stores->at[i].fd, path, sizeof(path)) <
			0 ||
		    !repo_peer_has(&st, &txn->peer, 05) ||
		    !repo_peer_may_reach(sys, path, st.dev, st.ino, &txn->peer))
			return false;
	return true;
}

bool admit_objects_begin(const struct sys *sys, struct txn *txn, int err)
{
	bool is_gits;

	if (err == 0 && !may_read_stores(sys, txn))
		err = -EXDEV;
	is_gits = err == -EXDEV || err == -EINVAL || err == -ELOOP;
	if (err < 0)
		admit_refuse(txn, is_gits ? REFD_UNSUPPORTED : txn_io(err),
		    repo_why("'%s' %s", txn->repo->path,
			object_stores_why(err)));
	return err == 0;
}

int admit_has_object(void *arg, struct repo *repo, const struct refd_oid *oid)
{
	(void)arg;
	if (odb_refresh(repo->odb) < 0)
		return -EIO;
	switch (odb_type(repo->odb, oid)) {
	case OBJECT_COMMIT:
	case OBJECT_TREE:
	case OBJECT_BLOB:
	case OBJECT_TAG:
		return 1;
	case OBJECT_ABSENT:
		return 0;
	case OBJECT_ERROR:
		break;
	}
	return -EIO;
}

static bool names_branch(const struct txn_update *u)
{
	return strncmp(u->ask->name, "refs/heads/", 11) == 0 ||
	    strcmp(u->ask->name, "HEAD") == 0;
}

static void refuse_branch(struct txn_update *u, const char *hex)
{
	if (names_branch(u))
		txn_decide_detail(u, REFD_NOTCOMMIT, REFD_DETAIL_NO_COMMIT, hex,
		    u->ask->name, NULL);
}

/* A line of packed-refs holds the peeled value of a tag, and so does a record
 * of a reftable, so the tag is peeled here. If a tag can't be peeled, its ref
 * stays loose, or has no peeled value. */
static void peel(struct txn_update *u, struct admission_object *object)
{
	if (u->peeled != NULL ||
	    (u->txn->nr_updates < PACKED_LEAST &&
		u->txn->repo->format == REPO_FILES))
		return;
	if (object->peel == PEEL_NOT_TRIED)
		object->peel = odb_peel(u->txn->repo->odb, &object->oid,
				   &object->peeled) == 0 ?
		    PEELED :
		    PEEL_FAILED;
	if (object->peel != PEELED)
		return;
	u->peeled = malloc(sizeof(*u->peeled));
	if (u->peeled != NULL)
		*u->peeled = object->peeled;
}

/* Checks that the type of the object fits the name in the request. As in git
 * since 2.51, this check comes before all other checks. For a symbolic ref the
 * name of its target is not known yet. */
void admit_object(struct txn_update *u, enum refd_object_format format,
    struct admission_object *object)
{
	char hex[REFD_OID_MAX_HEX + 1], why[ODB_FAULT_TEXT];
	int r;

	if (object->type == OBJECT_COMMIT) {
		u->object = TXN_OBJECT_COMMIT;
		return;
	}
	refd_oid_hex(&u->ask->new_oid, format, hex);
	switch (object->type) {
	case OBJECT_COMMIT:
		break;
	case OBJECT_TAG:
		u->object = TXN_OBJECT_TAG;
		peel(u, object);
		refuse_branch(u, hex);
		break;
	case OBJECT_TREE:
	case OBJECT_BLOB:
		u->object = TXN_OBJECT_OTHER;
		refuse_branch(u, hex);
		break;
	case OBJECT_ABSENT:
		if (u->txn->repo->is_partial)
			txn_decidef(u, REFD_UNSUPPORTED,
			    "cannot update ref '%s': object %s is not in the "
			    "repository, a partial clone: git can fetch it",
			    u->ask->name, hex);
		else
			txn_decide_detail(u, REFD_NOOBJECT,
			    REFD_DETAIL_NO_OBJECT, u->ask->name, hex, NULL);
		break;
	case OBJECT_ERROR:
		r = odb_fault(u->txn->repo->odb, &u->ask->new_oid, why);
		txn_decidef(u, txn_io(r),
		    "cannot update ref '%s': can't read object %s%s",
		    u->ask->name, hex, why);
		break;
	}
}

struct copied {
	struct odb *odb;
	struct refd_oid missing;
};

/* For new_objects_each(). 1: missing. */
static int copied_exists(void *arg, const struct new_object *object)
{
	struct copied *copied = arg;
	const enum object_type type = odb_type(copied->odb, &object->oid);

	copied->missing = object->oid;
	if (type == OBJECT_ABSENT)
		return 1;
	return type == OBJECT_ERROR ? -EIO : 0;
}

void admit_copies_exist(struct txn *txn)
{
	struct copied copied = { .odb = txn->repo->odb };
	const uint8_t *bytes;
	size_t len;
	int r;

	bytes = txn_objects(txn, &len);
	if (bytes == NULL)
		return;
	r = new_objects_each(bytes, len, txn->repo->object_format,
	    copied_exists, &copied);
	if (r != 0)
		admit_lacks(txn, r == 1 ? &copied.missing : NULL);
}

void admit_lacks(struct txn *txn, const struct refd_oid *missing)
{
	char hex[REFD_OID_MAX_HEX + 1] = "";
	struct txn_update *u;

	if (missing != NULL)
		refd_oid_hex(missing, txn->repo->object_format, hex);
	for (u = txn->updates; u < txn->updates + txn->nr_updates; u++)
		if (admit_wants_object(u))
			txn_decidef(u,
			    missing != NULL ? REFD_NOOBJECT : REFD_IO,
			    missing != NULL ?
				"its new value needs object %s, which is not "
				"in the repository" :
				"can't read the objects of its new value",
			    hex);
}

bool admit_wants_object(const struct txn_update *u)
{
	return u->status == REFD_PENDING && !u->is_brief &&
	    u->txn->req.gate != REFD_GATE_PREPARED &&
	    (u->ask->action == REFD_UPDATE || u->ask->action == REFD_CREATE) &&
	    !refd_oid_is_null(&u->ask->new_oid);
}

/* ---- all checks but the objects ---- */

/* Deferred redo is older than TXN, so it comes first. */
static bool retry_deferred(const struct store_parts *cfg, struct txn *txn)
{
	int r = deferred_fs_check(cfg->deferred, txn->repo);

	if (r == 0 && deferred_blocks_writes(cfg->deferred, txn->repo->id))
		r = deferred_retry(cfg->deferred, txn->repo, txn);
	if (r < 0)
		admit_refuse(txn, txn_io(r),
		    repo_why("updates of '%s' await recovery: %s",
			txn->repo->path, leftover_locks_why(r)));
	return r == 0;
}

/* Decides the updates of a gate whose value was there before. Git runs the hook
 * for a transaction of packed-refs, too, with a line for each ref that is
 * packed. Such a transaction changes no ref, so no ref is locked or read for
 * these lines. */
static void admit_gate(struct txn *txn)
{
	struct txn_update *u;
	size_t i;

	for (i = 0; i < txn->nr_updates && txn->before != NULL; i++) {
		u = &txn->updates[i];
		if (u->status == REFD_PENDING && txn->before[i].is_known &&
		    u->ask->target == NULL &&
		    refd_oid_eq(&txn->before[i].oid, &u->ask->new_oid))
			txn_decide(u, REFD_ABORTED,
			    "git has not changed the ref");
	}
}

bool admit_begin(struct admission_worker *w, struct txn *txn)
{
	txn->refused = REFD_OK;
	txn->nr_checked = 0;
	/* Of the repository that was at the path before. */
	txn_drop_objects(txn);
	if (!check_repo(w, txn) || !retry_deferred(w->cfg, txn))
		return false;
	if (!REPLICA(w->cfg->replica, check, txn))
		return false;
	check_names(w->cfg->rights, txn);
	admit_gate(txn);
	return true;
}
