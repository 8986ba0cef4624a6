/*
 * Statuses and details in git's words. Pure.
 *
 * The sentences are those that stand behind "fatal: " or "error: "; 2.39 differs
 * from 2.55 in a few of them. What git has no words for the daemon says itself.
 */
#ifndef CLIENT_REQUEST_WORDS_H
#define CLIENT_REQUEST_WORDS_H

#include "client/base/cli.h"
#include "proto/message.h"

/* Whose words: those of 2.55, or of 2.39 for who reads them by machine. The
 * rules are 2.55's either way. */
enum git_words { GIT_2_55, GIT_2_39 };

/* "2.39" or "2.55"; false for another version. */
bool words_parse(const char *version, enum git_words *words);

/* How git names the files of a repository: by another path than the daemon. */
struct words_place {
	const char *from, *to;
};

/* What git says after "fatal: " or "error: " when U fails as RES says,
 * appended to OUT. PLACE: NULL where both paths are the same. */
void words_detail(const struct refd_update *u, const struct refd_result *res,
    enum git_words words, const struct words_place *place, struct text *out);

/* Is the new value no good, whatever the ref is at? git says so at once, and
 * of everything else only when it has read all. */
bool words_is_bad_value(enum refd_status status);

/* Is that said last of all by 2.55? It looks for names that conflict when all
 * refs are locked; the locks are in each other's way before that. */
bool words_is_said_last(const struct refd_result *res);

/* False, with git's words in OUT, for a name that git refuses at once for what
 * U does. Where a value is written, any well-formed name will do. */
bool words_take_name(const struct refd_update *u, struct text *out);

/* The reason in a "rejected" line of update-ref --batch-updates; for what
 * git has no word for, the status's own text. */
const char *words_reason(enum refd_status status);

/* The reason that receive-pack of git 2.55 reports for a ref that failed by
 * itself. */
const char *words_push(enum refd_status status);

/* TEXT, or what the detail there says in 2.55's words, or the usual text of
 * STATUS; appended to OUT. */
void words_text(enum refd_status status, const char *text, struct text *out);

/* Is that the end of the transaction for want of time or room, and nothing
 * that is wrong with it? */
bool words_is_busy(enum refd_status status);

#endif
