/*
 * For tests of client/git/configfiles.h: the repository bare.git below
 * tmp_root, and a comparison with git. One at a time. Every call fails the test
 * instead of returning an error.
 */
#ifndef TESTS_LIB_CONFIG_RIG_H
#define TESTS_LIB_CONFIG_RIG_H

#include <stdbool.h>

#include "client/git/gitdir.h"

#define CONFIG "bare.git/config"
#define BASE   "[core]\n\trepositoryformatversion = 0\n\tbare = true\n"
#define V1     "[core]\n\trepositoryformatversion = 1\n[extensions]\n"

extern struct gitdir config_rig_gd;

/* As tmp_setup() and tmp_teardown(). */
void config_rig_setup(void);
void config_rig_teardown(void);

/* Whether the files were enough. If so, git has the same list. */
bool config_rig_same(const char *what);

#endif
