/*
 * A value of receive.procReceiveRefs or refd.chain, as receive-pack reads it: a
 * prefix of whole components. An optional "adm!:" in front selects kinds of
 * changes; "!" negates the prefix. Pure; any thread.
 */
#ifndef CLIENT_HOOKS_REFPATTERN_H
#define CLIENT_HOOKS_REFPATTERN_H

#include <stdbool.h>
#include <stddef.h>

/* Borrows the value. */
struct refpattern {
	bool adds, deletes, modifies, is_negative;
	const char *prefix;
	size_t len;
};

void refpattern_parse(struct refpattern *p, const char *value);
/* FROM_NOTHING: there is no old value. TO_NOTHING: there is no new value. */
bool refpattern_matches(const struct refpattern *p, const char *name,
    bool from_nothing, bool to_nothing);

#endif
