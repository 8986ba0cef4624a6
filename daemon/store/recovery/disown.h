/*
 * A repository made nobody's: the id that says which journal it belongs to,
 * and what that one's daemon left standing, are gone; what else is in refd/
 * stays. One thread; blocks; nothing logs.
 */
#ifndef STORE_DISOWN_H
#define STORE_DISOWN_H

#include "daemon/base/sys.h"

/* PATH (absolute): its git-dir or common dir, or a work tree with a .git in
 * it. One that is nobody's already is fine. *UNLOCKED is added to. On failure
 * *WHY is a sentence, to be freed; -EAGAIN: a daemon serves it. */
int disown_repo(const struct sys *sys, const char *path, size_t *unlocked,
    char **why);

#endif
