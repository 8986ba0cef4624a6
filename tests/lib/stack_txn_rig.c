#include "tests/lib/stack_txn_rig.h"

#include <check.h>
#include <string.h>

#include "tests/lib/world_rig.h"

struct stack_txn stx;
uint64_t stx_at;

void stx_setup(void)
{
	memset(&stx, 0, sizeof(stx));
	wr_home = 0;
	w = stack_txn_world(memfs_new());
	wr_start();
	stx.h.w = w;
	stx.end = STACK_TXN_DONE;
}

void stx_change(const char *name, char new_c)
{
	stack_txn_ok(&stx, w, name, new_c);
}

/* Takes the changes of names after the last sync of the directory: the rename
 * of the last list. */
void stx_lose_power(void)
{
	wr_power_loss(MEMFS_DATA_NONE, 0);
}

/* The lock of refd survives a power loss, and git cannot write until recovery.
 * Here somebody removes the lock, and git works before recovery. */
void stx_lose_power_and_lock(void)
{
	stx_lose_power();
	wr_unlink(STX_LIST ".lock");
}

void stx_crash(void)
{
	memfs_crash(w->fs);
	world_crash(w);
}

void stx_expect(const char *name, char value)
{
	char is = stack_txn_value(w, "", name, &stx_at);

	ck_assert_msg(is == value, "%s is %c, not %c", name, is, value);
}

void stx_expect_log(const char *name, const char *log)
{
	ck_assert_str_eq(stack_txn_log(w, "", name), log);
}

void stx_expect_status(enum refd_status status)
{
	ck_assert_int_eq(scripted_status(&stx.h, 0), status);
}

/* A later start finds nothing to do. */
void stx_expect_rest(void)
{
	unsigned i;

	ck_assert_uint_eq(w->deferred, 0);
	wr_expect_locks("");
	ck_assert_int_eq(world_checkpoint(w), 0);
	wr_power_loss_and_start(MEMFS_DATA_ALL, -1);
	for (i = 0; i < STORE_FINDINGS; i++)
		ck_assert_uint_eq(w->found[i], 0);
}
