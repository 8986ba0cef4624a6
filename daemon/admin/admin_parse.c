#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "daemon/admin/admin.h"
#include "proto/lib/print.h"

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
		print_lines(stdout, "%s", help);
		*status = 0;
		return false;
	}
	admin_say("%s", why);
	if (result == COMMAND_WRONG) {
		command_usage(c, help, sizeof(help));
		print_lines(stderr, "%s", help);
	}
	*status = EXIT_USAGE;
	return false;
}

void admin_say(const char *fmt, ...)
{
	char line[2 * 4096];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	fflush(stdout);
	print_lines(stderr, "refd: %s\n", line);
}

const char *admin_state(void)
{
	const char *state = getenv("REFD_STATE");

	return state != NULL ? state : "/var/lib/refd";
}
