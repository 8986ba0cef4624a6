/*
 * The page of refd status --html. A page is one file without scripts, and loads
 * no other file, so any web server can serve it. One thread.
 */
#ifndef CLIENT_ADMIN_PAGE_H
#define CLIENT_ADMIN_PAGE_H

#include "proto/lib/cli.h"
#include "proto/message.h"

/* The answers, as of the verbs with these names. */
enum page_part {
	PAGE_STATUS,
	PAGE_STATS,
	PAGE_TOP,
	PAGE_SLOW,
	PAGE_LOG,
	PAGE_PARTS
};

struct page_user {
	char *name; /* owned */
	uint64_t nr, nr_rejected;
};

struct page {
	char host[256];
	uint64_t now_ms; /* since 1970 */
	struct refd_answer parts[PAGE_PARTS];
	/* The reason for a part without an answer; otherwise DATA is NULL. */
	struct text why[PAGE_PARTS];

	/* page_count(): who made the changes, the busiest first. */
	struct page_user *users; /* owned */
	size_t nr_users, users_size;
	uint64_t nr_changes, since_ms; /* of the oldest change, since 1970 */
};

/* Asks the daemon of SOCKET, or the configured one for NULL, and fills in P for
 * page_done(). Blocks: ten seconds for each of two attempts to connect, and ten
 * for all answers, at most. A daemon that is away, or refuses to tell its
 * state, is a reason of PAGE_STATUS. A daemon that denies the connection ends
 * the program. */
void page_ask(struct page *p, const char *socket);
/* Frees the content of P, which is then all zeroes. */
void page_done(struct page *p);
/* Counts the changes of ANS, which are older than all changes before. Reads the
 * password file. */
void page_count(struct page *p, const struct refd_answer *ans);

/* Adds a complete document in UTF-8 to T. No text in P becomes markup. Reads
 * the password file. */
void page_render(const struct page *p, struct text *t);

#endif
