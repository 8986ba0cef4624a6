/*
 * Proves that recovery knows whether recorded objects have their history: the
 * references of tags, commits and trees are followed through recorded objects,
 * and every other object must exist, except the commit of a submodule.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "daemon/store/objects/new_objects.h"
#include "tests/lib/loose_help.h"
#include "tests/lib/suite.h"
#include "tests/lib/world.h"

#define OBJECTS WORLD_REPO "/objects"

static struct world *w;

static void setup(void)
{
	w = world_new(memfs_new(), true);
	memfs_mkdirs(w->fs, OBJECTS);
}

static void teardown(void)
{
	world_free(w);
}

static uint64_t dev_of(int fd)
{
	struct sys_stat st;

	ck_assert_int_eq(SYS(w->sys, fstat, fd, &st), 0);
	return st.dev;
}

static struct refd_oid missing;

static int exists(void *arg, const struct refd_oid *oid)
{
	(void)arg;
	return !refd_oid_eq(oid, &missing);
}

/* A tag, its commit, a tree with a blob, a tree and a submodule, and the tree
 * below, which has an old blob. The commit has an old parent. */
struct chain {
	struct loose_help blob, below, tree, commit, tag;
	struct refd_oid old, submodule;
};

static size_t put_entry(char *to, const char *entry, const struct refd_oid *oid)
{
	size_t len = strlen(entry) + 1;

	memcpy(to, entry, len);
	memcpy(to + len, oid->bytes, 20);
	return len + 20;
}

static void make_chain(struct chain *c)
{
	char text[400], hex[2][REFD_OID_MAX_HEX + 1];
	size_t len;

	c->old = world_oid('1');
	c->submodule = world_oid('2');
	c->blob = loose_help_text(OBJECTS, "blob");
	len = put_entry(text, "100644 old", &c->old);
	c->below = loose_help_make(OBJECTS, "tree", text, len, 6);
	len = put_entry(text, "100644 blob", &c->blob.oid);
	len += put_entry(text + len, "160000 module", &c->submodule);
	len += put_entry(text + len, "40000 tree", &c->below.oid);
	c->tree = loose_help_make(OBJECTS, "tree", text, len, 6);
	refd_oid_hex(&c->tree.oid, REFD_FORMAT_SHA1, hex[0]);
	refd_oid_hex(&c->old, REFD_FORMAT_SHA1, hex[1]);
	snprintf(text, sizeof(text),
	    "tree %s\nparent %s\nauthor x\ncommitter x\n\nx", hex[0], hex[1]);
	c->commit = loose_help_make(OBJECTS, "commit", text, strlen(text), 6);
	refd_oid_hex(&c->commit.oid, REFD_FORMAT_SHA1, hex[0]);
	snprintf(text, sizeof(text), "object %s\ntype commit\ntag x\n", hex[0]);
	c->tag = loose_help_make(OBJECTS, "tag", text, strlen(text), 6);
}

CASE(.setup = setup, .teardown = teardown);

/* Which of the objects is missing: recorded objects do not count, an old one
 * does, and the commit of a submodule is elsewhere. */
TEST(history, .times = 6)
{
	struct loose_help *recorded[5];
	struct new_objects_look look;
	struct new_objects *objects;
	struct chain c;
	int fd = SYS(w->sys, openat, AT_FDCWD, OBJECTS, O_RDONLY, 0);
	size_t i;

	make_chain(&c);
	recorded[0] = &c.blob;
	recorded[1] = &c.below;
	recorded[2] = &c.tree;
	recorded[3] = &c.commit;
	recorded[4] = &c.tag;
	for (i = 0; i < 5; i++)
		if ((int)i != _i)
			loose_help_write(w->fs, recorded[i]);
	new_objects_begin(&look, w->sys, REFD_FORMAT_SHA1, dev_of(fd));
	for (i = 0; i < 5; i++)
		if ((int)i != _i)
			ck_assert_int_eq(new_objects_add(&look, fd,
					     recorded[i]->fanout, 0),
			    0);
	ck_assert_int_eq(new_objects_end(&look, 0, &objects), 0);
	SYS(w->sys, close, fd);
	for (i = 0; i < 8; i++) {
		missing = i < 5 ? recorded[i]->oid :
		    i == 5      ? c.old :
		    i == 6      ? c.submodule :
				  world_oid('9');
		/* Nothing is known of a tag that is not recorded, and of what
		 * a commit that is not recorded leads to. */
		ck_assert_int_eq(new_objects_is_complete(objects->bytes,
				     objects->len, REFD_FORMAT_SHA1, &c.tag.oid,
				     exists, NULL),
		    _i == 4 || ((int)i != _i && (i != 5 || _i == 3)));
	}
	for (i = 0; i < 5; i++)
		loose_help_done(recorded[i]);
	new_objects_free(objects);
}
