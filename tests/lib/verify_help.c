#include "tests/lib/verify_help.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/tmp.h"

#define FOUND_MAX 256

struct verify_options vh_opt;
void (*vh_meanwhile)(void);
int64_t vh_ahead_ns;

static struct sys calls;
static char state[4096], *why;
static struct {
	char *line, *text, *repair;
} all[FOUND_MAX];
static size_t nr;

static void wait_for(const struct sys *sys, int64_t ns)
{
	(void)sys;
	(void)ns;
	if (vh_meanwhile != NULL)
		vh_meanwhile();
}

static int64_t now_ahead(const struct sys *sys)
{
	return sys_kernel.now_wall(sys) + vh_ahead_ns;
}

static void found(void *arg, const struct verify_finding *f)
{
	(void)arg;
	ck_assert_uint_lt(nr, FOUND_MAX);
	ck_assert_int_gt(asprintf(&all[nr].line, "%s %s%s", f->word,
			     f->ref[0] != '\0' ? f->ref : f->file,
			     f->is_repaired ? " repaired" : ""),
	    0);
	all[nr].text = strdup(f->text);
	all[nr].repair = strdup(f->repair != NULL ? f->repair : "");
	nr++;
}

void vh_reset(void)
{
	calls = sys_kernel;
	calls.sleep_ns = wait_for;
	calls.now_wall = now_ahead;
	vh_meanwhile = NULL;
	vh_ahead_ns = 0;
	snprintf(state, sizeof(state), "%s/state", tmp_root);
	vh_opt = (struct verify_options){ .sys = &calls,
		.state = state,
		.ledger_max = 100,
		.found = found };
}

size_t vh_look(const char *path)
{
	char full[4096];

	while (nr > 0) {
		nr--;
		free(all[nr].line);
		free(all[nr].text);
		free(all[nr].repair);
	}
	free(why);
	snprintf(full, sizeof(full), "%s/%s", tmp_root, path);
	if (verify_repo(&vh_opt, full, &why) < 0)
		ck_assert_ptr_nonnull(why);
	else
		ck_assert_ptr_null(why);
	return nr;
}

size_t vh_repair(const char *path)
{
	size_t n;

	vh_opt.repair = true;
	n = vh_look(path);
	vh_opt.repair = false;
	return n;
}

static bool has(const char *line, const char *words, bool in_repair)
{
	size_t i;

	for (i = 0; i < nr; i++)
		if (strcmp(all[i].line, line) == 0 &&
		    strstr(in_repair ? all[i].repair : all[i].text, words) !=
			NULL)
			return true;
	return false;
}

bool vh_has(const char *line, const char *words)
{
	return has(line, words, false);
}

bool vh_did(const char *line, const char *words)
{
	return has(line, words, true);
}

const char *vh_why(void)
{
	return why;
}

const char *vh_lines(void)
{
	static char text[65536];
	size_t i, len = 0;

	text[0] = '\0';
	for (i = 0; i < nr && len < sizeof(text); i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len,
		    "\n%s: %s [%s]", all[i].line, all[i].text, all[i].repair);
	return text;
}
