/*
 * Who can have written a file of a repository?
 *
 * Whoever shares a repository can rename files there. A ref that refd made for
 * a client belongs to the account of the daemon, and others may write to it in
 * a shared repository. So a file can belong to the account and have any text,
 * and the owner alone proves nothing: the mode counts, too. The mode shows an
 * access control list as well, because the list has its mask there.
 *
 * A second name of the file does not count. A copy by hard links (cp -al) gives
 * one to each file, and cannot change the text.
 *
 * Pure; any thread.
 */
#ifndef PROTO_LIB_OWN_FILE_H
#define PROTO_LIB_OWN_FILE_H

#include <stdint.h>

enum own_file {
	OWN_FILE_FOREIGN, /* it belongs to a different account */
	OWN_FILE_OPEN,    /* others may write it, too */
	OWN_FILE_CLOSED   /* only the account and root may */
};

/* Of a file with MODE and UID. ACCOUNT and root count as one. */
static inline enum own_file own_file_of(uint32_t mode, uint32_t uid,
    uint32_t account)
{
	if (uid != account && uid != 0)
		return OWN_FILE_FOREIGN;
	return (mode & 022) != 0 ? OWN_FILE_OPEN : OWN_FILE_CLOSED;
}

#endif
