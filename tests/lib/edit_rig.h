/*
 * A bare repository on the real file system, and edits of one ref in it, for
 * unit tests of daemon/store/publish/edit.h. One per test: er_setup() and
 * er_teardown() are a checked fixture of libcheck. Paths are relative to
 * tmp_root.
 */
#ifndef TESTS_LIB_EDIT_RIG_H
#define TESTS_LIB_EDIT_RIG_H

#include <sys/stat.h>

#include "daemon/store/publish/edit.h"

#define ER_REF    "refs/heads/x"
#define ER_FILE   "r/" ER_REF
#define ER_LOCK   ER_FILE ".lock"
#define ER_LOG    "r/logs/" ER_REF
#define ER_TOKEN  "stage/00000000000000ab.0"
#define ER_STAGED "stage/00000000000000ab-3"

#define ER_NONE "0000000000000000000000000000000000000000"
#define ER_ONE  "1111111111111111111111111111111111111111"
#define ER_TWO  "2222222222222222222222222222222222222222"
#define ER_WHO  "A U Thor <a@example.org> 1700000000 +0000"
/* The line that er_plan owes for er_member, and a line of another writer. */
#define ER_LINE  ER_ONE " " ER_TWO " " ER_WHO "\tm\n"
#define ER_OTHER ER_TWO " " ER_ONE " " ER_WHO "\n"

/* Every evidence. REPAIR is the last and the only one with git's lock. */
#define ER_ALL 5
extern const enum evidence er_all[ER_ALL];

/* ER_REF goes from ER_ONE to ER_TWO. A test may change them. */
extern struct record_member er_member;
extern struct record er_plan;
extern struct refd_oid er_two;
/* Negative: the result of unlinkat() and write_all() of an edit. */
extern int er_fails_with;
/* Negative: the result of renameat() and linkat(). With -EIO they take effect
 * all the same. */
extern int er_places_with;

void er_setup(void);
void er_teardown(void);

struct edit er_edit(enum evidence evidence);
/* The same with the lock taken. */
struct edit er_locked(enum evidence evidence);
/* Stages er_two with mode 0640. */
void er_stage(struct edit *e);

struct stat er_stat(const char *path);
bool er_is_same_file(const char *path, const char *other);
void er_check_text(const char *path, const char *want);

#endif
