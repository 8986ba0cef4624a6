/*
 * "refd update" with this process at both ends. The command runs in a child, in
 * a new repository with one commit. It reads commands one by one from the test,
 * and talks to a scripted server. One run per test.
 */
#ifndef TESTS_LIB_UPDATE_RIG_H
#define TESTS_LIB_UPDATE_RIG_H

#include "tests/lib/fake_refd.h"

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define Z "0000000000000000000000000000000000000000"

/* The repository is "repo" in tmp_root, and is the current directory. */
void update_setup(void);
void update_teardown(void);

/* Steps of a server that takes one session to its end. */
#define UPDATE_COMMITS "serve session=prepared commit=done"
#define UPDATE_ABORTS  "serve session=prepared abort=undone"

/* STEPS: as of fake_play(). */
void update_start(const char *steps, char **argv);
void update_start_script(void (*script)(struct fake *f), char **argv);
void update_start_stdin(const char *steps);
/* Starts with --stdin, and has refs/heads/a prepared. */
void update_prepare(const char *steps);
void update_put(const char *commands);
/* Checks that the next line of output, on either stream, is LINE, without
 * further input. */
void update_expect(const char *line);
/* The same for a line that begins with START. */
void update_expect_start(const char *start);
/* Puts COMMANDS, and expects LINE. */
void update_ask(const char *commands, const char *line);
/* The server's script has ended. */
void update_wait_for_server(void);
void update_end_input(void);
/* Ends the input. Checks that there is no more output, and the exit status. */
void update_end(int wanted);

#endif
