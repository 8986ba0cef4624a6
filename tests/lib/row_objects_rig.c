#include "tests/lib/row_objects_rig.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/tmp.h"

#define KNOWN_MAX 128

int64_t row_objects_rig_step_ns;
size_t row_objects_rig_rows = 1;
struct row_objects *row_objects_rig;

static struct refd_oid known[KNOWN_MAX];
static size_t nr_known;
static int64_t now_ns;

size_t row_objects_rig_list(const char *revisions, struct refd_oid *oids,
    size_t max)
{
	char *out, *rest, *line;
	size_t nr = 0;

	if (*revisions == '\0')
		return 0;
	rest = out = tmp_output("git -C r rev-parse %s", revisions);
	while ((line = strsep(&rest, "\n")) != NULL && *line != '\0') {
		ck_assert_uint_lt(nr, max);
		oids[nr++] = odb_rig_oid(line);
	}
	free(out);
	return nr;
}

void row_objects_rig_know(const char *revisions)
{
	nr_known = row_objects_rig_list(revisions, known, KNOWN_MAX);
}

static bool is_known(void *arg, const struct refd_oid *oid)
{
	size_t i;

	(void)arg;
	for (i = 0; i < nr_known; i++)
		if (refd_oid_eq(&known[i], oid))
			return true;
	return false;
}

static int64_t now_mono(const struct sys *sys)
{
	(void)sys;
	now_ns += row_objects_rig_step_ns;
	return now_ns;
}

static void done(void)
{
	row_objects_free(row_objects_rig);
	row_objects_rig = NULL;
}

int row_objects_rig_collect(const char *tips)
{
	struct refd_oid oids[ROW_OBJECTS_TIPS];
	struct sys sys = sys_kernel;
	struct row_objects_need need = { .sys = &sys,
		.format = odb_rig_format,
		.is_known = is_known,
		.tips = oids,
		.nr_tips = row_objects_rig_list(tips, oids, ROW_OBJECTS_TIPS),
		.nr_rows = row_objects_rig_rows };

	done();
	sys.now_mono = now_mono;
	odb_rig_open("r/.git");
	need.odb = odb_rig;
	return row_objects_collect(&need, &row_objects_rig);
}

/* ---- what a row has ---- */

struct wanted {
	struct refd_oid oids[ROW_OBJECTS_NR];
	bool is_seen[ROW_OBJECTS_NR];
	size_t nr, nr_seen;
};

static int see(void *arg, const struct row_object *object)
{
	struct wanted *wanted = arg;
	char hex[REFD_OID_MAX_HEX + 1];
	struct refd_oid oid;
	size_t i = 0;

	object_id(object->type, object->data, object->len, odb_rig_format,
	    &oid);
	refd_oid_hex(&oid, odb_rig_format, hex);
	while (i < wanted->nr && !refd_oid_eq(&wanted->oids[i], &oid))
		i++;
	ck_assert_msg(i < wanted->nr, "%s is not wanted", hex);
	ck_assert_msg(!wanted->is_seen[i], "%s is there twice", hex);
	wanted->is_seen[i] = true;
	wanted->nr_seen++;
	return 0;
}

void row_objects_rig_has(const char *tips, const char *revisions)
{
	struct wanted wanted = { .nr = 0 };

	wanted.nr =
	    row_objects_rig_list(revisions, wanted.oids, ROW_OBJECTS_NR);
	ck_assert_msg(row_objects_rig_collect(tips) == 0, "%s", tips);
	ck_assert_int_eq(row_objects_each(row_objects_rig->bytes,
			     row_objects_rig->len, see, &wanted),
	    0);
	ck_assert_msg(wanted.nr_seen == wanted.nr, "%s: %zu objects, not %zu",
	    tips, wanted.nr_seen, wanted.nr);
}

void row_objects_rig_refuses(const char *tips)
{
	ck_assert_msg(row_objects_rig_collect(tips) == 1, "%s", tips);
	ck_assert_ptr_null(row_objects_rig);
}

void row_objects_rig_teardown(void)
{
	done();
	odb_rig_teardown();
}
