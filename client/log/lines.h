/*
 * Changes for people. On a terminal, a table that fits, with a heading. In a
 * pipe or file, a line per change of seven fields, separated by tabs, with full
 * names and values, for grep and cut. A control character or a tab in a name
 * would break a line, so both become "?". One thread; nothing is flushed.
 */
#ifndef CLIENT_LOG_LINES_H
#define CLIENT_LOG_LINES_H

#include "proto/lib/cli.h"
#include "proto/message.h"

#define LINES_FIELDS  7 /* of a line in a pipe */
#define COLUMNS_MAX   8
#define COLUMNS_NEVER SIZE_MAX

struct column {
	const char *heading;
	enum colour colour;
	size_t least;    /* not cut below this width; COLUMNS_NEVER: not cut */
	bool cuts_begin; /* a long cell becomes "..." and its end */
	bool is_number;  /* aligned on the right */
};

/* A table on a terminal: the cells of a column have the same width, and a long
 * cell is cut, so that a line fits the terminal. The width of a character is
 * one column. */
struct columns {
	const struct column *list;
	size_t nr;
	size_t width; /* of the terminal */
	/* Internal: of the cells until now. */
	size_t widest[COLUMNS_MAX];
	bool has_heading;
};

/* The width of the terminal, as in git: $COLUMNS, or the size of the terminal
 * of standard output, or 80. Never below 80. */
size_t columns_of_terminal(void);

struct lines {
	bool is_table;          /* for a terminal */
	bool is_relative;       /* times, as "3 minutes ago" */
	bool is_verbose;        /* all facts below a change */
	bool has_repo;          /* a table has the column of the repository */
	struct columns columns; /* .width is set for a table */
};

/* Appends the changes of ANS. NOW_MS is the present time since 1970. */
void lines_add(struct lines *l, const struct refd_answer *ans, uint64_t now_ms,
    struct text *out);

/*
 * Adds who made a change: the account, then the person, or else the address of
 * the SSH client: "git (alice)", "git from 192.0.2.7", "ada"; "uid=103" without
 * an account. The kernel tells the daemon the account of a client. All other
 * names come from the client: from its environment, as set by the program that
 * authenticated the user, or from its configuration. So a person's name never
 * stands alone. Reads the password file.
 */
void lines_add_who(struct text *t, const struct refd_record *rec);

#endif
