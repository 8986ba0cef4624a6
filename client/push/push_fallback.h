/*
 * Pushes that are left to git, whole, because of what only git does.
 */
#ifndef CLIENT_PUSH_PUSH_FALLBACK_H
#define CLIENT_PUSH_PUSH_FALLBACK_H

#include "client/push/rules.h"

/* Why the commands of PUSH that are refd's are git's to do; NULL: they are
 * not. Static. Runs git where a ref is to be deleted that does not have the
 * value given. */
const char *push_fallback_reason(const struct push *push,
    const struct gitconfig *config, const struct gitdir *gd,
    const struct rules *rules);

#endif
