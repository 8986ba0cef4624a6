#include "daemon/options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char options_usage[] =
    "usage: refd-daemon [--config FILE] [--socket PATH] [--state DIR]\n"
    "                   [--root DIR]... [--durability MODE]\n"
    "       refd-daemon --version | --help\n";

static const struct option long_options[] = {
	{ "config", required_argument, NULL, 'c' },
	{ "socket", required_argument, NULL, 's' },
	{ "state", required_argument, NULL, 'd' },
	{ "root", required_argument, NULL, 'r' },
	{ "durability", required_argument, NULL, 'm' },
	{ "version", no_argument, NULL, 'v' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static int complain(char **why, const char *fmt, const char *what)
{
	if (asprintf(why, fmt, what) < 0)
		*why = NULL;
	return -1;
}

/* One option into GIVEN, which holds nothing else. */
static int take_option(int option, struct config *given, char **why)
{
	if (optarg[0] == '\0')
		return complain(why, "an option's argument is empty%s", "");
	switch (option) {
	case 'c':
		return config_set_path(&given->file, optarg, why);
	case 's':
		return config_set_path(&given->socket_path, optarg, why);
	case 'd':
		return config_set_path(&given->state_dir, optarg, why);
	case 'r':
		return config_add_root(given, optarg, why);
	default:
		return config_set_durability(given, optarg, why);
	}
}

static enum options_result read_options(struct config *given, int argc,
    char **argv, char **why)
{
	int option;

	optind = 0; /* glibc: start anew, whoever parsed before */
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
		default:
			if (take_option(option, given, why) < 0)
				return OPTIONS_USAGE;
			break;
		}
	}
	if (optind < argc) {
		complain(why, "unexpected argument '%s'", argv[optind]);
		return OPTIONS_USAGE;
	}
	return OPTIONS_RUN;
}

static int read_environment(struct config *cfg, char **why)
{
	const char *socket_path = getenv("REFD_SOCKET");
	const char *state_dir = getenv("REFD_STATE");

	if (socket_path != NULL && socket_path[0] != '\0' &&
	    config_set_path(&cfg->socket_path, socket_path, why) < 0)
		return -1;
	if (state_dir != NULL && state_dir[0] != '\0' &&
	    config_set_path(&cfg->state_dir, state_dir, why) < 0)
		return -1;
	return 0;
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

static void move_path(char **to, char **from)
{
	if (*from == NULL)
		return;
	free(*to);
	*to = *from;
	*from = NULL;
}

/* What GIVEN has replaces what CFG has. */
static void overlay(struct config *cfg, struct config *given)
{
	move_path(&cfg->socket_path, &given->socket_path);
	move_path(&cfg->state_dir, &given->state_dir);
	if (given->durability != REFD_DURABILITY_DEFAULT)
		cfg->durability = given->durability;
	if (given->nr_roots == 0)
		return;
	config_drop_roots(cfg);
	cfg->roots = given->roots;
	cfg->nr_roots = given->nr_roots;
	given->roots = NULL;
	given->nr_roots = 0;
}

enum options_result options_load(struct config *cfg, const struct sys *sys,
    int argc, char **argv, char **why)
{
	struct config given = { 0 };
	enum options_result result;

	config_init(cfg);
	*why = NULL;
	result = read_options(&given, argc, argv, why);
	if (result == OPTIONS_RUN) {
		result = OPTIONS_BAD;
		if (read_file(cfg, sys, given.file, why) == 0 &&
		    read_environment(cfg, why) == 0) {
			overlay(cfg, &given);
			if (config_finish(cfg, sys, why) == 0)
				result = OPTIONS_RUN;
		}
	}
	config_done(&given);
	return result;
}
