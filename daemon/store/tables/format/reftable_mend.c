/*
 * Happy path: the footer cannot tell where the blocks end, so follow the blocks
 * from the header on, until at most a footer is left. Check all blocks, which
 * gives the positions for the footer. Compare the rest of the footer.
 *
 * Failures: the table has any other damage than a lost footer.
 */
#include "daemon/store/tables/format/reftable_mend.h"

#include <string.h>

#include "daemon/store/tables/format/reftable_check.h"

/* For all blocks of a table, which the check reads twice because of the
 * index. */
#define WORK_MAX ((uint64_t)512 * 1024 * 1024)

static int bad(struct reftable_mend *m, const char *why,
    struct reftable_fault *fault)
{
	return reftable_table_bad(&m->table, m->table.end, why, fault);
}

/* ---- the end of the blocks ---- */

static uint64_t end_of(const struct reftable_block *block)
{
	return block->section == REFTABLE_LOGS ?
	    block->next :
	    block->position + reftable_block_size(block);
}

/* Is END, the end of a block, the end of all blocks? Then at most a footer is
 * left, and no block begins at NEXT, behind padding. 1, 0. */
static int is_end(const struct reftable_table *t, uint64_t end, uint64_t next,
    struct reftable_fault *fault)
{
	uint8_t footer[REFTABLE_FOOTER_MAX], type = 0;
	const size_t len = reftable_table_footer(t, 0, footer);
	ssize_t n = 0;

	if (t->file_size - end > len)
		return 0;
	if (next < t->file_size)
		n = reftable_table_bytes(t, next, &type, 1, fault);
	if (n < 0)
		return (int)n;
	return type != REFTABLE_REFS && type != REFTABLE_OBJECTS &&
	    type != REFTABLE_LOGS && type != REFTABLE_INDEX;
}

/* Sets table.end. */
static int find_end(struct reftable_mend *m, struct reftable_block *block,
    struct reftable_budget *budget, struct reftable_fault *fault)
{
	struct reftable_table *t = &m->table;
	uint64_t at = 0, end = t->header_size, next = end;
	int r;

	while ((r = is_end(t, end, next, fault)) == 0) {
		if (at >= t->file_size)
			return reftable_table_bad(t, end,
			    "the blocks do not end at a footer", fault);
		r = reftable_table_read(t, at, block, budget, fault);
		if (r < 0)
			return r;
		end = end_of(block);
		at = next = block->next;
	}
	if (end == t->header_size)
		t->first = 0;
	t->end = end;
	return r < 0 ? r : 0;
}

/* ---- the footer ---- */

static int set_footer(struct reftable_mend *m, bool git_syncs,
    const struct reftable_layout *layout, struct reftable_fault *fault)
{
	struct reftable_table *t = &m->table;
	const bool ends_with_refs =
	    layout->last == 0 || layout->last == REFTABLE_REFS;

	if (layout->lacks_index)
		return bad(m, "the footer and an index are lost", fault);
	if (!git_syncs && ends_with_refs)
		return bad(m,
		    "the footer is lost, and perhaps refs, because "
		    "core.fsync lacks 'reference'",
		    fault);
	m->may_lack_logs = !git_syncs;
	t->ref_index = layout->ref_index;
	t->objects = layout->objects;
	t->object_index = layout->object_index;
	t->logs = layout->logs;
	t->log_index = layout->log_index;
	m->footer_len = reftable_table_footer(t, layout->id_len, m->footer);
	return 0;
}

/* A power loss leaves a beginning of the footer, or zeroes, so each byte that
 * is left must be right or zero. */
static int check_rest(struct reftable_mend *m, struct reftable_fault *fault)
{
	const struct reftable_table *t = &m->table;
	const size_t len = (size_t)(t->file_size - t->end);
	uint8_t rest[REFTABLE_FOOTER_MAX];
	bool is_same = true;
	size_t i;
	ssize_t n = reftable_table_bytes(t, t->end, rest, len, fault);

	if (n < 0)
		return (int)n;
	if ((size_t)n < len)
		return bad(m, "the file became shorter", fault);
	for (i = 0; i < len; i++) {
		if (rest[i] == m->footer[i])
			continue;
		is_same = false;
		if (rest[i] != 0 || len < m->footer_len)
			return bad(m, "the footer is wrong", fault);
	}
	return is_same && len == m->footer_len ?
	    bad(m, "the footer is not the damage", fault) :
	    0;
}

int reftable_mend_open(const struct sys *sys, int dirfd, const char *name,
    bool git_syncs, struct reftable_mend *m, struct reftable_fault *fault)
{
	struct reftable_budget budget = REFTABLE_BUDGET(WORK_MAX);
	struct reftable_block block = { 0 };
	struct reftable_layout layout;
	int r;

	memset(m, 0, sizeof(*m));
	r = reftable_table_open_blocks(sys, dirfd, name, &m->table, fault);
	if (r < 0)
		return r;
	r = find_end(m, &block, &budget, fault);
	reftable_block_done(&block);
	budget = REFTABLE_BUDGET(WORK_MAX);
	if (r == 0)
		r = reftable_check_layout(&m->table, &budget, &layout, fault);
	if (r == 0)
		r = set_footer(m, git_syncs, &layout, fault);
	if (r == 0)
		r = check_rest(m, fault);
	if (r < 0)
		reftable_mend_close(m);
	return r;
}

void reftable_mend_close(struct reftable_mend *m)
{
	reftable_table_close(&m->table);
	memset(m, 0, sizeof(*m));
	m->table.fd = -1;
}
