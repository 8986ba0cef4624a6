#include "tests/lib/durability_world.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char dw_context[256];
struct world *dw;

void dw_check_at(const char *name, const char *allowed)
{
	char c = world_ref(dw, name);

	ck_assert_msg(strchr(allowed, c) != NULL, "%s: %s is at '%c', not %s",
	    dw_context, name, c, allowed);
}

void dw_no_locks(void)
{
	char *locks = memfs_list_locks(dw->fs, WORLD_REPO);

	ck_assert_msg(locks[0] == '\0', "%s: locks left: %s", dw_context,
	    locks);
	free(locks);
}

bool dw_all_ok(const struct txn *txn)
{
	size_t i;

	for (i = 0; i < txn->nr_updates; i++)
		if (txn->updates[i].status != REFD_OK)
			return false;
	return true;
}

void dw_apply_ok(const char *spec, bool atomic)
{
	struct txn *txn = world_apply(dw, spec, atomic);
	const struct txn_update *u;
	size_t i;

	ck_assert_msg(txn != NULL, "%s: %s: no repository", dw_context, spec);
	for (i = 0; i < txn->nr_updates; i++) {
		u = &txn->updates[i];
		ck_assert_msg(u->status == REFD_OK, "%s: %s: %s: %s",
		    dw_context, spec, refd_status_name(u->status),
		    u->text != NULL ? u->text : "");
	}
	world_done(dw, txn);
}

void dw_fresh(enum refd_durability mode, bool state_elsewhere)
{
	dw = world_new(memfs_new(), state_elsewhere);
	dw->mode = mode;
	world_write(dw->fs, WORLD_REPO "/packed-refs",
	    "# pack-refs with: peeled fully-peeled sorted \n"
	    "@1 refs/heads/keep\n"
	    "@1 refs/heads/p\n");
	ck_assert_int_eq(world_start(dw), 0);
	dw_apply_ok("a=1;c=1;d=1", false);
	ck_assert_int_eq(world_checkpoint(dw), 0);
}

void dw_set_disk(bool strict)
{
	memfs_set_mode(dw->fs, strict ? MEMFS_STRICT : MEMFS_ORDERED);
	/* The daemon checks this at the start. */
	dw->store.repos.fs->fsync_covers_all = !strict;
}

void dw_power_loss(uint64_t seed)
{
	struct memfs_choice choice = memfs_choose(seed);

	memfs_power_loss(dw->fs, &choice);
	world_crash(dw);
}

void dw_restart(void)
{
	int r = world_start(dw);

	ck_assert_msg(r == 0, "%s: recovery failed: %s", dw_context,
	    strerror(-r));
}

void dw_say(const char *what, int i, uint64_t seed)
{
	snprintf(dw_context, sizeof(dw_context), "%s %d, seed %llu", what, i,
	    (unsigned long long)seed);
}

void dw_check_there(void)
{
	dw_check_at("a", "2");
	dw_check_at("b", "3");
	dw_check_at("c", "0");
	dw_check_at("p", "0");
	dw_check_at("x/y/z", "4");
	dw_check_at("d", "1");
	dw_check_at("keep", "1");
	ck_assert_msg(world_log_count(dw, "a", '1', '2') == 1 &&
		world_log_count(dw, "b", '0', '3') == 1 &&
		world_log_count(dw, "x/y/z", '0', '4') == 1,
	    "%s: a log lacks its line", dw_context);
	ck_assert_msg(!world_has_log(dw, "c"), "%s: a log is back", dw_context);
}
