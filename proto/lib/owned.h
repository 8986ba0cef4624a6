/*
 * A directory of which root knows who decides where the path leads. So a
 * command of root never works for one user in the directory of another. One
 * thread; may block.
 */
#ifndef PROTO_LIB_OWNED_H
#define PROTO_LIB_OWNED_H

#include <stdbool.h>
#include <sys/stat.h>

/* Zero-initialised is empty. */
struct owned {
	char *path; /* without links; owned */
	struct stat st;
	bool is_for_root; /* root's command found it */
};

/*
 * Finds DIR. For root, only the owner of DIR may decide where the path leads.
 * So the result is false if another user made a link on the way, or could
 * exchange a directory there. After true, the owner may use the path again, and
 * it means the same directory, or another directory of the same owner. On
 * failure *WHY is an owned sentence, or NULL without memory.
 */
bool owned_find(struct owned *o, const char *dir, char **why);
void owned_done(struct owned *o);

/*
 * Whether a link at PATH may be followed. False if a user other than root and
 * the present user can have made the link: PATH or the directory around PATH
 * belongs to another user, or others may write to the directory. Also false if
 * PATH is missing.
 */
bool owned_trusts_link(const char *path);

#endif
