#include "proto/lib/command.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/lib/nearest.h"

#define OPTIONS_MAX 32

/* Returned by getopt_long(): the index of the option, and whether it is the
 * negated form. Short options are returned as their letter. */
#define LONG    0x100
#define NEGATED 0x200

struct command_parser {
	const struct command *c;
	void *values;
	char *why;
	struct option longs[2 * OPTIONS_MAX + 2];
	char shorts[2 * OPTIONS_MAX + 3];
	char names[OPTIONS_MAX][40]; /* of the negated forms */
	bool given[OPTIONS_MAX];
};

static void add_long(struct command_parser *p, size_t *nr, const char *name,
    const char *arg, size_t value)
{
	p->longs[(*nr)++] = (struct option){ name,
		arg ? required_argument : no_argument, NULL, (int)value };
}

static void prepare(struct command_parser *p)
{
	const struct command_option *o;
	size_t i, nr = 0, len = 0;

	p->shorts[len++] = ':';
	p->shorts[len++] = 'h';
	add_long(p, &nr, "help", NULL, 'h');
	for (i = 0; (o = &p->c->options[i])->name || o->letter; i++) {
		if (o->name)
			add_long(p, &nr, o->name, o->arg, LONG + i);
		if (o->negatable) {
			snprintf(p->names[i], sizeof(p->names[i]), "no-%s",
			    o->name);
			add_long(p, &nr, p->names[i], NULL, LONG + NEGATED + i);
		}
		if (o->letter) {
			p->shorts[len++] = o->letter;
			if (o->arg)
				p->shorts[len++] = ':';
		}
	}
}

/* The index of the option that getopt_long() returned as C. */
static size_t find(const struct command_parser *p, int c)
{
	size_t i = 0;

	if (c >= LONG)
		return (size_t)c & (LONG - 1);
	while (p->c->options[i].letter != c)
		i++;
	return i;
}

static void label(const struct command_option *o, char buf[48])
{
	if (o->name)
		snprintf(buf, 48, "%s", o->name);
	else
		snprintf(buf, 48, "%c", o->letter);
}

static bool append(struct command_list *list, const char *item, char *why)
{
	const char **grown =
	    realloc(list->items, (list->nr + 1) * sizeof(*list->items));

	if (!grown) {
		snprintf(why, COMMAND_WHY_MAX, "out of memory");
		return false;
	}
	list->items = grown;
	list->items[list->nr++] = item;
	return true;
}

static bool store_number(const struct command_option *o, int *to)
{
	char *end;
	long n = strtol(optarg, &end, 10);

	if (optarg[0] < '0' || optarg[0] > '9' || *end || n < o->least ||
	    n > o->most)
		return false;
	*to = (int)n;
	return true;
}

static bool store(const struct command_option *o, bool is_negated, void *values,
    char *why)
{
	void *to = (char *)values + o->offset;
	const char *wanted = NULL;
	char name[48], range[64];

	switch (o->kind) {
	case COMMAND_FLAG:
		*(bool *)to = is_negated ? !o->value : o->value != 0;
		break;
	case COMMAND_SET:
		*(int *)to = is_negated ? 0 : o->value;
		break;
	case COMMAND_STRING:
		*(const char **)to = optarg;
		break;
	case COMMAND_NUMBER:
		snprintf(range, sizeof(range), "a number from %d to %d",
		    o->least, o->most);
		wanted = store_number(o, to) ? NULL : range;
		break;
	case COMMAND_LIST:
		return append(to, optarg, why);
	case COMMAND_TAKE:
		wanted = o->take(values, optarg);
		break;
	case COMMAND_HELP:
	case COMMAND_END:
		break;
	}
	if (!wanted)
		return true;
	label(o, name);
	snprintf(why, COMMAND_WHY_MAX, "option `%s' takes %s, not '%s'", name,
	    wanted, optarg);
	return false;
}

static void add_hint(struct command_parser *p, const char *option)
{
	const struct command_option *o;
	const char *names[2 * OPTIONS_MAX + 1] = { "help" };
	size_t i, nr = 1, len = strlen(p->why);

	for (i = 0; (o = &p->c->options[i])->name || o->letter; i++) {
		if (o->name && o->help)
			names[nr++] = o->name;
		if (o->negatable)
			names[nr++] = p->names[i];
	}
	nearest_hint(option, strcspn(option, "="), "--", names, nr,
	    p->why + len, COMMAND_WHY_MAX - len);
}

/* An unknown option, or a value that is missing or too much. */
static enum command_result complain(struct command_parser *p, int c,
    char **argv)
{
	/* In front of an unfinished bundle of letters, an earlier argument. */
	const char *arg = argv[optind - 1];
	bool is_long = !optopt || optopt == 'h' || optopt >= LONG;

	if (c == '?' && !is_long) {
		snprintf(p->why, COMMAND_WHY_MAX, "unknown switch `%c'",
		    optopt);
		return COMMAND_WRONG;
	}
	if (c == '?' && !optopt) {
		snprintf(p->why, COMMAND_WHY_MAX, "unknown option `%s'",
		    arg + 2);
		if (!p->c->is_like_git)
			add_hint(p, arg + 2);
		return COMMAND_WRONG;
	}
	if (c == '?')
		snprintf(p->why, COMMAND_WHY_MAX,
		    "option `%.*s' takes no value", (int)strcspn(arg + 2, "="),
		    arg + 2);
	else if (is_long)
		snprintf(p->why, COMMAND_WHY_MAX,
		    "option `%s' requires a value", arg + 2);
	else
		snprintf(p->why, COMMAND_WHY_MAX,
		    "switch `%c' requires a value", optopt);
	return COMMAND_BAD_VALUE;
}

static bool are_given_well(const struct command_parser *p)
{
	const struct command_option *o = p->c->options;
	char one[48], other[48];
	size_t i, k;

	for (i = 0; o[i].name || o[i].letter; i++) {
		if (o[i].required && !p->given[i]) {
			snprintf(p->why, COMMAND_WHY_MAX,
			    "option `%s' is required", o[i].name);
			return false;
		}
		for (k = 0; k < i; k++)
			if (p->given[i] && p->given[k] && o[i].excludes &&
			    o[i].excludes == o[k].excludes) {
				label(&o[k], one);
				label(&o[i], other);
				snprintf(p->why, COMMAND_WHY_MAX,
				    "options `%s' and `%s' exclude each other",
				    one, other);
				return false;
			}
	}
	return true;
}

static bool is_number_of_arguments(const struct command_parser *p, int nr,
    char **args)
{
	int most = p->c->most ? p->c->most : p->c->least;

	if (nr > most)
		snprintf(p->why, COMMAND_WHY_MAX, "unexpected argument '%s'",
		    args[most]);
	else if (nr < p->c->least)
		snprintf(p->why, COMMAND_WHY_MAX, "missing argument: %s",
		    p->c->arguments);
	else
		return true;
	return false;
}

static enum command_result read_all(struct command_parser *p, int argc,
    char **argv)
{
	static char dashes[] = "--";
	size_t i;
	int c;

	optind = 0; /* glibc: forget the state of an earlier call */
	opterr = 0;
	while ((c = getopt_long(argc, argv, p->shorts, p->longs, NULL)) >= 0) {
		if (c == 'h')
			return COMMAND_HELPS;
		if (c == '?' || c == ':')
			return complain(p, c, argv);
		i = find(p, c);
		if (p->c->options[i].kind == COMMAND_HELP)
			return COMMAND_HELPS;
		/* getopt_long() then reads the argument again, as "--". */
		if (p->c->options[i].kind == COMMAND_END)
			argv[--optind] = dashes;
		p->given[i] = true;
		if (!store(&p->c->options[i], c >= LONG && c & NEGATED,
			p->values, p->why))
			return COMMAND_WRONG;
	}
	return COMMAND_OK;
}

enum command_result command_parse(const struct command *c, void *values,
    int *argc, char ***argv, char why[COMMAND_WHY_MAX])
{
	struct command_parser p = { .c = c, .values = values, .why = why };
	enum command_result result;

	why[0] = '\0';
	prepare(&p);
	result = read_all(&p, *argc, *argv);
	if (result != COMMAND_OK)
		return result;
	*argc -= optind;
	*argv += optind;
	if (!are_given_well(&p) || !is_number_of_arguments(&p, *argc, *argv))
		return COMMAND_WRONG;
	return COMMAND_OK;
}

void command_list_done(struct command_list *list)
{
	free(list->items);
	list->items = NULL;
	list->nr = 0;
}
