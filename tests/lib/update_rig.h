/*
 * "refd update" with this process at both of its ends: it runs in a child, in
 * a repository of its own with one commit, on the commands that the test
 * gives it one by one, against a server with a script. One run per test.
 */
#ifndef TESTS_LIB_UPDATE_RIG_H
#define TESTS_LIB_UPDATE_RIG_H

#include <stdbool.h>

#include "tests/lib/fake_refd.h"

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define Z "0000000000000000000000000000000000000000"

/* The repository is "repo" in tmp_root, and the current directory. */
void update_setup(void);
void update_teardown(void);

void update_start(void (*script)(struct fake *f), char **argv);
void update_start_stdin(void (*script)(struct fake *f));
void update_put(const char *commands);
/* The next line that it says, on either stream, is LINE; nothing more needs
 * to be put for it. */
void update_expect(const char *line);
/* The same for a line that begins with START. */
void update_expect_start(const char *start);
/* The server's script has ended. */
void update_wait_for_server(void);
/* No more input, nothing more is said, and this is the exit status. */
void update_end(int wanted);

/* ---- in the script ---- */

void update_take(struct fake *f, enum refd_verb verb, struct refd_request *req);
/* Takes a session and says that it is prepared; HEAD leads to main. */
void update_take_session(struct fake *f, bool rewrites_packed);
/* COMMIT or ABORT of it; all is ok. */
void update_take_end(struct fake *f, enum refd_verb verb);
/* COMMIT of it; the caller answers REQ. */
void update_take_commit(struct fake *f, struct refd_request *req);

/* Whole scripts. */
void update_commits(struct fake *f);
void update_aborts(struct fake *f);
void update_only_greets(struct fake *f);

#endif
