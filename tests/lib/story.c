#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/story_internal.h"

/* ---- reading ---- */

char *story_word(char **at)
{
	char *word;

	while ((word = strsep(at, " \t")) != NULL && *word == '\0')
		;
	return word;
}

static void add_step(struct story *s, unsigned line, char *text)
{
	struct story_step *step = &s->steps[s->nr++];
	char *name;

	assert(s->nr <= sizeof(s->steps) / sizeof(s->steps[0]));
	step->line = line;
	step->text = strdup(text);
	name = story_word(&text);
	step->verb = story_verb(name);
	step->args = strdup(text != NULL ? text : "");
}

/* An indented line goes on with the step before. */
static void add_more(struct story_step *step, const char *more)
{
	char *args = NULL, *text = NULL;

	if (asprintf(&args, "%s %s", step->args, more) < 0 ||
	    asprintf(&text, "%s %s", step->text, more) < 0)
		abort();
	free(step->args);
	free(step->text);
	step->args = args;
	step->text = text;
}

static void read_line(struct story *s, unsigned line, char *text)
{
	char *end = strchr(text, '#');
	bool is_any;

	if (end == NULL)
		end = text + strlen(text);
	while (end > text && strchr(" \t\n", end[-1]) != NULL)
		end--;
	*end = '\0';
	if (strncmp(text, "repo ", 5) == 0) {
		is_any = strcmp(text + 5, "any") == 0;
		s->is_of[0] = is_any || strcmp(text + 5, "files") == 0;
		s->is_of[1] = is_any || strcmp(text + 5, "reftable") == 0;
	} else if (s->nr > 0 && strchr(" \t", *text) != NULL) {
		text += strspn(text, " \t");
		if (*text != '\0')
			add_more(&s->steps[s->nr - 1], text);
	} else if (*text != '\0') {
		add_step(s, line, text);
	}
}

struct story *story_read(const char *path)
{
	struct story *s = calloc(1, sizeof(*s));
	FILE *file = fopen(path, "r");
	char *text = NULL;
	unsigned line = 0;
	size_t size;

	if (s == NULL || file == NULL) {
		perror(path);
		abort();
	}
	s->path = strdup(path);
	while (getline(&text, &size, file) > 0)
		read_line(s, ++line, text);
	free(text);
	fclose(file);
	if (!s->is_of[0] && !s->is_of[1]) {
		fprintf(stderr,
		    "%s: \"repo files\", \"repo reftable\" or "
		    "\"repo any\" is missing\n",
		    path);
		abort();
	}
	return s;
}

void story_free(struct story *s)
{
	while (s->nr-- > 0) {
		free(s->steps[s->nr].text);
		free(s->steps[s->nr].args);
	}
	free(s->path);
	free(s);
}

bool story_is_of(const struct story *s, bool tables)
{
	return s->is_of[tables];
}

/* ---- findings ---- */

static void print_fault(FILE *out, const struct acting *a)
{
	static const char *const kinds[] = { "failing call", "dead disk",
		"kill before change", "power loss before change" };
	const struct story_fault *fault = a->run->fault;

	if (fault == NULL)
		return;
	fprintf(out, "%s %lu", kinds[fault->kind], fault->n);
	if (fault->kind == SWEEP_ERRNO)
		fprintf(out, ", %s", strerror(-fault->err));
	fprintf(out, ": %s; %s at the end\n",
	    a->hit[0] != '\0' ? a->hit : "not yet",
	    fault->ends_in_loss ? "power loss" : "kill");
}

void story_fail(struct acting *a, const char *fmt, ...)
{
	char *dump, *at = a->run->text;
	va_list ap;
	FILE *out;

	if (*at != '\0')
		return;
	out = fmemopen(at, sizeof(a->run->text), "w");
	assert(out != NULL);
	fprintf(out, "%s", a->story->path);
	if (a->step != NULL)
		fprintf(out, ":%u: %s", a->step->line, a->step->text);
	fprintf(out, "\n%s, %s, git between %lu\n",
	    a->run->tables ? "reftable" : "files",
	    refd_object_format_name(world_format()), a->run->between);
	print_fault(out, a);
	va_start(ap, fmt);
	vfprintf(out, fmt, ap);
	va_end(ap);
	dump = memfs_dump(a->w->fs);
	fprintf(out, "\n%s", dump);
	free(dump);
	fclose(out);
	a->run->text[sizeof(a->run->text) - 1] = '\0';
}

void story_expect(struct acting *a, const char *want, const char *have)
{
	if (strcmp(want, have) != 0)
		story_fail(a, "expected %s, found %s", want, have);
}

/* ---- faults ---- */

static void arm(struct acting *a)
{
	const struct story_fault *fault = a->run->fault;
	struct memfs *fs = a->w->fs;
	unsigned long n;

	if (!a->is_armed)
		return;
	n = fault->kind == SWEEP_ERRNO ? memfs_nr_calls(fs) - a->calls :
					 memfs_nr_changes(fs) - a->changes;
	if (n > fault->n) {
		/* A call of a process that was dead already. */
		a->is_armed = false;
		a->run->was_hit = true;
	} else if (fault->kind == SWEEP_ERRNO) {
		memfs_fail(fs, fault->n - n, fault->err);
	} else if (fault->kind == SWEEP_KILL) {
		memfs_crash_at(fs, fault->n - n);
	} else {
		memfs_power_loss_at(fs, fault->n - n);
	}
}

bool story_is_stopped(struct acting *a)
{
	return a->is_armed && a->run->fault->kind != SWEEP_ERRNO &&
	    memfs_was_hit(a->w->fs);
}

void story_down(struct acting *a, const struct memfs_choice *loss)
{
	if (loss != NULL)
		memfs_power_loss(a->w->fs, loss);
	else
		memfs_crash(a->w->fs);
	if (a->session != NULL) {
		/* A dead daemon cannot unlock. */
		world_session_end(a->w, a->session, false);
		world_done(a->w, a->session);
		a->session = NULL;
	}
	world_crash(a->w);
	if (loss != NULL) {
		a->w->this_boot.stamp_ns = SYS(a->w->sys, now_wall);
		a->may_lack_lines |= a->has_equal_lines;
	}
	arm(a);
}

static struct memfs_choice loss_of(const struct story_fault *fault)
{
	return memfs_choose(fault->n * 7 + (unsigned)-fault->err);
}

/* The fault has come. */
void story_end_fault(struct acting *a)
{
	const struct story_fault *fault = a->run->fault;
	struct memfs_choice loss;

	if (!a->is_armed || !memfs_was_hit(a->w->fs))
		return;
	a->is_armed = false;
	a->run->was_hit = true;
	snprintf(a->hit, sizeof(a->hit), "%s in line %u: %s",
	    memfs_hit(a->w->fs), a->step->line, a->step->text);
	memfs_fail_none(a->w->fs);
	if (fault->kind == SWEEP_KILL) {
		story_down(a, NULL);
	} else if (fault->kind == SWEEP_CUT) {
		loss = loss_of(fault);
		story_down(a, &loss);
	}
}

void story_start(struct acting *a)
{
	const bool was_armed = a->is_armed;
	int r = world_start(a->w);

	story_end_fault(a);
	if (was_armed && !a->is_armed && (r != 0 || !a->w->up)) {
		memfs_crash(a->w->fs);
		r = world_start(a->w);
	}
	if (r != 0)
		story_fail(a, "recovery: %s: %s", strerror(-r), a->w->why);
}

/* ---- acting ---- */

static void act_beside(struct memfs *fs, void *arg)
{
	struct acting *a = arg;

	(void)fs;
	a->run->was_beside = true;
	a->git_waits = !story_git(a, a->beside);
}

static void begin_beside(struct acting *a)
{
	a->git_waits = true;
	memfs_between(a->w->fs, a->run->between, act_beside, a);
}

/* A git that had to wait, or had no turn, acts now. */
static void end_beside(struct acting *a)
{
	memfs_between(a->w->fs, 0, NULL, NULL);
	a->run->has_waited |= a->git_waits;
	if (a->git_waits && !story_git(a, a->beside) && a->run->fault == NULL)
		story_fail(a, "git: a lock is in the way");
	a->beside = NULL;
}

static void act(struct acting *a, const struct story_step *step)
{
	char *args = strdup(step->args);
	char *beside = a->beside;
	const bool is_failing = a->is_failing;

	a->step = step;
	if (step->verb->needs_daemon && !a->w->up) {
		if (a->run->fault != NULL)
			story_start(a);
		else
			story_fail(a, "the daemon does not run");
	}
	if (beside != NULL)
		begin_beside(a);
	if (a->run->text[0] == '\0')
		step->verb->act(a, args);
	story_end_fault(a);
	if (beside != NULL && a->run->text[0] == '\0')
		end_beside(a);
	if (is_failing && a->run->fault == NULL) {
		if (!memfs_was_hit(a->w->fs))
			story_fail(a, "no call failed");
		memfs_fail_none(a->w->fs);
		a->is_failing = false;
	}
	free(args);
}

/* A daemon that could not go on is started again. */
static void mend(struct acting *a)
{
	if (a->run->fault == NULL || !a->w->up ||
	    store_fatal(&a->w->store) == NULL)
		return;
	story_down(a, NULL);
}

/* The value and the log of each ref that the story names; to be freed. */
static char *all_refs(struct acting *a)
{
	char *text = NULL, *args, *at, *word;
	FILE *out;
	size_t i, len;

	out = open_memstream(&text, &len);
	assert(out != NULL);
	for (i = 0; i < a->story->nr; i++) {
		at = args = strdup(a->story->steps[i].args);
		while ((word = strsep(&at, " \t,")) != NULL)
			if (strncmp(word, "refs/", 5) == 0 ||
			    strcmp(word, "HEAD") == 0)
				fprintf(out, "%s = %c, log %s\n", word,
				    story_ref(a, word), story_log(a, word));
		free(args);
	}
	fclose(out);
	return text;
}

/* A later start has nothing to do: recovery would otherwise repeat its work, or
 * undo it. What waits, or a session, has no such rest. */
static void rest(struct acting *a)
{
	char everything[] = "keeps everything", none[] = "none";
	char *want, *have;

	if (!a->w->up || a->w->deferred > 0 || a->locks[0] != '\0' ||
	    a->is_away || a->session != NULL)
		return;
	a->step = NULL;
	want = all_refs(a);
	story_verb("checkpoint")->act(a, NULL);
	story_verb("power-loss")->act(a, everything);
	story_start(a);
	story_verb("finding")->act(a, none);
	have = all_refs(a);
	story_expect(a, want, have);
	free(want);
	free(have);
}

/* A start that the fault may meet, and a start without a fault. Then the rules
 * hold. */
static void end(struct acting *a)
{
	const struct story_fault *fault = a->run->fault;
	struct memfs_choice loss;

	if (fault != NULL) {
		if (a->is_armed) {
			story_down(a, NULL);
			story_settle(a);
			story_start(a);
			a->is_armed = false;
		}
		loss = loss_of(fault);
		story_down(a, fault->ends_in_loss ? &loss : NULL);
		story_settle(a);
		story_start(a);
	} else if (a->beside != NULL || a->is_failing) {
		story_fail(a, "no step follows");
	} else if (a->run->text[0] == '\0') {
		rest(a);
	}
	if (a->run->text[0] == '\0' && a->w->up)
		story_rules(a);
}

static size_t nr_words(const char *args)
{
	char *copy = strdup(args), *at = copy;
	size_t nr = 0;

	while (story_word(&at) != NULL)
		nr++;
	free(copy);
	return nr;
}

static bool is_complete(const struct story_step *step)
{
	return step->verb->nr_words == STORY_ANY_WORDS ||
	    step->verb->nr_words == nr_words(step->args);
}

bool story_run(const struct story *s, struct story_run *run)
{
	struct acting a = { .story = s, .run = run };
	size_t i;

	run->was_hit = run->was_beside = run->has_waited = false;
	run->text[0] = '\0';
	story_set_up(&a);
	a.calls = memfs_nr_calls(a.w->fs);
	a.changes = memfs_nr_changes(a.w->fs);
	a.is_armed = run->fault != NULL;
	arm(&a);
	for (i = 0; i < s->nr && run->text[0] == '\0'; i++) {
		if (s->steps[i].verb == NULL) {
			a.step = &s->steps[i];
			story_fail(&a, "there is no such word");
		} else if (!is_complete(&s->steps[i])) {
			a.step = &s->steps[i];
			story_fail(&a, "%zu words have to follow",
			    s->steps[i].verb->nr_words);
		} else if (run->fault == NULL || !s->steps[i].verb->is_look) {
			act(&a, &s->steps[i]);
			mend(&a);
		}
	}
	end(&a);
	if (a.session != NULL)
		story_down(&a, NULL);
	memfs_fail_none(a.w->fs);
	world_free(a.w);
	return run->text[0] == '\0';
}
