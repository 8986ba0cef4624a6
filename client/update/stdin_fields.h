/*
 * The fields of one line of stdin.h's language: words, refs, object ids.
 * Private to the parser. Every function returns false with a message in
 * p->error.
 */
#ifndef CLIENT_UPDATE_STDIN_FIELDS_H
#define CLIENT_UPDATE_STDIN_FIELDS_H

#include "client/update/stdin.h"

enum stdin_oid {
	STDIN_NEW_OID,
	STDIN_NEW_OID_OR_EMPTY, /* empty means zero */
	STDIN_OLD_OID
};

bool stdin_fail(struct stdin_parser *p, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* The first field, into p->ref and p->update.name. */
bool stdin_take_ref(struct stdin_parser *p, const char *command);
/* The next field; empty if there is none. Replaces the content of FIELD. */
bool stdin_take_next(struct stdin_parser *p, struct text *field);
/* Without a field, *GIVEN is false and *OID is zero. */
bool stdin_take_oid(struct stdin_parser *p, const char *command,
    enum stdin_oid which, struct refd_oid *oid, bool *given);
/* Fails if another field follows, or if git refuses the name for this command.
 */
bool stdin_take_end(struct stdin_parser *p, const char *command);
/* "<old-oid>", "<new-oid>", or the names of 2.39. */
const char *stdin_oid_word(const struct stdin_parser *p, enum stdin_oid which);

#endif
