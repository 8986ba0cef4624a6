/* The checks before the first change. */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/enable/enable.h"
#include "client/enable/hook_link.h"
#include "client/git/owner.h"
#include "client/request/unserved.h"

bool enable_check_format(const struct site *site, const struct gitconfig *own)
{
	const char *why = unserved_format(own);

	if (why)
		say_error("%s: refd does not serve it: %s; git does",
		    site->name, why);
	return !why;
}

bool enable_is_true(const struct gitconfig *config, const char *key)
{
	static const char *const no[] = { "", "false", "no", "off", "0" };
	const char *value = gitconfig_get(config, key);
	size_t i;

	for (i = 0; value && i < sizeof(no) / sizeof(no[0]); i++)
		if (!strcasecmp(value, no[i]))
			return false;
	return value != NULL;
}

bool enable_check_pushes(const struct site *site, const struct gitconfig *all)
{
	if (!enable_is_true(all, "receive.shallowupdate"))
		return true;
	say_error("%s: receive.shallowUpdate is true, and git does not check "
		  "shallow pushes that a proc-receive hook takes; unset it",
	    site->name);
	return false;
}

bool enable_is_above(const struct gitconfig *all, const char *hooks)
{
	return hooks && hook_link_is_refd(hooks) &&
	    gitconfig_has_outside(all, ENABLE_PATTERNS, enable_refs[0]) &&
	    gitconfig_has_outside(all, ENABLE_PATTERNS, enable_refs[1]);
}

/* ---- rights ---- */

static bool check_owner(const struct site *site)
{
	const struct passwd *pw;
	struct stat st;

	if (stat(site->name, &st) < 0) {
		say_error("can't look at '%s': %s", site->name,
		    strerror(errno));
		return false;
	}
	if (owner_is_here(&st))
		return true;
	pw = getpwuid(st.st_uid);
	if (pw)
		say_error("%s belongs to %s: enable it as that user or as root",
		    site->name, pw->pw_name);
	else
		say_error("%s belongs to user %u: enable it as that user or "
			  "as root",
		    site->name, (unsigned)st.st_uid);
	return false;
}

bool enable_check_writable(const struct site *site, const char *dir)
{
	if (!check_owner(site))
		return false;
	if (faccessat(AT_FDCWD, dir, W_OK | X_OK, AT_EACCESS) == 0 ||
	    errno == ENOENT)
		return true;
	say_error("%s: nothing can be made there: %s; make it writable for "
		  "its owner",
	    dir, strerror(errno));
	return false;
}
