/*
 * The fields of one line of stdin.h's language: words, refs, object ids.
 * Private to it. All return false with the complaint in p->error.
 */
#ifndef CLIENT_UPDATE_STDIN_FIELDS_H
#define CLIENT_UPDATE_STDIN_FIELDS_H

#include "client/update/stdin.h"

enum stdin_oid {
	STDIN_NEW_OID,
	STDIN_NEW_OID_OR_EMPTY, /* empty: zero */
	STDIN_OLD_OID
};

bool stdin_fail(struct stdin_parser *p, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* The first field, into p->ref and p->update.name. */
bool stdin_take_ref(struct stdin_parser *p, const char *command);
/* The next field; FIELD's old content goes. Empty where there is none. */
bool stdin_take_next(struct stdin_parser *p, struct text *field);
/* *GIVEN is false where there is none; *OID is then zero. */
bool stdin_take_oid(struct stdin_parser *p, const char *command,
    enum stdin_oid which, struct refd_oid *oid, bool *given);
/* Nothing may follow, and the name must be one that git would do this to. */
bool stdin_take_end(struct stdin_parser *p, const char *command);
/* "<old-oid>", "<new-oid>", or as 2.39 has them. */
const char *stdin_oid_word(const struct stdin_parser *p, enum stdin_oid which);

#endif
