#include "tests/lib/verify_help.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/tmp.h"

#define PAUSE_NS 1000000

struct verify_options vh_opt;
void (*vh_meanwhile)(void);
int64_t vh_ahead_ns;

static struct sys calls;
static char state[4096], *why;
static struct findings findings;

/* The longest pauses of verify are not for a test. But a pause of no time would
 * make it give up a lock that a checkpoint has. */
static void wait_for(const struct sys *sys, int64_t ns)
{
	sys_kernel.sleep_ns(sys, ns < PAUSE_NS ? ns : PAUSE_NS);
	if (vh_meanwhile != NULL)
		vh_meanwhile();
}

static int64_t now_ahead(const struct sys *sys)
{
	return sys_kernel.now_wall(sys) + vh_ahead_ns;
}

static void line_of(const struct finding *f, char line[8192])
{
	/* The id is known to the output alone. */
	static const char *const ids[] = {
#define X(symbol, id, severity, repair, remedy) id,
		FINDING_TABLE(X)
#undef X
	};

	snprintf(line, 8192, "%s %s%s", ids[f->id],
	    f->ref[0] != '\0' ? f->ref : f->file,
	    f->is_repaired ? " repaired" : "");
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
		.fold_bytes = 20000,
		.findings = &findings };
}

size_t vh_look(const char *path)
{
	struct verify_options opt = vh_opt;
	char full[4096];

	findings_done(&findings);
	free(why);
	snprintf(full, sizeof(full), "%s/%s", tmp_root, path);
	if (opt.rows == NULL)
		opt.rows = verify_rows_new(&vh_opt, true);
	if (verify_repo(&opt, full, &why) < 0)
		ck_assert_ptr_nonnull(why);
	else
		ck_assert_ptr_null(why);
	if (vh_opt.rows == NULL)
		verify_rows_free(opt.rows);
	return findings.nr;
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
	const struct finding *f;
	char its[8192];
	size_t i;

	for (i = 0; i < findings.nr; i++) {
		f = &findings.list[i]->finding;
		line_of(f, its);
		if (strcmp(its, line) == 0 &&
		    strstr(in_repair ? f->repair : f->text, words) != NULL)
			return true;
	}
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
	const struct finding *f;
	char line[8192];
	size_t i, len = 0;

	text[0] = '\0';
	for (i = 0; i < findings.nr && len < sizeof(text); i++) {
		f = &findings.list[i]->finding;
		line_of(f, line);
		len += (size_t)snprintf(text + len, sizeof(text) - len,
		    "\n%s: %s [%s]", line, f->text, f->repair);
	}
	return text;
}
