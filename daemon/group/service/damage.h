/*
 * Why another node shall lead: the column refd.node.damaged. The text is the
 * path of a repository below the root whose objects are damaged (verify.c), or
 * a list of repositories that the node lacks, because refd group join could not
 * copy them. A node with a damaged repository leads if no other node can. A
 * node with a list never leads, because clients would find acknowledged refs
 * gone.
 *
 * A list has a newline before and behind each "<uuid> <path>". The leader can
 * rename a repository, so the uuid counts. At the end of the list is a uuid of
 * the join, so no later list is the same. A run of refd group verify can then
 * change only the list that it has read.
 *
 * PostgreSQL wants UTF-8, and a path can have any byte. So in the text a path
 * has "%" and two hexadecimal digits in place of "%" and of each byte outside
 * of printable ASCII. A newline is such a byte, so no path looks like a list.
 *
 * Nothing blocks; any thread.
 */
#ifndef GROUP_SERVICE_DAMAGE_H
#define GROUP_SERVICE_DAMAGE_H

#include "daemon/group/service/fetch_id.h"

/* A condition of SQL. */
#define DAMAGE_IS_LIST "coalesce(damaged LIKE E'\\n%', false)"

/* PATH as in the text; to be freed. */
char *damage_path(const char *path);

/* Adds the repository HEX at PATH, which is not as in the text yet. */
void damage_add_absent(struct text *list, const char *hex, const char *path);
bool damage_is_list(const char *damage);
/* Takes the repository HEX out of LIST. A list without any is empty. */
void damage_drop_absent(char *list, const char *hex);
/* Returns the path of the next repository of LIST, to be freed, and sets HEX to
 * its uuid. NULL: there is no further one. *AT is 0 at first. */
char *damage_next_absent(const char *list, size_t *at,
    char hex[FETCH_ID_HEX + 1]);

#endif
