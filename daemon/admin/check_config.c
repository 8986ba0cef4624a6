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
		options_print_help(&options_check_config, stderr);
	return status;
}

int admin_check_config(int argc, char **argv)
{
	bool shows_origin = false;
	int status = EXIT_USAGE;
	struct config cfg;
	char *why = NULL;

	switch (options_load(&options_check_config, &cfg, &sys_kernel, argc,
	    argv, &shows_origin, &why)) {
	case OPTIONS_RUN:
		status = report(&cfg, shows_origin);
		break;
	case OPTIONS_HELP:
	case OPTIONS_VERSION:
		options_print_help(&options_check_config, stdout);
		status = 0;
		break;
	case OPTIONS_BAD:
		status = complain(why, EXIT_WRONG);
		break;
	case OPTIONS_USAGE:
		status = complain(why, EXIT_USAGE);
		break;
	}
	free(why);
	config_done(&cfg);
	return status;
}
