/*
 * The proc-receive hook, with this process as its receive-pack. The hook runs
 * in a new bare repository, with commands from the test, against a scripted
 * server or none. One push per test.
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

/* Without one of these calls, the daemon is away. STEPS: as of fake_play(). */
void hook_serve(const char *steps);
void hook_serve_script(void (*script)(struct fake *f));

void hook_begin(bool atomic);
void hook_put(const char *command);
/* Both, of a push that is not atomic. The last command is NULL. */
void hook_push(const char *command, ...);
/* Runs the hook on the commands. Returns the packets of its report, one per
 * line. The caller frees the text. */
char *hook_run(void);
void hook_expect(const char *wanted);

#endif
