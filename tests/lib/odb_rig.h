/*
 * A repository made by git, opened by refd's object reader, for the reader's
 * unit tests. All files are below tmp_root, the only root.
 */
#ifndef TESTS_LIB_ODB_RIG_H
#define TESTS_LIB_ODB_RIG_H

#include "daemon/store/objects/odb.h"

extern struct odb *odb_rig;
extern enum refd_object_format odb_rig_format;
/* The system calls of the next odb_rig_open(); after the setup the kernel's. */
extern const struct sys *odb_rig_sys;
/* Owner and group of the repository, for the rule for alternates. */
extern uint32_t odb_rig_owner, odb_rig_group;

void odb_rig_setup(void);
/* The same; git makes repositories of SHA-256. */
void odb_rig_setup_sha256(void);
void odb_rig_teardown(void);

/* Opens the repository whose common dir is NAME. Returns the error of
 * odb_refresh(), or 0. */
int odb_rig_refresh_of(const char *name);
void odb_rig_open(const char *name);

struct refd_oid odb_rig_oid(const char *hex);
/* REVISION of the repository r, and its type in the open repository. */
struct refd_oid odb_rig_named(const char *revision);
enum object_type odb_rig_type(const char *revision);

/* The bare repository r: a branch x with a file f, an annotated tag t. */
void odb_rig_make_objects(void);
void odb_rig_check_objects(void);

/* A command that makes r with similar files, so packs have chains of deltas;
 * tags t1 to t30, tt of t1 and ttt of tt. */
#define ODB_RIG_HISTORY                                                          \
	"git init -q r && cd r && for i in $(seq 30); do seq $i 400 >f; "        \
	"seq $((i / 3)) 300 >g; mkdir -p d$((i %% 4)); echo $i "                 \
	">d$((i %% 4))/h; git add . && git commit -q -m $i && git tag -a -m "    \
	"$i t$i; done && git tag -a -m tt tt t1 && git tag -a -m ttt ttt tt && " \
	"cd .. && "

#endif
