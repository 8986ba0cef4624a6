/*
 * The hook reference-transaction in a group of nodes: other nodes would never
 * get what git writes. So git may not change a value of a ref, whether the
 * daemon is there or not.
 *
 * Permitted are transactions that change no value: git pack-refs, git gc; the
 * refs of a worktree, such as HEAD; and the deletion of a value that this node
 * has kept for another program (REFD_DIVERGED).
 *
 * Blocking; one thread.
 */
#ifndef CLIENT_GATE_GROUP_GATE_H
#define CLIENT_GATE_GROUP_GATE_H

#include "client/git/gitdir.h"

/* May git do the lines of INPUT, in phase prepared? False: an error was
 * printed. */
bool group_gate_allows(const struct gitdir *gd, const struct text *input);

#endif
