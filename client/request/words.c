#include "client/request/words.h"

#include <string.h>

#include "proto/refname.h"

static bool has_text(const struct refd_result *res)
{
	return res->text && *res->text;
}

const char *words_text(const struct refd_result *res)
{
	return has_text(res) ? res->text : refd_status_text(res->status);
}

bool words_is_busy(enum refd_status status)
{
	return status == REFD_BUSY || status == REFD_DEADLINE;
}

bool words_is_bad_value(enum refd_status status)
{
	return status == REFD_NOOBJECT || status == REFD_NOTCOMMIT;
}

bool words_is_said_last(const struct refd_result *res)
{
	return res->status == REFD_CONFLICT && has_text(res) &&
	    (*res->text == '\'' || has_prefix(res->text, "cannot process '"));
}

bool words_parse(const char *version, enum git_words *words)
{
	static const struct {
		const char *version;
		enum git_words words;
	} known[] = { { "2.55", GIT_2_55 }, { "2.39", GIT_2_39 } };
	size_t i;

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (!strcmp(version, known[i].version)) {
			*words = known[i].words;
			return true;
		}
	}
	return false;
}

/* ---- names ---- */

static bool is_pseudoref(const char *name)
{
	return !strcmp(name, "FETCH_HEAD") || !strcmp(name, "MERGE_HEAD");
}

/* What is too long is the daemon's to refuse. */
static bool is_good_name(const struct refd_update *u)
{
	bool too_long = false;

	if (refd_oid_is_null(&u->new_oid))
		return refd_refname_may_delete(u->name, &too_long) || too_long;
	return refd_refname_format_ok(u->name);
}

bool words_take_name(const struct refd_update *u, struct text *out)
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

/* ---- 2.39 ---- */

/* "cannot lock ref 'a': cannot process 'a' and 'a/b' ...": there 2.39 names
 * the other one first, since it came first. */
static bool add_swapped(const char *text, struct text *out)
{
	static const char begin[] = "cannot process '";
	static const char and[] = "' and '";
	static const char end[] = "' at the same time";
	const char *first, *second, *behind;

	first = strstr(text, begin);
	if (!first || !has_prefix(text, "cannot lock ref '"))
		return false;
	first += strlen(begin);
	second = strstr(first, and);
	behind = second ? strstr(second, end) : NULL;
	if (!behind)
		return false;
	text_addf(out, "cannot lock ref '%.*s': %s%.*s%s%.*s%s",
	    (int)(behind - second) - (int)strlen(and), second + strlen(and),
	    begin, (int)(behind - second) - (int)strlen(and),
	    second + strlen(and), and, (int)(second - first), first, end);
	return true;
}

/* What is in the way of a name was not yet looked for all at once, so it was
 * in the way of a lock. */
static void add_conflict_239(const char *name, const struct refd_result *res,
    struct text *out)
{
	if (add_swapped(res->text, out))
		return;
	if (words_is_said_last(res))
		text_addf(out, "cannot lock ref '%s': ", name);
	text_adds(out, res->text);
}

/* Objects were looked at under the lock, of the ref that the text names. */
static void add_object_239(const char *text, struct text *out)
{
	const char *name = strchr(text, '\'');
	const char *end = name ? strchr(name + 1, '\'') : NULL;

	if (end && has_prefix(text, "trying to write "))
		text_addf(out,
		    "cannot update ref %.*s: ", (int)(end + 1 - name), name);
	text_adds(out, text);
}

/* Much was said of a lock that stands in the way. */
static void add_locked_239(const char *text, struct text *out)
{
	const char *advice = strstr(text, "\n\nAnother git process");

	if (!advice) {
		text_adds(out, text);
		return;
	}
	text_add(out, text, (size_t)(advice - text));
	text_adds(out,
	    "\n\nAnother git process seems to be running in this repository, "
	    "e.g.\nan editor opened by 'git commit'. Please make sure all "
	    "processes\nare terminated then try again. If it still fails, a "
	    "git process\nmay have crashed in this repository earlier:\n"
	    "remove the file manually to continue.");
}

static void add_239(const struct refd_update *u, const struct refd_result *res,
    struct text *out)
{
	if (words_is_bad_value(res->status))
		add_object_239(res->text, out);
	else if (res->status == REFD_CONFLICT)
		add_conflict_239(u->name, res, out);
	else if (res->status == REFD_LOCKED)
		add_locked_239(res->text, out);
	else
		text_adds(out, res->text);
}

/* ---- all of it ---- */

void words_detail(const struct refd_update *u, const struct refd_result *res,
    enum git_words words, struct text *out)
{
	if (!has_text(res)) {
		text_addf(out, "cannot update ref '%s': %s", u->name,
		    refd_status_text(res->status));
		return;
	}
	switch (words) {
	case GIT_2_55:
		text_adds(out, res->text);
		break;
	case GIT_2_39:
		add_239(u, res, out);
		break;
	}
}

/* git's own words, where it has some. */
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

const char *words_reason(enum refd_status status)
{
	const char *reason = git_reason(status);

	return reason != NULL ? reason : refd_status_text(status);
}

const char *words_push(enum refd_status status)
{
	const char *reason = git_reason(status);

	if (status == REFD_NOOBJECT)
		return "bad pack";
	return reason != NULL ? reason : "failed to update ref";
}
