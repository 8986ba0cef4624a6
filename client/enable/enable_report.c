#include "client/enable/enable_report.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/lib/json.h"

static bool as_json;

void enable_report_as_json(void)
{
	as_json = true;
}

static void print_json(const char *action, const char *path, const char *text,
    const char *key, const char *value)
{
	struct json j = { .to = stdout };

	json_begin(&j, NULL, '{');
	json_text(&j, "action", action);
	json_text(&j, "path", path);
	json_text(&j, "key", key);
	json_text(&j, "value", value);
	json_text(&j, "text", text);
	json_finish(&j, '}');
}

static void print_path(const char *path, const char *text)
{
	print_line(stdout, "%s%s%s", path ? path : "", path ? ": " : "", text);
}

void enable_report(const char *action, const char *path, const char *fmt, ...)
{
	char *text;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		die("out of memory");
	va_end(ap);
	if (as_json)
		print_json(action, path, text, NULL, NULL);
	else
		print_path(path, text);
	free(text);
}

void enable_report_setting(const char *path, bool is_added, const char *key,
    const char *value)
{
	char *text = xasprintf("%s %s %s", key, is_added ? "+=" : "-=", value);

	if (as_json)
		print_json(is_added ? "set" : "unset", path, text, key, value);
	else
		print_path(path, text);
	free(text);
}

void enable_report_state(const char *state, const char *kind, const char *path)
{
	const bool is_repository = !strcmp(kind, "repository");
	struct json j = { .to = stdout };

	if (as_json) {
		json_begin(&j, NULL, '{');
		json_text(&j, "state", state);
		json_text(&j, "kind", kind);
		json_text(&j, "path", path);
		json_finish(&j, '}');
		return;
	}
	print_line(stdout, "%-10s  %s%s%s", state, path,
	    is_repository ? "" : "  ", is_repository ? "" : kind);
}
