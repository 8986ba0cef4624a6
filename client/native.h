/*
 * Pushes that git has to do itself, because of a rule of receive-pack's
 * update() that neither hook nor daemon enforces: denials, other hooks, work
 * trees, shallow pushes, namespaces. Reads configuration, environment and the
 * repository; changes nothing.
 */
#ifndef CLIENT_NATIVE_H
#define CLIENT_NATIVE_H

#include "client/gitconfig.h"
#include "client/gitdir.h"
#include "client/push.h"

/* Why git has to do the whole push, or NULL. Static. */
const char *native_reason(const struct push *push,
    const struct gitconfig *config, const struct gitdir *gd);

#endif
