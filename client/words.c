#include "client/words.h"

#include <string.h>

#include "proto/refname.h"

const char *words_text(const struct refd_result *res)
{
	return res->text && *res->text ? res->text :
					 refd_status_text(res->status);
}

bool words_is_busy(enum refd_status status)
{
	return status == REFD_BUSY || status == REFD_DEADLINE;
}

/* The daemon's text may already begin as git's does. */
static void cannot_lock(const char *name, const char *text, struct text *out)
{
	if (has_prefix(text, "cannot "))
		text_adds(out, text);
	else
		text_addf(out, "cannot lock ref '%s': %s", name, text);
}

static bool is_absent(const struct refd_result *res)
{
	return res->status == REFD_MISSING ||
	    (res->status == REFD_STALE && res->has_found &&
		refd_oid_is_null(&res->found));
}

/* "is at A but expected B", as much of it as is known. */
static void add_stale(const struct refd_update *u,
    const struct refd_result *res, struct text *out)
{
	char found[REFD_OID_HEX + 1], expected[REFD_OID_HEX + 1];

	if (res->has_found && u->has_old)
		text_addf(out, "is at %s but expected %s",
		    refd_oid_hex(&res->found, found),
		    refd_oid_hex(&u->old_oid, expected));
	else
		text_adds(out, words_text(res));
}

/* The lock that stands in the way: the ref's own, unless the daemon names
 * another one (HEAD's, that of packed-refs). */
static void add_lock_path(const struct refd_update *u,
    const struct refd_result *res, const struct gitdir *gd, struct text *out)
{
	static const char begin[] = "Unable to create '";
	const char *named = res->text ? strstr(res->text, begin) : NULL;
	struct text name = { 0 };

	if (named) {
		named += strlen(begin);
		text_add(&name, named, strcspn(named, "'"));
		if (name.len > 5 && !strcmp(name.data + name.len - 5, ".lock"))
			name.data[name.len -= 5] = '\0';
	} else {
		text_adds(&name, u->name);
	}
	if (gd && name.data[0] != '/')
		text_addf(out, "%s/",
		    refd_refname_is_per_worktree(name.data) ? gd->path :
							      gd->common);
	text_addf(out, "%s.lock", name.data);
	text_done(&name);
}

static void add_locked(const struct refd_update *u,
    const struct refd_result *res, const struct gitdir *gd, struct text *out)
{
	text_adds(out, "Unable to create '");
	add_lock_path(u, res, gd, out);
	text_adds(out,
	    "': File exists.\n\nAnother git process seems to be running in this "
	    "repository, or the lock file may be stale:\nif no git runs here, "
	    "remove it and try again.");
}

static void add_duplicate(const char *name, const struct refd_result *res,
    struct text *out)
{
	if (res->text && *res->text)
		text_adds(out, res->text);
	else
		text_addf(out, "multiple updates for ref '%s' not allowed",
		    name);
}

void words_detail(const struct refd_update *u, const struct refd_result *res,
    const struct gitdir *gd, struct text *out)
{
	char hex[REFD_OID_HEX + 1];

	refd_oid_hex(&u->new_oid, hex);
	switch (res->status) {
	case REFD_STALE:
	case REFD_MISSING:
		text_addf(out, "cannot lock ref '%s': ", u->name);
		if (is_absent(res))
			text_addf(out, "unable to resolve reference '%s'",
			    u->name);
		else
			add_stale(u, res, out);
		break;
	case REFD_EXISTS:
		text_addf(out, "cannot lock ref '%s': reference already exists",
		    u->name);
		break;
	case REFD_LOCKED:
		text_addf(out, "cannot lock ref '%s': ", u->name);
		add_locked(u, res, gd, out);
		break;
	case REFD_CONFLICT:
		cannot_lock(u->name, words_text(res), out);
		break;
	case REFD_BADNAME:
		text_addf(out, "refusing to update ref with bad name '%s'",
		    u->name);
		break;
	case REFD_NOOBJECT:
		text_addf(out,
		    "trying to write ref '%s' with nonexistent "
		    "object %s",
		    u->name, hex);
		break;
	case REFD_NOTCOMMIT:
		text_addf(out,
		    "trying to write non-commit object %s to "
		    "branch '%s'",
		    hex, u->name);
		break;
	case REFD_BROKEN:
		text_addf(out,
		    "cannot lock ref '%s': unable to resolve "
		    "reference '%s': reference broken",
		    u->name, u->name);
		break;
	case REFD_DUPLICATE:
		add_duplicate(u->name, res, out);
		break;
	case REFD_NOTSYMREF:
		cannot_lock(u->name, words_text(res), out);
		break;
	case REFD_UNSUPPORTED:
		text_addf(out, "cannot update ref '%s': not supported by refd",
		    u->name);
		if (res->text && *res->text)
			text_addf(out, ": %s", res->text);
		break;
	case REFD_OK:
	case REFD_DENIED:
	case REFD_HOOK_DECLINED:
	case REFD_NOSPACE:
	case REFD_IO:
	case REFD_BUSY:
	case REFD_DEADLINE:
	case REFD_ABORTED:
	case REFD_UNKNOWN:
	case REFD_NOREPO:
	case REFD_BADREQUEST:
	case REFD_LIMIT:
	case REFD_PENDING:
		text_addf(out, "cannot update ref '%s': %s", u->name,
		    words_text(res));
		break;
	}
}

const char *words_reason(const struct refd_result *res)
{
	switch (res->status) {
	case REFD_STALE:
		return is_absent(res) ? "reference does not exist" :
					"incorrect old value provided";
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
	case REFD_HOOK_DECLINED:
		return "hook declined";
	case REFD_NOTSYMREF:
		return "expected symref but found regular ref";
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
	return refd_status_text(res->status);
}

/* receive-pack's own words, where it has any for this. */
static const char *push_reason(const struct refd_result *res, bool atomic)
{
	switch (res->status) {
	case REFD_BADNAME:
		return "funny refname";
	case REFD_NOOBJECT:
		return "bad pack";
	case REFD_ABORTED:
		return atomic ? "atomic transaction failed" :
				"failed to update ref";
	case REFD_STALE:
	case REFD_MISSING:
	case REFD_EXISTS:
	case REFD_CONFLICT:
	case REFD_DUPLICATE:
	case REFD_NOTCOMMIT:
	case REFD_HOOK_DECLINED:
	case REFD_NOTSYMREF:
		return words_reason(res);
	case REFD_OK:
	case REFD_LOCKED:
	case REFD_BROKEN:
	case REFD_DENIED:
	case REFD_NOSPACE:
	case REFD_IO:
	case REFD_BUSY:
	case REFD_DEADLINE:
	case REFD_UNSUPPORTED:
	case REFD_UNKNOWN:
	case REFD_NOREPO:
	case REFD_BADREQUEST:
	case REFD_LIMIT:
	case REFD_PENDING:
		break;
	}
	return "failed to update ref";
}

void words_push(const struct refd_update *u, const struct refd_result *res,
    bool atomic, struct text *out)
{
	const char *reason = push_reason(res, atomic);
	const char *text = words_text(res);

	text_adds(out, reason);
	if (res->status == REFD_STALE && !is_absent(res)) {
		text_adds(out, ": ");
		add_stale(u, res, out);
	} else if (res->status != REFD_BADNAME && strcmp(text, reason) &&
	    (res->text || !strcmp(reason, "failed to update ref"))) {
		text_addf(out, ": %s", text);
	}
}
