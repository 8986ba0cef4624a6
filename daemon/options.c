#include "daemon/options.h"
#include "proto/lib/print.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct options {
	const char *file, *socket, *state, *durability;
	struct command_list roots;
	int ready_fd; /* 0: none */
	bool version;
	int form; /* enum options_form */
};

#define CONFIG_OPTIONS                                                         \
	{ OPTION_STRING("config", 0, "FILE",                                   \
	    "read only the configuration FILE", struct options, file) },       \
	    { OPTION_STRING("socket", 0, "PATH",                               \
		"the socket for clients (daemon.socket)", struct options,      \
		socket) },                                                     \
	    { OPTION_STRING("state", 0, "DIR",                                 \
		"the directory of the journal (daemon.state)", struct options, \
		state) },                                                      \
	    { OPTION_LIST("root", 0, "DIR",                                    \
		"serve the repositories below DIR (daemon.root)",              \
		struct options, roots) },                                      \
	    { OPTION_STRING("durability", 0, "MODE",                           \
		"none, periodic, journal, batch or fsync (durability.mode)",   \
		struct options, durability) },                                 \
	{                                                                      \
		OPTION_NUMBER("ready-fd", 0, "N",                              \
		    "write a line to the descriptor N when the daemon serves", \
		    struct options, ready_fd, 3, INT_MAX)                      \
	}

const struct command options_daemon = {
	.name = "daemon",
	.purpose = "Runs the daemon in the foreground. Options override the "
		   "environment and the configuration file.",
	.example = "refd daemon --config /etc/refd/config",
	.manual = "refd-daemon(8)",
	.options = (const struct command_option[]){ CONFIG_OPTIONS,
	    { OPTION_FLAG("version", 0, "print the version", struct options,
		version) },
	    { 0 } },
};

const struct command options_check_config = {
	.name = "check-config",
	.arguments = "[<file>]",
	.purpose =
	    "Reads the configuration as the daemon would, and reports all "
	    "errors. Changes nothing.",
	.example = "refd check-config --show-origin",
	.outcome = "Prints each value in force, and where it was set.",
	.manual = "refd.conf(5)",
	.most = 1,
	.options =
	    (const struct command_option[]){
		{ OPTION_SET("show-origin", 0,
		      "print each value and the place that sets it",
		      struct options, form, OPTIONS_ORIGINS),
		    .excludes = 'f' },
		{ OPTION_SET("json", 0, "print JSON, for programs",
		      struct options, form, OPTIONS_JSON),
		    .excludes = 'f' },
		CONFIG_OPTIONS, { 0 } },
};

void options_print_help(const struct command *c)
{
	char help[COMMAND_HELP_MAX];

	command_help(c, NULL, help, sizeof(help));
	print_lines(stdout, "%s", help);
}

void options_print_usage(const struct command *c)
{
	char usage[COMMAND_HELP_MAX];

	command_usage(c, usage, sizeof(usage));
	print_lines(stderr, "%s", usage);
}

static enum options_result parse(const struct command *c, struct options *o,
    int argc, char **argv, char **why)
{
	char text[COMMAND_WHY_MAX];

	memset(o, 0, sizeof(*o));
	switch (command_parse(c, o, &argc, &argv, text)) {
	case COMMAND_OK:
		break;
	case COMMAND_HELPS:
		return OPTIONS_HELP;
	case COMMAND_WRONG:
	case COMMAND_BAD_VALUE:
		*why = strdup(text);
		return OPTIONS_USAGE;
	}
	if (argc > 0)
		o->file = argv[0];
	return o->version ? OPTIONS_VERSION : OPTIONS_RUN;
}

static int set(struct config *cfg, const char *name, const char *key,
    const char *value, char **why)
{
	if (value == NULL)
		return 0;
	if (value[0] == '\0') {
		*why = strdup("an option's argument is empty");
		return -1;
	}
	return config_set(cfg, CONFIG_OPTION, name, key, value, why);
}

static int apply(const struct options *o, struct config *cfg, char **why)
{
	size_t i;

	if (o->file != NULL && o->file[0] == '\0')
		return set(cfg, "--config", "", o->file, why);
	if (set(cfg, "--socket", "daemon.socket", o->socket, why) < 0 ||
	    set(cfg, "--state", "daemon.state", o->state, why) < 0 ||
	    set(cfg, "--durability", "durability.mode", o->durability, why) < 0)
		return -1;
	for (i = 0; i < o->roots.nr; i++)
		if (set(cfg, "--root", "daemon.root", o->roots.items[i], why) <
		    0)
			return -1;
	if (o->ready_fd > 0)
		cfg->ready_fd = o->ready_fd;
	return 0;
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
	if (config_find_file(sys, &path) < 0)
		return -1;
	r = path == NULL ? 0 : config_read_file(cfg, sys, path, why);
	free(path);
	return r;
}

/* The weakest source first. */
static int read_sources(struct config *cfg, const struct sys *sys,
    const char *file, char **why)
{
	int r;

	if (config_defaults(cfg, why) < 0)
		return -1;
	r = read_file(cfg, sys, file, why);
	return read_environment(cfg, why) < 0 ? -1 : r;
}

static enum options_result load(const struct options *o, struct config *cfg,
    const struct sys *sys, char **why)
{
	struct config given;
	int r;

	/* A wrong option is reported before a wrong file. */
	config_init(&given);
	r = apply(o, &given, why);
	config_done(&given);
	if (r < 0)
		return OPTIONS_USAGE;
	r = read_sources(cfg, sys, o->file, why);
	/* If the file was not read to its end, a further error may only come
	 * from the missing part, so none is looked for. */
	if (r < 0 && cfg->file == NULL)
		return OPTIONS_BAD;
	if (apply(o, cfg, why) < 0 || config_finish(cfg, sys, why) < 0)
		return OPTIONS_BAD;
	return r < 0 ? OPTIONS_BAD : OPTIONS_RUN;
}

enum options_result options_load(const struct command *c, struct config *cfg,
    const struct sys *sys, int argc, char **argv, enum options_form *form,
    char **why)
{
	struct options o;
	enum options_result result;

	config_init(cfg);
	*why = NULL;
	result = parse(c, &o, argc, argv, why);
	if (result == OPTIONS_RUN)
		result = load(&o, cfg, sys, why);
	/* A line of the log has the first error. */
	if (c == &options_daemon && *why != NULL)
		(*why)[strcspn(*why, "\n")] = '\0';
	if (form != NULL)
		*form = (enum options_form)o.form;
	command_list_done(&o.roots);
	return result;
}
