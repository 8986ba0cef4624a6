#include "client/enable/enable_report.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/lib/json.h"

static enum enable_report_form form;

void enable_report_as(enum enable_report_form wanted)
{
	form = wanted;
}

bool enable_report_briefly(size_t nr)
{
	if (form != ENABLE_REPORT_TEXT || nr <= ENABLE_REPORT_REPOSITORIES)
		return false;
	form = ENABLE_REPORT_NOTHING;
	return true;
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

static void print(const char *action, const char *path, const char *text,
    const char *key, const char *value)
{
	switch (form) {
	case ENABLE_REPORT_TEXT:
		print_line(stdout, "%s%s%s", path ? path : "", path ? ": " : "",
		    text);
		break;
	case ENABLE_REPORT_JSON:
		print_json(action, path, text, key, value);
		break;
	case ENABLE_REPORT_NOTHING:
		break;
	}
}

void enable_report(const char *action, const char *path, const char *fmt, ...)
{
	char *text;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		die("out of memory");
	va_end(ap);
	print(action, path, text, NULL, NULL);
	free(text);
}

void enable_report_setting(const char *path, bool is_added, const char *key,
    const char *value)
{
	char *text = xasprintf("%s %s %s", key, is_added ? "+=" : "-=", value);

	print(is_added ? "set" : "unset", path, text, key, value);
	free(text);
}

void enable_report_state(const char *state, const char *kind, const char *path)
{
	const bool is_repository = !strcmp(kind, "repository");
	struct json j = { .to = stdout };

	if (form == ENABLE_REPORT_JSON) {
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
