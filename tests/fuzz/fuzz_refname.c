/*
 * Any bytes as a refname. The checks must agree with each other, and with the
 * numbered rules of git-check-ref-format(1), which are tested separately here.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proto/limits.h"
#include "proto/refname.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool ok)
{
	if (!ok)
		abort();
}

static bool ends_with(const char *s, const char *end)
{
	size_t len = strlen(s), end_len = strlen(end);

	return len >= end_len && strcmp(s + len - end_len, end) == 0;
}

/* Rules 1 and 3 to 10 of the manual; --allow-onelevel waives rule 2. */
static bool manual_says(const char *name)
{
	const char *s;

	/* 1: no component begins with a dot or ends with .lock */
	if (name[0] == '.' || strstr(name, "/.") != NULL ||
	    strstr(name, ".lock/") != NULL || ends_with(name, ".lock"))
		return false;
	/* 3, 4, 5, 10: bytes, and pairs of bytes */
	for (s = name; *s != '\0'; s++) {
		if ((unsigned char)*s < 040 || *s == 0177)
			return false;
	}
	if (strstr(name, "..") != NULL || strpbrk(name, " ~^:?*[\\") != NULL)
		return false;
	/* 6: slashes */
	if (name[0] == '/' || ends_with(name, "/") ||
	    strstr(name, "//") != NULL)
		return false;
	/* 7, 8, 9: dots and at signs */
	return !ends_with(name, ".") && strstr(name, "@{") == NULL &&
	    strcmp(name, "@") != 0 && name[0] != '\0';
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	bool is_format_ok, is_too_long, may_write;
	const char *id, *bare;
	char *name = malloc(size + 1);
	size_t id_len;

	if (name == NULL)
		return 0;
	memcpy(name, data, size);
	name[size] = '\0';
	is_format_ok = refd_refname_format_ok(name);
	expect(is_format_ok == manual_says(name));
	may_write = refd_refname_may_write(name);
	is_too_long = refd_refname_is_too_long(name);
	expect(!may_write || (is_format_ok && !is_too_long));
	refd_refname_place(name, &id, &id_len, &bare);
	expect(!may_write || strncmp(bare, "refs/", 5) == 0 ||
	    (strchr(bare, '/') == NULL && !refd_refname_is_reserved(bare)));
	expect(strlen(name) <= REFD_REFNAME_MAX || is_too_long);
	/* Every name below refs/ that may be written may also be deleted. */
	if (may_write && strncmp(name, "refs/", 5) == 0)
		expect(refd_refname_may_delete(name));
	expect(!is_too_long || !refd_refname_may_delete(name));
	if (refd_refname_may_push(name))
		expect(is_format_ok && (may_write || is_too_long));
	refd_refname_is_per_worktree(name);
	free(name);
	return 0;
}
