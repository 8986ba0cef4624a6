/*
 * Pushes that are left to git as a whole, because only git can do a part of
 * them.
 */
#ifndef CLIENT_PUSH_PUSH_FALLBACK_H
#define CLIENT_PUSH_PUSH_FALLBACK_H

#include "client/push/rules.h"

/* Why git has to do the push, or NULL. Static. Runs git if a ref is to be
 * deleted and does not have the given value. */
const char *push_fallback_reason(const struct push *push,
    const struct gitconfig *config, const struct gitdir *gd,
    const struct rules *rules);

#endif
