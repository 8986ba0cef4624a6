#include "client/request/git_messages.h"

#include <stdlib.h>
#include <string.h>

#include "proto/detail.h"
#include "proto/lib/lock_pid.h"
#include "proto/refname.h"

/* git adds one of these texts when a lock file exists. */
#define RUNNING_2_55                                                           \
	"Another git process seems to be running in this repository, or the "  \
	"lock file may be stale"
#define HELD_2_55                                                              \
	"Lock may be held by process %ld; if no git process is running, the "  \
	"lock file may be stale (PIDs can be reused)"
#define ENDED_2_55                                                             \
	"Lock was held by process %ld, which is no longer running; the lock "  \
	"file appears to be stale"
#define RUNNING_2_39                                                           \
	"\n\nAnother git process seems to be running in this repository, "     \
	"e.g.\nan editor opened by 'git commit'. Please make sure all "        \
	"processes\nare terminated then try again. If it still fails, a git "  \
	"process\nmay have crashed in this repository earlier:\nremove the "   \
	"file manually to continue."

/* %1 to %3 are the arguments of the detail: see "Details" in
 * proto/PROTOCOL.md. %h is the holder of the lock named before. SAID has a
 * different sentence for git 2.39. */
#define SAYS(symbol, says) [REFD_DETAIL_##symbol] = { .git_2_55 = (says) }
#define SAID(symbol, says, said)                                               \
	[REFD_DETAIL_##symbol] = { .git_2_55 = (says), .git_2_39 = (said) }
#define NAMES_FILE(symbol, nr, says)                                           \
	[REFD_DETAIL_##symbol] = { .git_2_55 = (says), .path = (nr) }
#define CANT_LOCK "cannot lock ref '%1': "

static const struct sentence {
	const char *git_2_55, *git_2_39;
	int path; /* which argument is the path of a file; 0: none */
} sentences[] = {
	SAYS(DIFFERS, CANT_LOCK "is at %2 but expected %3"),
	SAYS(SYMREF_DIFFERS,
	    "verifying symref target: '%1': is at %2 but expected %3"),
	SAYS(EXISTS, CANT_LOCK "reference already exists"),
	SAYS(DANGLING, CANT_LOCK "dangling symref already exists"),
	SAYS(UNRESOLVED, CANT_LOCK "unable to resolve reference '%2'"),
	SAYS(ABSENT, CANT_LOCK "reference is missing but expected %2"),
	SAYS(NOT_SYMREF,
	    CANT_LOCK "expected symref with target '%2': but is a regular ref"),
	SAYS(BROKEN,
	    CANT_LOCK "unable to resolve reference '%2': reference broken"),
	SAYS(UNREADABLE, CANT_LOCK "error reading reference"),
	SAID(LOCKED, CANT_LOCK "Unable to create '%2': File exists.\n\n%h",
	    CANT_LOCK "Unable to create '%2': File exists." RUNNING_2_39),
	SAID(PACKED_LOCKED, "Unable to create '%1': File exists.\n\n%h",
	    "Unable to create '%1': File exists." RUNNING_2_39),
	/* git 2.39 checked the names of each ref under its lock. */
	SAID(NAME_TAKEN, "'%2' exists; cannot create '%3'",
	    CANT_LOCK "'%2' exists; cannot create '%3'"),
	SAYS(NAME_TAKEN_EARLY, CANT_LOCK "'%2' exists; cannot create '%3'"),
	SAID(NAMES_CLASH, "cannot process '%2' and '%3' at the same time",
	    CANT_LOCK "cannot process '%2' and '%3' at the same time"),
	/* git 2.39 named both refs in the order of the input. */
	SAID(NAMES_CLASH_EARLY,
	    CANT_LOCK "cannot process '%2' and '%3' at the same time",
	    "cannot lock ref '%3': cannot process '%3' and '%2' at the same "
	    "time"),
	NAMES_FILE(DIRECTORY, 2,
	    CANT_LOCK
	    "there is a non-empty directory '%2' blocking reference '%3'"),
	NAMES_FILE(NOT_DIRECTORY, 2,
	    CANT_LOCK
	    "unable to create lock file %2; non-directory in the way"),
	SAYS(LOGS_BELOW,
	    "cannot update the ref '%1': there are still logs under '%2'"),
	SAYS(LOG_BLOCKED,
	    "cannot update the ref '%1': unable to append to '%2': Not a "
	    "directory"),
	SAYS(DUPLICATE, "multiple updates for ref '%1' not allowed"),
	SAYS(DUPLICATE_HEAD,
	    "multiple updates for 'HEAD' (including one via its referent "
	    "'%1') are not allowed"),
	SAYS(DUPLICATE_SYMREF,
	    "multiple updates for '%1' (including one via symref '%2') are "
	    "not allowed"),
	/* git 2.39 checked objects under the lock of the ref. */
	SAID(NO_OBJECT, "trying to write ref '%1' with nonexistent object %2",
	    "cannot update ref '%1': trying to write ref '%1' with "
	    "nonexistent object %2"),
	SAID(NO_COMMIT, "trying to write non-commit object %1 to branch '%2'",
	    "cannot update ref '%2': trying to write non-commit object %1 to "
	    "branch '%2'"),
	SAYS(BAD_NAME, "refusing to update ref with bad name '%1'"),
	SAYS(BAD_TARGET, "refusing to point ref '%1' to bad name '%2'"),
	SAYS(FUNNY_NAME, "funny refname"),
};

_Static_assert(sizeof(sentences) / sizeof(sentences[0]) == REFD_DETAIL_UNKNOWN,
    "a detail without a sentence");

static void add_path(const struct refd_detail_arg *path,
    const struct git_messages_place *place, struct text *out)
{
	size_t len = place ? strlen(place->from) : 0;

	if (!place || path->len <= len || path->data[len] != '/' ||
	    strncmp(path->data, place->from, len)) {
		text_add(out, path->data, path->len);
		return;
	}
	text_adds(out, place->to);
	text_add(out, path->data + len, path->len - len);
}

/* As unable_to_lock_message() of git's lockfile.c. */
static void add_holder(const struct refd_detail_arg *lock, struct text *out)
{
	char *path = xasprintf("%.*s", (int)lock->len, lock->data);
	const struct lock_holder h = lock_pid_named(lock_pid_open(path));

	if (h.verdict == HOLDER_RUNS)
		text_addf(out, HELD_2_55, h.pid);
	else if (h.verdict == HOLDER_ENDED)
		text_addf(out, ENDED_2_55, h.pid);
	else
		text_adds(out, RUNNING_2_55);
	free(path);
}

static void add_sentence(const struct refd_detail *detail,
    enum git_messages_version version, const struct git_messages_place *place,
    struct text *out)
{
	const struct sentence *sentence = &sentences[detail->kind];
	const char *s = sentence->git_2_55;
	const struct refd_detail_arg *arg = detail->args;

	if (version == GIT_2_39 && sentence->git_2_39)
		s = sentence->git_2_39;
	for (; *s; s++) {
		if (*s != '%') {
			text_add(out, s, 1);
			continue;
		}
		if (*++s == 'h') {
			add_holder(arg, out);
			continue;
		}
		arg = &detail->args[*s - '1'];
		if (*s - '0' == sentence->path)
			add_path(arg, place, out);
		else
			text_add(out, arg->data, arg->len);
	}
}

/* Git locks all refs of a list of reftables at once, so git's message names
 * none. */
static bool is_lock_of_reftable(const struct refd_detail *detail)
{
	static const char list[] = "/reftable/tables.list.lock";
	const struct refd_detail_arg *lock = &detail->args[1];
	size_t len = sizeof(list) - 1;

	return detail->kind == REFD_DETAIL_LOCKED && lock->len > len &&
	    !memcmp(lock->data + lock->len - len, list, len);
}

/* Appends the sentence for TEXT. U may be NULL. False: TEXT is empty or of an
 * unknown kind, so the caller uses the status instead. */
static bool add_text(const struct refd_update *u, const char *text,
    enum git_messages_version version, const struct git_messages_place *place,
    struct text *out)
{
	struct refd_detail detail;

	if (!text || !*text)
		return false;
	if (!refd_detail_read(text, &detail)) {
		text_adds(out, text);
		return true;
	}
	if (detail.kind == REFD_DETAIL_UNKNOWN)
		return false;
	if (is_lock_of_reftable(&detail)) {
		text_adds(out, "cannot lock references");
		return true;
	}
	/* Where HEAD is locked for its log, 2.39 names HEAD, and 2.55 names
	 * the ref of the update. */
	if (u && version == GIT_2_55 && detail.kind == REFD_DETAIL_LOCKED)
		detail.args[0] =
		    (struct refd_detail_arg){ u->name, strlen(u->name) };
	add_sentence(&detail, version, place, out);
	return true;
}

void git_messages_text(enum refd_status status, const char *text,
    struct text *out)
{
	if (!add_text(NULL, text, GIT_2_55, NULL, out))
		text_adds(out, refd_status_text(status));
}

void git_messages_detail(const struct refd_update *u,
    const struct refd_result *res, enum git_messages_version version,
    const struct git_messages_place *place, struct text *out)
{
	if (!add_text(u, res->text, version, place, out))
		text_addf(out, "cannot update ref '%s': %s", u->name,
		    refd_status_text(res->status));
}

bool git_messages_is_busy(enum refd_status status)
{
	return status == REFD_BUSY || status == REFD_DEADLINE;
}

bool git_messages_is_bad_value(enum refd_status status)
{
	return status == REFD_NOOBJECT || status == REFD_NOTCOMMIT;
}

bool git_messages_is_said_last(const struct refd_result *res)
{
	struct refd_detail detail;

	return refd_detail_read(res->text, &detail) &&
	    (detail.kind == REFD_DETAIL_NAME_TAKEN ||
		detail.kind == REFD_DETAIL_NAMES_CLASH);
}

bool git_messages_parse(const char *text, enum git_messages_version *version)
{
	if (strcmp(text, "2.39") != 0 && strcmp(text, "2.55") != 0)
		return false;
	*version = !strcmp(text, "2.39") ? GIT_2_39 : GIT_2_55;
	return true;
}

/* ---- names ---- */

static bool is_pseudoref(const char *name)
{
	return !strcmp(name, "FETCH_HEAD") || !strcmp(name, "MERGE_HEAD");
}

/* A name that is too long for refd is left to git, so the name is good here. */
static bool is_good_name(const struct refd_update *u)
{
	if (refd_oid_is_null(&u->new_oid))
		return refd_refname_may_delete(u->name) ||
		    refd_refname_is_too_long(u->name);
	return refd_refname_format_ok(u->name);
}

bool git_messages_take_name(const struct refd_update *u, struct text *out)
{
	if (is_pseudoref(u->name))
		text_addf(out, "refusing to update pseudoref '%s'", u->name);
	else if (!is_good_name(u))
		text_addf(out, "refusing to update ref with bad name '%s'",
		    u->name);
	else
		return true;
	return false;
}

/* ---- reasons ---- */

/* NULL: git has no text for STATUS. */
static const char *git_reason(enum refd_status status)
{
	switch (status) {
	case REFD_STALE:
		return "incorrect old value provided";
	case REFD_MISSING:
		return "reference does not exist";
	case REFD_EXISTS:
	case REFD_LOCKED:
		return "reference already exists";
	case REFD_CONFLICT:
	case REFD_DUPLICATE:
		return "refname conflict";
	case REFD_NOOBJECT:
	case REFD_NOTCOMMIT:
		return "invalid new value provided";
	case REFD_NOTSYMREF:
		return "expected symref but found regular ref";
	case REFD_HOOK_DECLINED:
		return "hook declined";
	case REFD_OK:
	case REFD_BADNAME:
	case REFD_BROKEN:
	case REFD_DENIED:
	case REFD_NOSPACE:
	case REFD_IO:
	case REFD_BUSY:
	case REFD_DEADLINE:
	case REFD_ABORTED:
	case REFD_UNSUPPORTED:
	case REFD_UNKNOWN:
	case REFD_NOREPO:
	case REFD_BADREQUEST:
	case REFD_LIMIT:
	case REFD_PENDING:
		break;
	}
	return NULL;
}

const char *git_messages_reason(enum refd_status status)
{
	const char *reason = git_reason(status);

	return reason != NULL ? reason : refd_status_text(status);
}

const char *git_messages_push(enum refd_status status)
{
	const char *reason = git_reason(status);

	if (status == REFD_NOOBJECT)
		return "bad pack";
	/* git says "reference already exists" of a lock file, but people would
	 * believe that of the ref. */
	if (status == REFD_LOCKED)
		reason = NULL;
	return reason != NULL ? reason : "failed to update ref";
}
