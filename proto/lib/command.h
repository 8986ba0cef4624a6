/*
 * The declaration of a command, and the parser of its command line. The help,
 * the completion of the shells and the check of the manual pages come from the
 * same declaration, so all of them agree.
 *
 * Messages of the parser are git's, and then name similar options.
 * getopt_long() keeps static state, so one thread at a time. Nothing blocks or
 * prints.
 */
#ifndef PROTO_LIB_COMMAND_H
#define PROTO_LIB_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

enum command_kind {
	COMMAND_FLAG,   /* bool: set to VALUE */
	COMMAND_SET,    /* int or enum: set to VALUE */
	COMMAND_STRING, /* const char *: borrowed from argv */
	COMMAND_NUMBER, /* int: from LEAST to MOST */
	COMMAND_LIST,   /* struct command_list: every argument */
	COMMAND_TAKE,   /* calls TAKE */
	COMMAND_HELP,   /* as --help */
	COMMAND_END     /* as "--" */
};

/* The values of an option that may be repeated. Borrows the strings, and owns
 * the array, so call command_list_done(). */
struct command_list {
	const char **items;
	size_t nr;
};

#define COMMAND_WHY_MAX 512

struct command_option {
	const char *name; /* the long name, or NULL */
	char letter;      /* the short name, or 0 */
	const char *arg;  /* the name of the argument, or NULL: takes none */
	const char *help; /* NULL: not in the help */
	enum command_kind kind;
	size_t offset; /* of the value in the caller's struct */
	int value, least, most;
	bool negatable; /* --no-NAME sets a flag to !VALUE, an enum to 0 */
	bool required;
	char excludes; /* options with the same letter exclude each other */
	/* May be repeated; only for the synopsis. LIST implies it. */
	bool repeats;
	/* NULL, or the name of a right argument: "a number". Static. */
	const char *(*take)(void *values, const char *arg);
};

/* The rows of a table of options, which ends with an empty row. */
#define OPTION_FLAG(long_name, short_name, text, type, member)                 \
	.name = (long_name), .letter = (short_name), .help = (text),           \
	.kind = COMMAND_FLAG, .offset = offsetof(type, member), .value = 1
#define OPTION_SET(long_name, short_name, text, type, member, to)              \
	.name = (long_name), .letter = (short_name), .help = (text),           \
	.kind = COMMAND_SET, .offset = offsetof(type, member), .value = (to)
#define OPTION_STRING(long_name, short_name, argument, text, type, member)     \
	.name = (long_name), .letter = (short_name), .arg = (argument),        \
	.help = (text), .kind = COMMAND_STRING,                                \
	.offset = offsetof(type, member)
#define OPTION_NUMBER(long_name, short_name, argument, text, type, member,     \
    min, max)                                                                  \
	.name = (long_name), .letter = (short_name), .arg = (argument),        \
	.help = (text), .kind = COMMAND_NUMBER,                                \
	.offset = offsetof(type, member), .least = (min), .most = (max)
#define OPTION_LIST(long_name, short_name, argument, text, type, member)       \
	.name = (long_name), .letter = (short_name), .arg = (argument),        \
	.help = (text), .kind = COMMAND_LIST, .offset = offsetof(type, member)
#define OPTION_TAKE(long_name, short_name, argument, text, function)           \
	.name = (long_name), .letter = (short_name), .arg = (argument),        \
	.help = (text), .kind = COMMAND_TAKE, .take = (function)

struct command {
	const char *name;
	const char *summary;   /* NULL: not listed by refd help */
	const char *usage;     /* NULL: made from the options */
	const char *arguments; /* in the synopsis; NULL: none */
	const char *purpose;   /* one or two sentences */
	const char *example;   /* a command line */
	const char *outcome;   /* of the example, in a sentence; or NULL */
	const char *manual;    /* "refd-log(1)" */
	int least, most;       /* number of arguments; MOST 0: LEAST */
	/* Scripts that know git read the messages, so their prefixes are git's,
	 * and the parser suggests no other option. */
	bool is_like_git;
	const struct command_option *options;
	/* argv[0] is the name. Returns the exit status. */
	int (*run)(const struct command *c, int argc, char **argv);
};

#define COMMAND_ARGUMENTS_ANY 0x7fffffff

enum command_result {
	COMMAND_OK,
	COMMAND_HELPS,    /* help is wanted */
	COMMAND_WRONG,    /* WHY, and then the usage */
	COMMAND_BAD_VALUE /* WHY alone: an option lacks its value or has one */
};

/*
 * Stores the options into VALUES, and leaves the arguments in *ARGV, *ARGC of
 * them. Unless the result is COMMAND_OK, VALUES has the options up to there,
 * and WHY has a message.
 */
enum command_result command_parse(const struct command *c, void *values,
    int *argc, char ***argv, char why[COMMAND_WHY_MAX]);

/* Room for the help of every command. */
#define COMMAND_HELP_MAX 8192

/* The help: usage, purpose, options, example and manual page. HEAD replaces the
 * usage, or is NULL. Ends with a newline, and is cut at SIZE bytes. */
void command_help(const struct command *c, const char *head, char *buf,
    size_t size);
/* For errors: the usage, and how to get the help. */
void command_usage(const struct command *c, char *buf, size_t size);

void command_list_done(struct command_list *list);

#endif
