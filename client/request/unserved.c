#include "client/request/unserved.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/request/connect.h"
#include "proto/format.h"
#include "proto/refname.h"

static bool is_other_directory(const char *env, const struct gitdir *gd)
{
	const char *given = getenv(env);
	char *own, *a, *b;
	bool other;

	if (!given)
		return false;
	own = xasprintf("%s/objects", gd->common);
	a = realpath(given, NULL);
	b = realpath(own, NULL);
	other = !a || !b || strcmp(a, b);
	free(a);
	free(b);
	free(own);
	return other;
}

/* Git 2.54 and later open the refs that the variable names, whatever the
 * repository's configuration says, so refd would write other refs than git. The
 * second name is the newer one. */
static const char *other_store(const struct gitconfig *config)
{
	const char *own = gitconfig_is_reftable(config) ? "reftable" : "files";
	const char *value = getenv("GIT_REFERENCE_BACKEND");

	if (value && strcmp(value, own))
		return "GIT_REFERENCE_BACKEND names another ref store";
	value = getenv("GIT_REF_STORAGE_FORMAT");
	if (value && strcmp(value, own))
		return "GIT_REF_STORAGE_FORMAT names another ref store";
	return NULL;
}

const char *unserved_format(const struct gitconfig *config)
{
	const char *set = gitconfig_get(config, "core.repositoryformatversion");
	static char reason[FORMAT_WHY_MAX];
	const char *key, *value, *why;
	uint64_t version = 0;
	size_t at = 0;

	if (set && !cli_number(set, INT_MAX, &version))
		version = INT_MAX;
	why = format_version_unserved((int)version);
	while (!why && gitconfig_next(config, &at, &key, &value))
		if (has_prefix(key, "extensions.") &&
		    !format_serves((int)version, key + strlen("extensions."),
			value, reason))
			why = reason;
	return why;
}

const char *unserved_reason(const struct gitdir *gd,
    const struct gitconfig *config)
{
	const char *alternates = getenv("GIT_ALTERNATE_OBJECT_DIRECTORIES");
	const char *why = other_store(config);

	if (!why)
		why = unserved_format(config);
	if (!why &&
	    (is_other_directory("GIT_OBJECT_DIRECTORY", gd) ||
		(alternates && *alternates)))
		why = "refd does not see the object directories of the "
		      "environment";
	return why;
}

/* A name may have many thousand bytes. */
#define NAME_SHOWN 100

const char *unserved_update(const struct refd_update *u)
{
	static char reason[NAME_SHOWN + 64];
	const char *const names[] = { u->name, u->target, u->old_target };
	const char *name = NULL;
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]) && !name; i++)
		if (names[i] && refd_refname_is_too_long(names[i]))
			name = names[i];
	if (!name)
		return NULL;
	snprintf(reason, sizeof(reason),
	    "refname is too long for refd: '%.*s%s'", NAME_SHOWN, name,
	    strlen(name) > NAME_SHOWN ? "..." : "");
	return reason;
}

static bool is_unsupported(enum refd_status status)
{
	return status == REFD_UNSUPPORTED;
}

static bool is_closed(enum refd_status status)
{
	return status == REFD_NOREPO || status == REFD_DENIED;
}

/* The text of a status for which IS is true, in an answer that changed nothing;
 * NULL: there is none. */
static const char *text_of(const struct refd_answer *ans,
    bool (*is)(enum refd_status))
{
	enum refd_status status = REFD_OK;
	const char *text = NULL;
	size_t i;

	if (ans->kind == REFD_ANSWER_REFUSED) {
		status = ans->status;
		text = ans->text;
	}
	if (ans->kind == REFD_ANSWER_RESULTS && ans->outcome == REFD_REJECTED)
		for (i = 0; i < ans->nr_results && !is(status); i++) {
			status = ans->results[i].status;
			text = ans->results[i].text;
		}
	if (!is(status))
		return NULL;
	return text && *text ? text : refd_status_text(status);
}

const char *unserved_answer(const struct refd_answer *ans)
{
	return text_of(ans, is_unsupported);
}

const char *unserved_push(const struct refd_answer *ans,
    const struct gitdir *gd, const struct gitconfig *config)
{
	const char *why = unserved_answer(ans);

	if (why || connect_fallback(config, FALLBACK_GIT) != FALLBACK_GIT ||
	    !connect_is_untouched(gd))
		return why;
	return text_of(ans, is_closed);
}
