/*
 * The proc-receive hook with this process as its receive-pack: it runs in a
 * bare repository of its own, on the commands that the test puts together,
 * against a server with a script or none. One push per test.
 */
#ifndef TESTS_LIB_HOOK_RIG_H
#define TESTS_LIB_HOOK_RIG_H

#include <stdbool.h>

#include "tests/lib/fake_refd.h"

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define Z "0000000000000000000000000000000000000000"

void hook_setup(void);
void hook_teardown(void);

/* Without it the daemon is away. */
void hook_serve(void (*script)(struct fake *f));

void hook_begin(bool atomic);
void hook_put(const char *command);
/* Runs the hook on what was put; its report's packets, a line each. Owned by
 * the caller. */
char *hook_run(void);
void hook_expect(const char *wanted);

#endif
