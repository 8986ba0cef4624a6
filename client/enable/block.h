/*
 * refd's lines in a file of git's configuration syntax. Each line ends with a
 * comment that marks the line. Other lines are never changed, and a line that
 * somebody else changed loses the mark and stays: git config writes the lines
 * that it changes without the old comments.
 *
 *	# hook = "/usr/bin/refd" # refd disable removes this line
 *	[core] # refd disable removes this line
 *		fsync = "all" # refd disable removes this line
 *
 * A key with a dot is a setting of git's. A key without a dot is a note, which
 * git takes for a comment. Settings of an inactive block are notes, too.
 *
 * Pure; one thread.
 */
#ifndef CLIENT_ENABLE_BLOCK_H
#define CLIENT_ENABLE_BLOCK_H

#include "client/base/cli.h"

struct block_line {
	char *key, *value; /* owned */
};

/* Zero-initialised is empty. */
struct block {
	struct block_line *lines;
	size_t nr;
	bool is_active; /* as read */
	bool is_whole;  /* as read: active, and no setting was taken away */
};

void block_done(struct block *b);
void block_copy(const struct block *from, struct block *to);

/* The value of KEY, borrowed; NULL: there is none. */
const char *block_get(const struct block *b, const char *key);
/* A NULL VALUE is any value, here and for block_remove(). */
bool block_has(const struct block *b, const char *key, const char *value);
/* One more line, unless B has it. */
void block_add(struct block *b, const char *key, const char *value);
/* The only value of KEY. */
void block_set(struct block *b, const char *key, const char *value);

void block_remove(struct block *b, const char *key, const char *value);
/* Does the file of BEFORE say all of B already, and nothing else? */
bool block_is_done(const struct block *before, const struct block *b);

/* More than refd writes: the work grows with the square of the lines. */
#define BLOCK_LINES 10000

/* The block in the file CONFIG; there may be none. Reads at most one line more
 * than BLOCK_LINES, and no line that is longer than refd's lines. */
void block_read(struct block *b, const struct text *config);
/*
 * CONFIG with B in the place of the present block, at the end, so that B's
 * settings count. An empty B removes the block: if nobody else changed the
 * file, TO then has the bytes from before the first block. A last line without
 * an end is a last line without an end again.
 */
void block_replace(const struct text *config, const struct block *b,
    bool is_active, struct text *to);
/* Whether nothing can follow CONFIG: git would join the next line to the last
 * line, which ends with a backslash. */
bool block_has_no_place(const struct text *config);

#endif
