/*
 * Collects the objects of rows (daemon/store/objects/row_objects.h) from the
 * repository r that git has made, for the unit tests. Every failure fails the
 * test.
 */
#ifndef TESTS_LIB_ROW_OBJECTS_RIG_H
#define TESTS_LIB_ROW_OBJECTS_RIG_H

#include "daemon/store/objects/row_objects.h"
#include "tests/lib/odb_rig.h"

/* REVISIONS, separated by blanks, in the repository r. Returns their number, at
 * most MAX. */
size_t row_objects_rig_list(const char *revisions, struct refd_oid *oids,
    size_t max);

/* Other nodes have exactly the values REVISIONS. */
void row_objects_rig_know(const char *revisions);

/* The clock advances by NS with every call; 0 at first. */
extern int64_t row_objects_rig_step_ns;
extern size_t row_objects_rig_rows; /* need.nr_rows; 1 at first */

/* Opens r, and collects what TIPS reach. Returns the result. The last *OBJECTS
 * is freed before. */
int row_objects_rig_collect(const char *tips);
extern struct row_objects *row_objects_rig;
/* The collection is possible, and has exactly the objects REVISIONS. */
void row_objects_rig_has(const char *tips, const char *revisions);
/* The collection is not possible. */
void row_objects_rig_refuses(const char *tips);

/* After each test, for odb_rig_setup() and odb_rig_setup_sha256(). */
void row_objects_rig_teardown(void);

#endif
