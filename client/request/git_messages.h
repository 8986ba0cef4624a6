/*
 * The messages of git for statuses and details. Pure.
 *
 * The sentences follow "fatal: " or "error: ". git 2.39 and 2.55 differ in a
 * few sentences. If git has no sentence for a failure, the daemon's text is
 * used.
 */
#ifndef CLIENT_REQUEST_GIT_MESSAGES_H
#define CLIENT_REQUEST_GIT_MESSAGES_H

#include "proto/lib/cli.h"
#include "proto/message.h"

/* The version of the messages. Scripts may parse the messages of 2.39, so these
 * can be chosen. The rules are always those of 2.55. */
enum git_messages_version { GIT_2_55, GIT_2_39 };

/* "2.39" or "2.55"; false for another version. */
bool git_messages_parse(const char *text, enum git_messages_version *version);

/* The client and the daemon may see a repository at different paths, so FROM,
 * the path in the daemon's text, is replaced by TO. */
struct git_messages_place {
	const char *from, *to;
};

/* Appends git's sentence for the failure RES of U. PLACE is NULL if both paths
 * are the same. */
void git_messages_detail(const struct refd_update *u,
    const struct refd_result *res, enum git_messages_version version,
    const struct git_messages_place *place, struct text *out);

/* Is the new value of the update bad, whatever the value of the ref? git
 * reports a bad value at once, and other failures after the last command. */
bool git_messages_is_bad_value(enum refd_status status);

/* git 2.55 checks names when all refs are locked, so conflicts of names are
 * reported after all other failures. */
bool git_messages_is_said_last(const struct refd_result *res);

/* False, with git's message in OUT: git refuses the name of U at once. An
 * update that writes a value takes any well-formed name. */
bool git_messages_take_name(const struct refd_update *u, struct text *out);

/* The reason in a "rejected" line of update-ref --batch-updates; without one
 * in git, the text of the status. */
const char *git_messages_reason(enum refd_status status);

/* The reason that receive-pack of git 2.55 reports for a single failed ref;
 * for a held lock, the reason of older versions. */
const char *git_messages_push(enum refd_status status);

/* Appends the sentence of 2.55 for the detail in TEXT, or TEXT itself, or the
 * text of STATUS if TEXT is empty. */
void git_messages_text(enum refd_status status, const char *text,
    struct text *out);

/* Did the transaction fail only for want of time or memory? */
bool git_messages_is_busy(enum refd_status status);

#endif
