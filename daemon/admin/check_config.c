/*
 * refd check-config: reads the configuration as the daemon would, with the
 * same options and environment, and writes nothing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/admin/admin.h"
#include "daemon/options.h"
#include "proto/lib/json.h"
#include "proto/lib/print.h"

#define EXIT_WRONG 1
#define EXIT_USAGE 129

static void print_origin(const char *origin, const char *words)
{
	print_part(stdout, "%s", origin);
	print_lines(stdout, "\t");
	print_line(stdout, "%s", words);
}

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
			print_origin(origin, words);
		free(words);
		free(origin);
	}
	return failed ? EXIT_WRONG : 0;
}

static void put_value(struct json *j, const struct config_value *value)
{
	json_begin(j, NULL, '{');
	json_text(j, "key", config_value_key(value));
	json_text(j, "root", value->root);
	json_text(j, "value", value->text);
	switch (value->source) {
	case CONFIG_DEFAULT:
		json_text(j, "source", "default");
		break;
	case CONFIG_FILE:
		json_text(j, "source", "file");
		json_text(j, "file", value->file);
		json_count(j, "line", value->line);
		break;
	case CONFIG_ENVIRONMENT:
		json_text(j, "source", "environment");
		json_text(j, "name", value->name);
		break;
	case CONFIG_OPTION:
		json_text(j, "source", "option");
		json_text(j, "name", value->name);
		break;
	}
	json_end(j, '}');
}

static int put_json(const struct config *cfg)
{
	struct json j = { .to = stdout };
	size_t i;

	json_begin(&j, NULL, '{');
	json_text(&j, "file", cfg->file);
	json_begin(&j, "values", '[');
	for (i = 0; i < cfg->nr_values; i++)
		put_value(&j, &cfg->values[i]);
	json_end(&j, ']');
	json_finish(&j, '}');
	return 0;
}

static int report(const struct config *cfg, enum options_form form)
{
	if (form == OPTIONS_ORIGINS)
		return show(cfg);
	if (form == OPTIONS_JSON)
		return put_json(cfg);
	if (cfg->file != NULL)
		print_line(stdout, "%s: in order", cfg->file);
	else
		print_line(stdout, "in order; there is no configuration file");
	return 0;
}

static int complain(char *why, int status)
{
	char *rest = why, *line;

	if (why == NULL)
		admin_say("out of memory");
	while ((line = strsep(&rest, "\n")) != NULL)
		admin_say("%s", line);
	if (status == EXIT_USAGE)
		options_print_usage(&options_check_config);
	return status;
}

int admin_check_config(int argc, char **argv)
{
	enum options_form form = OPTIONS_SENTENCE;
	int status = EXIT_USAGE;
	struct config cfg;
	char *why = NULL;

	switch (options_load(&options_check_config, &cfg, &sys_kernel, argc,
	    argv, &form, &why)) {
	case OPTIONS_RUN:
		status = report(&cfg, form);
		break;
	case OPTIONS_HELP:
	case OPTIONS_VERSION:
		options_print_help(&options_check_config);
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
