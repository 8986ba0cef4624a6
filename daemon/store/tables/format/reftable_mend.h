/*
 * A table that has lost its footer.
 *
 * Git 2.55 syncs a table before the footer is written, so after a power loss
 * the footer can be missing, or zero, or in parts. Git then reads no ref of the
 * repository. The footer can be written again, because it has no fact of its
 * own: header and blocks tell all of it.
 *
 * A table is mended only if nothing else is wrong:
 *	- reftable_check_layout() finds no fault in header and blocks.
 *	- The last block ends where the footer begins. The file ends there too,
 *	  or behind a beginning of the right footer, or it has the right length,
 *	  and every byte of the footer is right or zero.
 *	- No section lacks the index that git writes.
 *	- The table does not end with refs, unless git syncs its tables.
 *	  Without the sync, further blocks of refs may be lost behind the last
 *	  one. If an index, objects or logs follow, no refs are lost, because
 *	  git writes all refs before.
 *
 * Any thread may call, every call may block, and nothing logs. Memory for two
 * blocks is needed. Results as in reftable_table.h.
 */
#ifndef STORE_REFTABLE_MEND_H
#define STORE_REFTABLE_MEND_H

#include "daemon/store/tables/format/reftable_table.h"

struct reftable_mend {
	struct reftable_table table; /* owned; END: of the blocks */
	size_t footer_len;
	uint8_t footer[REFTABLE_FOOTER_MAX];
	/* Entries of logs at the end of the table may be lost, because git did
	 * not sync the table. */
	bool may_lack_logs;
};

/*
 * Opens NAME in DIRFD. The mended table has the first table.end bytes of the
 * file, and the footer. GIT_SYNCS tells that git syncs the tables of this
 * repository before they get their names, so that no block can be lost.
 * -EBADMSG if the table cannot be mended, or needs no footer. After a failure
 * *MEND is empty.
 */
int reftable_mend_open(const struct sys *sys, int dirfd, const char *name,
    bool git_syncs, struct reftable_mend *mend, struct reftable_fault *fault);
void reftable_mend_close(struct reftable_mend *mend);

#endif
