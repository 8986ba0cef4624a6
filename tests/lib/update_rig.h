/*
 * "refd update" with this process at both ends. The command runs in a child, in
 * a new repository with one commit. It reads commands one by one from the test,
 * and talks to a scripted server. One run per test.
 */
#ifndef TESTS_LIB_UPDATE_RIG_H
#define TESTS_LIB_UPDATE_RIG_H

#include <stdbool.h>

#include "tests/lib/fake_refd.h"

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define Z "0000000000000000000000000000000000000000"

/* The repository is "repo" in tmp_root, and is the current directory. */
void update_setup(void);
void update_teardown(void);

void update_start(void (*script)(struct fake *f), char **argv);
void update_start_stdin(void (*script)(struct fake *f));
void update_put(const char *commands);
/* Checks that the next line of output, on either stream, is LINE, without
 * further input. */
void update_expect(const char *line);
/* The same for a line that begins with START. */
void update_expect_start(const char *start);
/* The server's script has ended. */
void update_wait_for_server(void);
void update_end_input(void);
/* Ends the input. Checks that there is no more output, and the exit status. */
void update_end(int wanted);

/* ---- in the script ---- */

void update_take(struct fake *f, enum refd_verb verb, struct refd_request *req);
/* Takes a query. With RESULTS, one update, of refs/heads/a, is ok. */
void update_take_query(struct fake *f, enum refd_answer_kind kind);
/* Takes a session and answers that it is prepared; HEAD leads to main. */
void update_take_session(struct fake *f, bool rewrites_packed);
/* Takes COMMIT, and all updates are ok, or ABORT, and they are aborted. */
void update_take_end(struct fake *f, enum refd_verb verb);
/* Takes ABORT; all updates are ok, because another client has committed. */
void update_take_late_abort(struct fake *f);

/* Complete scripts. */
void update_commits(struct fake *f);
void update_aborts(struct fake *f);
void update_only_greets(struct fake *f);

#endif
