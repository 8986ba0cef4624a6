/*
 * refd check-config: reads the configuration as the daemon would, with the
 * same options and environment, and writes nothing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/admin/admin.h"
#include "daemon/options.h"

#define EXIT_WRONG 1
#define EXIT_USAGE 129

static const char usage[] =
    "usage: refd check-config [--show-origin] [<options of refd daemon>] "
    "[<file>]\n";

static int show(const struct config *cfg)
{
	char *words, *origin;
	bool failed = false;
	size_t i;

	for (i = 0; i < cfg->nr_values && !failed; i++) {
		words = config_value_words(&cfg->values[i]);
		origin = config_value_origin(&cfg->values[i]);
		failed = words == NULL || origin == NULL;
		if (!failed)
			printf("%s\t%s\n", origin, words);
		free(words);
		free(origin);
	}
	return failed ? EXIT_WRONG : 0;
}

static int report(const struct config *cfg, bool shows_origin)
{
	if (shows_origin)
		return show(cfg);
	if (cfg->file != NULL)
		printf("%s: in order\n", cfg->file);
	else
		puts("in order; there is no configuration file");
	return 0;
}

static int complain(const char *why, int status)
{
	fprintf(stderr, "refd: %s\n", why != NULL ? why : "out of memory");
	if (status == EXIT_USAGE)
		fputs(usage, stderr);
	return status;
}

static int load(int argc, char **argv, bool shows_origin)
{
	int status = EXIT_USAGE;
	struct config cfg;
	char *why = NULL;

	switch (options_load(&cfg, &sys_kernel, argc, argv, &why)) {
	case OPTIONS_RUN:
		status = report(&cfg, shows_origin);
		break;
	case OPTIONS_HELP:
		fputs(usage, stdout);
		status = 0;
		break;
	case OPTIONS_BAD:
		status = complain(why, EXIT_WRONG);
		break;
	case OPTIONS_VERSION:
	case OPTIONS_USAGE:
		status = complain(why != NULL ? why : "nothing to check",
		    EXIT_USAGE);
		break;
	}
	free(why);
	config_done(&cfg);
	return status;
}

/* Not what an option before it asks for: those all take something. */
static bool is_file(const char *arg, const char *before)
{
	return arg[0] != '-' && (before[0] != '-' || strchr(before, '='));
}

/* A file by itself, in the end, is --config's. */
int admin_check_config(int argc, char **argv)
{
	char **args = calloc((size_t)argc + 2, sizeof(*args));
	static char option[] = "--config", help[] = "--help";
	bool shows_origin = false;
	int i, nr = 0, status;

	if (args == NULL)
		return complain(NULL, EXIT_WRONG);
	for (i = 0; i < argc; i++) {
		if (strcmp(argv[i], "--show-origin") == 0) {
			shows_origin = true;
			continue;
		}
		if (nr > 0 && i == argc - 1 && is_file(argv[i], args[nr - 1]))
			args[nr++] = option;
		args[nr++] = strcmp(argv[i], "-h") == 0 ? help : argv[i];
	}
	status = load(nr, args, shows_origin);
	free(args);
	return status;
}
