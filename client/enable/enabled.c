#include "client/enable/enabled.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/enable/durable.h"

/* The record's first line; then a line for each step: kind, key, value and,
 * where a value was replaced, a line "was" with it behind the step's. What
 * would end a word or a line is written as %20, %0a, %25. */
#define FIRST_LINE "refd enabled 1"
/* More than any record that refd writes. */
#define RECORD_BYTES (16 << 20)

static const struct {
	const char *name;
	bool has_key, has_value;
} kinds[] = {
	[STEP_AT] = { "at", false, true },
	[STEP_USES] = { "uses", false, true },
	[STEP_DIR] = { "dir", false, true },
	[STEP_HOOKS_DIR] = { "hooks-dir", false, false },
	[STEP_HOOK] = { "hook", false, true },
	[STEP_FORWARDERS] = { "forwarders", false, false },
	[STEP_FILE] = { "file", false, true },
	[STEP_CONFIG_FILE] = { "config-file", false, false },
	[STEP_ADD] = { "add", true, true },
	[STEP_SET] = { "set", true, true },
};

#define NR_KINDS (sizeof(kinds) / sizeof(kinds[0]))

void site_init(struct site *site, const char *dir)
{
	memset(site, 0, sizeof(*site));
	site->name = xstrdup(dir);
	site->record = xasprintf("%s/refd/enabled", dir);
	site->config = xasprintf("%s/config", dir);
	site->hooks = xasprintf("%s/hooks", dir);
	site->is_repository = site->is_alone = true;
}

void site_done(struct site *site)
{
	free(site->name);
	free(site->record);
	free(site->config);
	free(site->hooks);
	memset(site, 0, sizeof(*site));
}

/* ---- the list ---- */

static char *copy(const char *s)
{
	return s ? xstrdup(s) : NULL;
}

void enabled_add(struct enabled *en, enum step_kind kind, const char *key,
    const char *value, const char *old)
{
	struct step *step;

	en->steps = xrealloc(en->steps, (en->nr + 1) * sizeof(*en->steps));
	step = &en->steps[en->nr++];
	step->kind = kind;
	step->key = copy(key);
	step->value = copy(value);
	step->old = copy(old);
}

struct step *enabled_find(const struct enabled *en, enum step_kind kind,
    const char *key, const char *value)
{
	size_t i;

	for (i = en->nr; i-- > 0;) {
		struct step *s = &en->steps[i];

		if (s->kind == kind && (!key || !strcmp(s->key, key)) &&
		    (!value || !strcmp(s->value, value)))
			return s;
	}
	return NULL;
}

void enabled_done(struct enabled *en)
{
	size_t i;

	for (i = 0; i < en->nr; i++) {
		free(en->steps[i].key);
		free(en->steps[i].value);
		free(en->steps[i].old);
	}
	free(en->steps);
	memset(en, 0, sizeof(*en));
}

/* There can be but one hook and one value that is set: the newer one is what
 * is undone then, to what the older one found. */
void enabled_remember(struct enabled *before, const struct enabled *plan)
{
	size_t i;

	for (i = 0; i < plan->nr; i++) {
		const struct step *s = &plan->steps[i];
		bool is_one = s->kind == STEP_SET || s->kind == STEP_HOOK;
		struct step *known = enabled_find(before, s->kind, s->key,
		    is_one ? NULL : s->value);

		if (!known) {
			enabled_add(before, s->kind, s->key, s->value, s->old);
			continue;
		}
		free(known->value);
		known->value = copy(s->value);
	}
}

/* ---- reading ---- */

static void decode(char *s)
{
	char *to = s;
	unsigned byte;

	while (*s) {
		if (*s == '%' && sscanf(s + 1, "%2x", &byte) == 1 && s[2]) {
			*to++ = (char)byte;
			s += 3;
		} else {
			*to++ = *s++;
		}
	}
	*to = '\0';
}

static bool take_step(struct enabled *en, char *line)
{
	char *rest = strchr(line, ' '), *value;
	size_t kind;

	if (rest)
		*rest++ = '\0';
	if (!strcmp(line, "was") && rest && en->nr) {
		decode(rest);
		free(en->steps[en->nr - 1].old);
		en->steps[en->nr - 1].old = xstrdup(rest);
		return true;
	}
	for (kind = 0; kind < NR_KINDS; kind++)
		if (!strcmp(line, kinds[kind].name))
			break;
	if (kind == NR_KINDS || !rest != !kinds[kind].has_value)
		return false;
	value = rest;
	if (kinds[kind].has_key) {
		value = strchr(rest, ' ');
		if (!value)
			return false;
		*value++ = '\0';
		decode(rest);
	}
	if (value)
		decode(value);
	enabled_add(en, (enum step_kind)kind, kinds[kind].has_key ? rest : NULL,
	    value, NULL);
	return true;
}

/* The repository's owner may have put anything there. Root follows no link to
 * a device, does not wait for a FIFO, and reads no more than a record. */
static int read_record(struct text *t, const char *path)
{
	int fd = open(path,
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;
	int err = 0;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		err = -errno;
	else if (!S_ISREG(st.st_mode))
		err = S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
	if (err == 0)
		err = text_read(t, fd, RECORD_BYTES);
	close(fd);
	return err;
}

bool enabled_read(struct enabled *en, const struct site *site)
{
	struct text t = { 0 };
	int err = read_record(&t, site->record);
	bool ok = err == 0 || err == -ENOENT || err == -ENOTDIR;
	char *line, *rest;

	if (!ok)
		say_error("cannot read %s: %s", site->record, strerror(-err));
	if (err == 0) {
		line = strtok_r(t.data, "\n", &rest);
		ok = line && !strcmp(line, FIRST_LINE);
		while (ok && (line = strtok_r(NULL, "\n", &rest)))
			ok = take_step(en, line);
		if (!ok)
			say_error("%s is damaged", site->record);
	}
	text_done(&t);
	return ok;
}

/* ---- writing ---- */

static void put_word(struct text *t, const char *word, bool is_key)
{
	text_addc(t, ' ');
	for (; *word; word++)
		if (*word == '\n' || *word == '%' || (is_key && *word == ' '))
			text_addf(t, "%%%02x", (unsigned)*word);
		else
			text_addc(t, *word);
}

static void put_step(const struct step *step, struct text *t)
{
	text_adds(t, kinds[step->kind].name);
	if (step->key)
		put_word(t, step->key, true);
	if (step->value)
		put_word(t, step->value, false);
	text_addc(t, '\n');
	if (step->old) {
		text_adds(t, "was");
		put_word(t, step->old, false);
		text_addc(t, '\n');
	}
}

static char *directory_of(const struct site *site)
{
	char *dir = xstrdup(site->record);

	*strrchr(dir, '/') = '\0';
	return dir;
}

/* refd/ belongs to whom refs/ does: the daemon writes in both. */
static int make_directory(const struct site *site)
{
	char *dir = directory_of(site);
	char *refs = xasprintf("%s/../refs", dir);
	struct stat st;
	int err = 0;

	if (mkdir(dir, 0777) < 0)
		err = errno == EEXIST ? 0 : -errno;
	else if (site->is_repository && stat(refs, &st) == 0 &&
	    chmod(dir, st.st_mode & 07777) < 0)
		err = -errno;
	free(refs);
	free(dir);
	return err;
}

/* The daemon gives locks their names with link(2). */
static int try_link(const struct site *site)
{
	char *one = xasprintf("%s.link", site->record);
	char *two = xasprintf("%s.linked", site->record);
	struct text t = { 0 };
	int err;

	unlink(two);
	err = durable_write(one, &t, 0666);
	if (!err && link(one, two) < 0)
		err = -errno;
	unlink(one);
	unlink(two);
	free(one);
	free(two);
	return err;
}

bool enabled_write(const struct enabled *en, const struct site *site)
{
	struct text t = { 0 };
	const char *what = "write";
	size_t i;
	int err;

	text_adds(&t, FIRST_LINE "\n");
	for (i = 0; i < en->nr; i++)
		put_step(&en->steps[i], &t);
	err = make_directory(site);
	if (!err && site->is_repository) {
		err = try_link(site);
		what = "make a hard link beside";
	}
	if (!err) {
		err = durable_write(site->record, &t, 0666);
		what = "write";
	}
	if (err) {
		char *dir = directory_of(site);

		say_error("cannot %s %s: %s", what, site->record,
		    strerror(-err));
		if (site->is_alone)
			rmdir(dir);
		free(dir);
	}
	text_done(&t);
	return !err;
}

/* With what was left beside it by one that was killed. */
bool enabled_remove(const struct site *site)
{
	static const char *const rests[] = { ".new", ".link", ".link.new",
		".linked" };
	bool ok =
	    unlink(site->record) == 0 || errno == ENOENT || errno == ENOTDIR;
	char *path;
	size_t i;

	if (!ok)
		say_error("cannot remove %s: %s", site->record,
		    strerror(errno));
	exact_remove(site);
	for (i = 0; i < sizeof(rests) / sizeof(rests[0]); i++) {
		path = xasprintf("%s%s", site->record, rests[i]);
		unlink(path);
		free(path);
	}
	path = directory_of(site);
	if (site->is_alone)
		rmdir(path);
	free(path);
	return ok;
}

/* ---- all steps ---- */

bool enabled_carry_out(const struct enabled *plan, const struct site *site)
{
	size_t i;

	for (i = 0; i < plan->nr; i++)
		if (!step_do(&plan->steps[i], site))
			return false;
	return true;
}

/*
 * What makes git ask for the hook goes first, then the rest of the
 * configuration, which says where it is, and then hook and files: at no
 * moment is a push sent to a hook that is not there.
 */
static int rank(const struct step *step)
{
	if (!step_is_config(step))
		return 2;
	return strcmp(step->key, "receive.procReceiveRefs") != 0;
}

bool enabled_undo(const struct enabled *en, const struct site *site)
{
	bool ok = true;
	size_t i;
	int now;

	if (site->config && exact_restore(site))
		for (i = en->nr; i-- > 0;)
			step_say_undone(&en->steps[i], site);
	for (now = 0; now <= 2; now++) {
		/* It is seen to be done before the hook goes. */
		if (now == 2 && ok && site->config)
			durable_sync(site->config);
		for (i = en->nr; ok && i-- > 0;)
			if (rank(&en->steps[i]) == now)
				ok = step_undo(&en->steps[i], site);
	}
	return ok;
}

bool enabled_holds(const struct enabled *en, const struct site *site)
{
	struct gitconfig own = { 0 };
	bool all = !site->config || site_config(site, &own);
	size_t i;

	for (i = 0; all && i < en->nr; i++)
		all = step_holds(&en->steps[i], site, &own);
	gitconfig_done(&own);
	return all;
}
