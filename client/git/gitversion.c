#include "client/git/gitversion.h"

#include <stdio.h>

#include "client/base/child.h"

bool gitversion_before(unsigned major, unsigned minor)
{
	const char *argv[] = { "git", "version", NULL };
	unsigned its_major, its_minor;
	struct text said = { 0 };
	bool is_before;

	is_before = child_capture(argv, &said) == 0 &&
	    sscanf(said.data, "git version %u.%u", &its_major, &its_minor) ==
		2 &&
	    (its_major < major || (its_major == major && its_minor < minor));
	text_done(&said);
	return is_before;
}
