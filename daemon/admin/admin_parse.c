#include <stdio.h>
#include <stdlib.h>

#include "daemon/admin/admin.h"

#define HELP_MAX   2048
#define EXIT_USAGE 129

bool admin_parse(const struct command *c, void *values, int *argc, char ***argv,
    int *status)
{
	char why[COMMAND_WHY_MAX], help[HELP_MAX];
	enum command_result result = command_parse(c, values, argc, argv, why);

	if (result == COMMAND_OK)
		return true;
	*status = result == COMMAND_HELPS ? 0 : EXIT_USAGE;
	if (result != COMMAND_HELPS)
		fprintf(stderr, "refd: %s\n", why);
	command_help(c, NULL, help, sizeof(help));
	if (result != COMMAND_BAD_VALUE)
		fputs(help, result == COMMAND_HELPS ? stdout : stderr);
	return false;
}

const char *admin_state(void)
{
	const char *state = getenv("REFD_STATE");

	return state != NULL ? state : "/var/lib/refd";
}
