/*
 * The commands of refd-admin: each takes its own arguments, writes for
 * people (or JSON), and returns the exit status. One thread; all of it blocks.
 */
#ifndef ADMIN_ADMIN_H
#define ADMIN_ADMIN_H

/* refd recover [--state DIR] [--root DIR]... [--json] [--adopt | --discard] */
int admin_recover(int argc, char **argv);
/* refd disown <repository>... */
int admin_disown(int argc, char **argv);
/* refd verify [--state DIR] [--repair] [--json] <repository>... */
int admin_verify(int argc, char **argv);

/* refd check-config [--show-origin] [refd daemon's options] [FILE] */
int admin_check_config(int argc, char **argv);

#endif
