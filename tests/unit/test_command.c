/*
 * Proves that the parser of command lines stores each kind of option, reports
 * each error in git's words, and prints a help that names every option.
 */
#include <stdlib.h>
#include <string.h>

#include "proto/lib/command.h"
#include "proto/lib/nearest.h"
#include "tests/lib/suite.h"

enum form { LINES, JSON };

struct values {
	bool flag, on, quiet;
	enum form form;
	const char *text, *taken;
	int number;
	struct command_list list;
};

static const char *take(void *values, const char *arg)
{
	((struct values *)values)->taken = arg;
	return strcmp(arg, "bad") != 0 ? NULL : "a good word";
}

static const struct command_option options[] = {
	{ OPTION_FLAG("flag", 'f', "a flag", struct values, flag) },
	{ OPTION_FLAG("on", 0, "on or off", struct values, on),
	    .negatable = true },
	{ OPTION_FLAG("quiet", 0, "excludes -z", struct values, quiet),
	    .excludes = 'q' },
	{ OPTION_SET("json", 0, "a form", struct values, form, JSON),
	    .negatable = true },
	{ OPTION_STRING("text", 't', "TEXT", "a text", struct values, text) },
	{ OPTION_NUMBER("number", 0, "N", "a number", struct values, number, 1,
	    100) },
	{ OPTION_LIST("item", 0, "ITEM", "an item", struct values, list) },
	{ OPTION_TAKE("word", 0, "WORD", "a word", take) },
	{ OPTION_FLAG(NULL, 'z', "excludes --quiet", struct values, flag),
	    .excludes = 'q' },
	{ .name = "end-of-options", .kind = COMMAND_END },
	{ .name = "all-help", .kind = COMMAND_HELP },
	{ 0 },
};

static const struct command command = {
	.name = "try",
	.arguments = "<name> [<name>]",
	.least = 1,
	.most = 2,
	.options = options,
};

static struct values values;
static char why[COMMAND_WHY_MAX];
static char *args[16];
static int nr_args;

static void setup(void)
{
	memset(&values, 0, sizeof(values));
}

static void teardown(void)
{
	command_list_done(&values.list);
}

/* LINE has words that are separated by blanks. */
static enum command_result parse_as(const struct command *c, const char *line)
{
	static char copy[256], *words[16];
	char **at = words, *word;
	enum command_result result;

	strcpy(copy, line);
	nr_args = 0;
	words[nr_args++] = (char *)c->name;
	for (word = strtok(copy, " "); word; word = strtok(NULL, " "))
		words[nr_args++] = word;
	words[nr_args] = NULL;
	result = command_parse(c, &values, &nr_args, &at, why);
	if (result == COMMAND_OK)
		memcpy(args, at, sizeof(*at) * (size_t)nr_args);
	return result;
}

static enum command_result parse(const char *line)
{
	return parse_as(&command, line);
}

CASE(.setup = setup, .teardown = teardown);

TEST(test_kinds)
{
	ck_assert_int_eq(parse("-f --on --json -t a --number 7 --item=x a "
			       "--item y --word good"),
	    COMMAND_OK);
	ck_assert(values.flag && values.on);
	ck_assert_int_eq(values.form, JSON);
	ck_assert_str_eq(values.text, "a");
	ck_assert_int_eq(values.number, 7);
	ck_assert_uint_eq(values.list.nr, 2);
	ck_assert_str_eq(values.list.items[1], "y");
	ck_assert_str_eq(values.taken, "good");
	ck_assert_int_eq(nr_args, 1);
	ck_assert_str_eq(args[0], "a");
	ck_assert_int_eq(parse("--no-on --no-json a b"), COMMAND_OK);
	ck_assert(!values.on);
	ck_assert_int_eq(values.form, LINES);
	ck_assert_int_eq(nr_args, 2);
}

TEST(test_end_of_options)
{
	ck_assert_int_eq(parse("-- --flag -f"), COMMAND_OK);
	ck_assert_str_eq(args[0], "--flag");
	ck_assert_int_eq(parse("--end-of-options --flag -f"), COMMAND_OK);
	ck_assert_str_eq(args[1], "-f");
	ck_assert(!values.flag);
}

static const struct {
	const char *line;
	enum command_result result;
	const char *why;
} wrong[] = {
	{ "--frob a", COMMAND_WRONG, "unknown option `frob'" },
	{ "--frob=1 a", COMMAND_WRONG, "unknown option `frob=1'" },
	{ "--jsno a", COMMAND_WRONG,
	    "unknown option `jsno'; did you mean --json?" },
	{ "--iten=x a", COMMAND_WRONG,
	    "unknown option `iten=x'; did you mean --item?" },
	{ "--no-jso-n a", COMMAND_WRONG,
	    "unknown option `no-jso-n'; did you mean --no-json?" },
	{ "--n a", COMMAND_WRONG,
	    "unknown option `n'; did you mean --no-on, --no-json or "
	    "--number?" },
	{ "--tzzz a", COMMAND_WRONG, "unknown option `tzzz'" },
	{ "-x a", COMMAND_WRONG, "unknown switch `x'" },
	{ "--flag -xf a", COMMAND_WRONG, "unknown switch `x'" },
	{ "a --text", COMMAND_BAD_VALUE, "option `text' requires a value" },
	{ "a -t", COMMAND_BAD_VALUE, "switch `t' requires a value" },
	{ "--flag=yes a", COMMAND_BAD_VALUE, "option `flag' takes no value" },
	{ "--help=yes a", COMMAND_BAD_VALUE, "option `help' takes no value" },
	{ "--no-on=1 a", COMMAND_BAD_VALUE, "option `no-on' takes no value" },
	{ "--number x a", COMMAND_WRONG,
	    "option `number' takes a number from 1 to 100, not 'x'" },
	{ "--number 0 a", COMMAND_WRONG,
	    "option `number' takes a number from 1 to 100, not '0'" },
	{ "--number 101 a", COMMAND_WRONG,
	    "option `number' takes a number from 1 to 100, not '101'" },
	{ "--number 7x a", COMMAND_WRONG,
	    "option `number' takes a number from 1 to 100, not '7x'" },
	{ "--number=-7 a", COMMAND_WRONG,
	    "option `number' takes a number from 1 to 100, not '-7'" },
	{ "--number 99999999999999999999 a", COMMAND_WRONG,
	    "option `number' takes a number from 1 to 100, not "
	    "'99999999999999999999'" },
	{ "--word bad a", COMMAND_WRONG,
	    "option `word' takes a good word, not 'bad'" },
	{ "--quiet -z a", COMMAND_WRONG,
	    "options `quiet' and `z' exclude each other" },
	{ "", COMMAND_WRONG, "missing argument: <name> [<name>]" },
	{ "--", COMMAND_WRONG, "missing argument: <name> [<name>]" },
	{ "a b c", COMMAND_WRONG, "unexpected argument 'c'" },
	{ "--text a --help", COMMAND_HELPS, "" },
	{ "-h", COMMAND_HELPS, "" },
	{ "--all-help", COMMAND_HELPS, "" },
};

TEST(test_wrong, .times = sizeof(wrong) / sizeof(wrong[0]))
{
	ck_assert_int_eq(parse(wrong[_i].line), wrong[_i].result);
	ck_assert_str_eq(why, wrong[_i].why);
}

/* The beginning of a name is better than a wrong letter. */
TEST(test_hint)
{
	static const char *const names[] = { "status", "stats", "watch", "log",
		"locks", "top" };
	static const struct {
		const char *word, *hint;
	} tries[] = {
		{ "st", "; did you mean status or stats?" },
		{ "lgo", "; did you mean log?" },
		{ "stat", "; did you mean status or stats?" },
		{ "statsu", "; did you mean status or stats?" },
		{ "lock", "; did you mean locks?" },
		{ "wtahc", "; did you mean watch?" },
		{ "wazzh", "; did you mean watch?" },
		{ "wzzzh", "" },
		{ "tzz", "" },
		{ "frobnicate", "" },
		{ "", "" },
		{ "a-word-that-is-longer-than-each-name-of-a-command", "" },
	};
	char hint[80];
	size_t i;

	for (i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
		nearest_hint(tries[i].word, strlen(tries[i].word), "", names, 6,
		    hint, sizeof(hint));
		ck_assert_str_eq(hint, tries[i].hint);
	}
	nearest_hint("lgo", 3, "", names, 6, hint, 10);
	ck_assert_str_eq(hint, "; did you");
}

/* A program that knows git gets git's words alone. */
TEST(test_no_hint_like_git)
{
	struct command c = command;

	c.is_like_git = true;
	ck_assert_int_eq(parse_as(&c, "--jsno a"), COMMAND_WRONG);
	ck_assert_str_eq(why, "unknown option `jsno'");
}

TEST(test_required)
{
	static const struct command_option required[] = {
		{ OPTION_STRING("at", 0, "TIME", "a time", struct values, text),
		    .required = true },
		{ 0 },
	};
	static const struct command c = { .name = "try", .options = required };

	ck_assert_int_eq(parse_as(&c, ""), COMMAND_WRONG);
	ck_assert_str_eq(why, "option `at' is required");
	ck_assert_int_eq(parse_as(&c, "--at 1"), COMMAND_OK);
	ck_assert_int_eq(parse_as(&c, "--at 1 x"), COMMAND_WRONG);
	ck_assert_str_eq(why, "unexpected argument 'x'");
}

TEST(test_long_argument)
{
	static char option[4 * COMMAND_WHY_MAX];
	char *words[] = { (char *)"try", option, NULL }, **at = words;
	int nr = 2;

	memset(option, 'x', sizeof(option) - 1);
	memcpy(option, "--", 2);
	ck_assert_int_eq(command_parse(&command, &values, &nr, &at, why),
	    COMMAND_WRONG);
	ck_assert_uint_eq(strlen(why), COMMAND_WHY_MAX - 1);
}

TEST(test_help)
{
	char help[4096];

	command_help(&command, NULL, help, sizeof(help));
	ck_assert_str_eq(help,
	    "usage: refd try [--flag] [--on] [--quiet | -z] [--json] "
	    "[--text TEXT]\n"
	    "                [--number N] [--item ITEM]... [--word WORD] "
	    "<name> [<name>]\n"
	    "\n"
	    "    -f, --flag            a flag\n"
	    "    --[no-]on             on or off\n"
	    "    --quiet               excludes -z\n"
	    "    --[no-]json           a form\n"
	    "    -t, --text TEXT       a text\n"
	    "    --number N            a number\n"
	    "    --item ITEM           an item\n"
	    "    --word WORD           a word\n"
	    "    -z                    excludes --quiet\n");
	command_help(&command, "usage: try\n", help, sizeof(help));
	ck_assert(!strncmp(help, "usage: try\n\n    -f", 18));
	command_help(&command, NULL, help, 20);
	ck_assert_str_eq(help, "usage: refd try [--");
}

TEST(test_help_of_all_parts)
{
	static const struct command_option one[] = {
		{ OPTION_STRING("at", 0, "TIME",
		    "a text that is too long for the rest of the first line "
		    "and goes on in a second line",
		    struct values, text) },
		{ 0 },
	};
	static const struct command c = {
		.name = "try",
		.purpose = "Tries a thing that needs more than a line, because "
			   "its purpose has two parts. This is part two.",
		.example = "refd try --at now",
		.outcome = "Tries the thing now.",
		.manual = "refd-try(1)",
		.options = one,
	};
	char help[4096];

	command_help(&c, NULL, help, sizeof(help));
	ck_assert_str_eq(help,
	    "usage: refd try [--at TIME]\n"
	    "\n"
	    "Tries a thing that needs more than a line, because its purpose "
	    "has two parts.\n"
	    "This is part two.\n"
	    "\n"
	    "    --at TIME             a text that is too long for the rest of "
	    "the first\n"
	    "                          line and goes on in a second line\n"
	    "\n"
	    "Example:\n"
	    "    refd try --at now\n"
	    "    Tries the thing now.\n"
	    "\n"
	    "Manual: refd-try(1)\n");
	command_usage(&c, help, sizeof(help));
	ck_assert_str_eq(help,
	    "usage: refd try [--at TIME]\n"
	    "'refd try -h' explains the options.\n");
}
