#include "tests/lib/apply_rig.h"

#include <check.h>
#include <stdarg.h>

void apply_expect(const char *spec, bool atomic, size_t nr, ...)
{
	struct txn *txn = world_apply(w, spec, atomic);
	va_list ap;
	size_t i;

	ck_assert_ptr_nonnull(txn);
	ck_assert_uint_eq(txn->nr_updates, nr);
	va_start(ap, nr);
	for (i = 0; i < nr; i++)
		ck_assert_str_eq(refd_status_name(txn->updates[i].status),
		    refd_status_name((enum refd_status)va_arg(ap, int)));
	va_end(ap);
	world_done(w, txn);
	wr_expect_locks("");
}
