#include "daemon/options.h"

#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char options_usage[] =
    "usage: refd daemon [--config FILE] [--socket PATH] [--state DIR]\n"
    "                   [--root DIR]... [--durability MODE] [--ready-fd N]\n"
    "       refd daemon --version | --help\n";

static const struct option long_options[] = {
	{ "config", required_argument, NULL, 'c' },
	{ "socket", required_argument, NULL, 's' },
	{ "state", required_argument, NULL, 'd' },
	{ "root", required_argument, NULL, 'r' },
	{ "durability", required_argument, NULL, 'm' },
	{ "ready-fd", required_argument, NULL, 'f' },
	{ "version", no_argument, NULL, 'v' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

/* Which key an option sets; --config sets none. */
static const struct {
	int option;
	const char *name, *key;
} settings[] = {
	{ 's', "--socket", "daemon.socket" },
	{ 'd', "--state", "daemon.state" },
	{ 'r', "--root", "daemon.root" },
	{ 'm', "--durability", "durability.mode" },
};

static int complain(char **why, const char *fmt, const char *what)
{
	if (asprintf(why, fmt, what) < 0)
		*why = NULL;
	return -1;
}

static int set_option(int option, struct config *cfg, char **why)
{
	size_t i = 0;

	while (settings[i].option != option)
		i++;
	return config_set(cfg, CONFIG_OPTION, settings[i].name, settings[i].key,
	    optarg, why);
}

static int set_ready_fd(struct config *cfg, char **why)
{
	char *end;
	long fd = strtol(optarg, &end, 10);

	if (*end != '\0' || optarg[0] < '0' || optarg[0] > '9' || fd < 3 ||
	    fd > INT_MAX)
		return complain(why,
		    "--ready-fd is '%s': it must be the number of an open file "
		    "descriptor above 2",
		    optarg);
	cfg->ready_fd = (int)fd;
	return 0;
}

/* Sets CFG's values, and *FILE, which is borrowed. */
static enum options_result read_options(struct config *cfg, int argc,
    char **argv, const char **file, char **why)
{
	int option;

	optind = 0; /* glibc: start again, after any earlier parsing */
	while ((option = getopt_long(argc, argv, ":h", long_options, NULL)) !=
	    -1) {
		switch (option) {
		case 'h':
			return OPTIONS_HELP;
		case 'v':
			return OPTIONS_VERSION;
		case '?':
			complain(why, "unknown option '%s'", argv[optind - 1]);
			return OPTIONS_USAGE;
		case ':':
			complain(why, "'%s' needs an argument",
			    argv[optind - 1]);
			return OPTIONS_USAGE;
		}
		if (optarg[0] == '\0') {
			complain(why, "an option's argument is empty%s", "");
			return OPTIONS_USAGE;
		}
		if (option == 'c')
			*file = optarg;
		else if (option == 'f' && set_ready_fd(cfg, why) < 0)
			return OPTIONS_USAGE;
		else if (option == 'f')
			continue;
		else if (set_option(option, cfg, why) < 0)
			return OPTIONS_USAGE;
	}
	if (optind < argc) {
		complain(why, "unexpected argument '%s'", argv[optind]);
		return OPTIONS_USAGE;
	}
	return OPTIONS_RUN;
}

static int set_from(const char *name, const char *key, struct config *cfg,
    char **why)
{
	const char *value = getenv(name);

	if (value == NULL || value[0] == '\0')
		return 0;
	return config_set(cfg, CONFIG_ENVIRONMENT, name, key, value, why);
}

static int read_environment(struct config *cfg, char **why)
{
	if (set_from("REFD_SOCKET", "daemon.socket", cfg, why) < 0)
		return -1;
	return set_from("REFD_STATE", "daemon.state", cfg, why);
}

static int read_file(struct config *cfg, const struct sys *sys,
    const char *named, char **why)
{
	char *path = NULL;
	int r;

	if (named != NULL)
		return config_read_file(cfg, sys, named, why);
	if (config_find_file(sys, &path, why) < 0)
		return -1;
	r = path == NULL ? 0 : config_read_file(cfg, sys, path, why);
	free(path);
	return r;
}

/* The weakest first. */
static int read_sources(struct config *cfg, const struct sys *sys,
    const char *file, char **why)
{
	if (config_defaults(cfg, why) < 0 || read_file(cfg, sys, file, why) < 0)
		return -1;
	return read_environment(cfg, why);
}

enum options_result options_load(struct config *cfg, const struct sys *sys,
    int argc, char **argv, char **why)
{
	enum options_result result;
	struct config given;
	const char *file = NULL;

	/* Options are read twice: they name the file, but the file is applied
	 * before them. */
	config_init(cfg);
	config_init(&given);
	*why = NULL;
	result = read_options(&given, argc, argv, &file, why);
	config_done(&given);
	if (result != OPTIONS_RUN)
		return result;
	if (read_sources(cfg, sys, file, why) < 0)
		return OPTIONS_BAD;
	result = read_options(cfg, argc, argv, &file, why);
	if (result == OPTIONS_RUN && config_finish(cfg, sys, why) < 0)
		result = OPTIONS_BAD;
	return result;
}
