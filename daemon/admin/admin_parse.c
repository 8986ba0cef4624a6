#include <stdio.h>
#include <stdlib.h>

#include "daemon/admin/admin.h"

#define EXIT_USAGE 129

bool admin_parse(const struct command *c, void *values, int *argc, char ***argv,
    int *status)
{
	char why[COMMAND_WHY_MAX], help[COMMAND_HELP_MAX];
	enum command_result result = command_parse(c, values, argc, argv, why);

	if (result == COMMAND_OK)
		return true;
	if (result == COMMAND_HELPS) {
		command_help(c, NULL, help, sizeof(help));
		fputs(help, stdout);
		*status = 0;
		return false;
	}
	command_usage(c, help, sizeof(help));
	fprintf(stderr, "refd: %s\n%s", why,
	    result == COMMAND_WRONG ? help : "");
	*status = EXIT_USAGE;
	return false;
}

const char *admin_state(void)
{
	const char *state = getenv("REFD_STATE");

	return state != NULL ? state : "/var/lib/refd";
}
