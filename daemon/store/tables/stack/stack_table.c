/*
 * Happy path:
 *	list		a key per record, and per log entry of a deleted ref
 *	sort		by section, name and index
 *	write		into a new file in stage/, together with the records of
 *			folded tables, 64 KiB at a time
 *	link		to a random name in reftable/
 *
 * Failures: the file goes, and the stack is unchanged. A name that exists is
 * not used again, so the link is repeated with a different name.
 */
#include "daemon/store/tables/stack/stack_update.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "daemon/store/tables/format/reftable_merged.h"
#include "daemon/store/tables/stack/stack_reader.h"

#define NAME_TRIES   10
#define BUFFER_BYTES ((size_t)64 * 1024)
/* Git's limit of a message in a table of blocks of 4096 bytes. */
#define MESSAGE_MAX ((size_t)REFTABLE_BLOCK_BYTES / 2)
#define KEYS_MAX    ((size_t)4 * 1000 * 1000)
/* The work of each section (struct reftable_budget). It is bounded, because a
 * small log block can inflate to very much. A merge has up to 64 MiB of tables,
 * and a fold 256 KiB. */
#define MERGE_WORK_MAX ((uint64_t)1024 * 1024 * 1024)
#define FOLD_WORK_MAX  ((uint64_t)4 * 1024 * 1024)
/* More than the two ids and the numbers of a record take, besides its texts. */
#define RECORD_BYTES 96

/* A record of the new table. */
struct key {
	const char *name; /* borrowed; of a tombstone: owned by names */
	uint64_t index;
	size_t i; /* of the caller, or TOMBSTONE */
	bool is_log, is_deletion;
};
#define TOMBSTONE SIZE_MAX

struct making {
	struct stack_update *u;
	stack_record_of_fn *fn;
	void *arg;
	struct key *keys;
	size_t nr, size;
	uint64_t index, bytes; /* BYTES: of all records, at most */
	uint64_t forgotten;    /* stack->forgotten_index */
	const char *deleted;   /* the ref whose log is searched */
	char message[MESSAGE_MAX + 1];
	struct reftable_writer *writer;
	uint8_t *buffer;
	size_t buffered;
};

static int add_key(struct making *m, struct key key)
{
	const size_t size = m->size > 0 ? 2 * m->size : 64;
	struct key *grown;

	if (m->nr == KEYS_MAX)
		return -EFBIG;
	if (m->nr == m->size) {
		grown = realloc(m->keys, size * sizeof(*grown));
		if (grown == NULL)
			return -ENOMEM;
		m->keys = grown;
		m->size = size;
	}
	m->keys[m->nr++] = key;
	return 0;
}

/* Git keeps the beginning of a long message, and ends every message with a line
 * feed. */
static void end_message(struct making *m, struct reftable_text *message)
{
	size_t len = message->len;

	while (len > 0 && message->at[len - 1] == '\n')
		len--;
	if (len > MESSAGE_MAX)
		len = MESSAGE_MAX;
	if (len > 0)
		memcpy(m->message, message->at, len);
	m->message[len] = '\n';
	*message = (struct reftable_text){ m->message, len + 1 };
}

static void get_record(struct making *m, size_t i, struct reftable_record *rec)
{
	memset(rec, 0, sizeof(*rec));
	rec->update_index = m->index;
	m->fn(m->arg, i, rec);
	if (rec->section == REFTABLE_LOGS && !rec->is_deletion)
		end_message(m, &rec->log.message);
}

static uint64_t bytes_of(const struct reftable_record *rec)
{
	uint64_t sum = RECORD_BYTES + strlen(rec->name);

	if (rec->is_deletion)
		return sum;
	if (rec->section == REFTABLE_LOGS)
		return sum + rec->log.name.len + rec->log.email.len +
		    rec->log.message.len;
	return rec->ref.kind == REFTABLE_REF_SYMREF ?
	    sum + rec->ref.target.len :
	    sum;
}

/* ---- keys ---- */

static int list_records(struct making *m, size_t nr)
{
	struct reftable_record rec;
	size_t i;
	int r = 0;

	for (i = 0; r == 0 && i < nr; i++) {
		get_record(m, i, &rec);
		m->bytes += bytes_of(&rec);
		r = add_key(m,
		    (struct key){ rec.name, rec.update_index, i,
			rec.section == REFTABLE_LOGS, rec.is_deletion });
	}
	return r;
}

static int compare_keys(const void *pa, const void *pb)
{
	const struct key *a = pa, *b = pb;
	int order;

	if (a->is_log != b->is_log)
		return a->is_log ? 1 : -1;
	order = strcmp(a->name, b->name);
	if (order != 0 || !a->is_log || a->index == b->index)
		return order;
	return a->index > b->index ? -1 : 1;
}

static bool is_sorted(const struct making *m)
{
	size_t i;

	for (i = 1; i < m->nr; i++)
		if (compare_keys(&m->keys[i - 1], &m->keys[i]) > 0)
			return false;
	return true;
}

/* The records of a batch without logs come in order, so the order is checked
 * first. */
static void sort(struct making *m)
{
	if (!is_sorted(m))
		qsort(m->keys, m->nr, sizeof(*m->keys), compare_keys);
}

/* stack_log_fn */
static int add_tombstone(void *arg, const struct reftable_record *log)
{
	struct making *m = arg;

	m->bytes += RECORD_BYTES + strlen(m->deleted);
	return add_key(m,
	    (struct key){ m->deleted, log->update_index, TOMBSTONE, true,
		true });
}

/* As in git, a deletion has to hide the ref and every entry of the log, so each
 * entry gets a tombstone. */
static int list_tombstones(struct making *m)
{
	struct reftable_budget own = REFTABLE_BUDGET(STACK_WORK_MAX);
	const size_t nr = m->nr;
	struct stack_reader reader;
	size_t i;
	int r = stack_reader_init(&reader, m->u->base,
	    m->u->budget != NULL ? m->u->budget : &own);

	for (i = 0; r == 0 && i < nr; i++) {
		if (m->keys[i].is_log || !m->keys[i].is_deletion)
			continue;
		m->deleted = m->keys[i].name;
		r = stack_reader_logs(&reader, m->deleted, add_tombstone, m);
		if (r < 0)
			m->u->fault = reader.fault;
	}
	stack_reader_done(&reader);
	return r;
}

/* ---- writing ---- */

static int write_buffer(struct making *m)
{
	int r = m->buffered == 0 ? 0 :
				   SYS(m->u->stack->sys, write_all,
				       m->u->table_fd, m->buffer, m->buffered);

	m->buffered = 0;
	return r;
}

/* reftable_write_fn */
static int add_bytes(void *arg, const void *bytes, size_t len)
{
	struct making *m = arg;
	int r;

	if (len > BUFFER_BYTES - m->buffered) {
		r = write_buffer(m);
		if (r < 0)
			return r;
	}
	if (len > BUFFER_BYTES)
		return SYS(m->u->stack->sys, write_all, m->u->table_fd, bytes,
		    len);
	memcpy(m->buffer + m->buffered, bytes, len);
	m->buffered += len;
	return 0;
}

static int add_record(struct making *m, const struct key *key)
{
	struct reftable_record rec;

	if (key->i != TOMBSTONE) {
		get_record(m, key->i, &rec);
	} else {
		rec = (struct reftable_record){ .section = REFTABLE_LOGS,
			.name = key->name,
			.update_index = key->index,
			.is_deletion = true };
	}
	return reftable_writer_add(m->writer, &rec);
}

/* A tombstone hides records of earlier tables, so without an earlier table the
 * tombstone could go. But recovery would redo a row of the ref if nothing
 * showed that another program deleted the ref later. So the tombstone stays as
 * evidence until the rows are forgotten. */
static int add_folded(struct making *m, const struct reftable_record *rec)
{
	if (rec->is_deletion && m->u->first_folded == 0 &&
	    rec->update_index <= m->forgotten)
		return 0;
	return reftable_writer_add(m->writer, rec);
}

static uint64_t forgotten_index(struct stack *stack)
{
	uint64_t index;

	mutex_lock(&stack->mutex);
	index = stack->forgotten_index;
	mutex_unlock(&stack->mutex);
	return index;
}

/* The order of KEY and of a record of the same section. */
static int compare_record(const struct key *key,
    const struct reftable_record *rec)
{
	const struct key other = { rec->name, rec->update_index, 0, key->is_log,
		false };

	return compare_keys(key, &other);
}

/* Writes a section, with the records of the folded tables, and the new records
 * from key *AT on, which hide folded records with the same key. */
static int write_section(struct making *m, enum reftable_section section,
    size_t *at)
{
	const struct stack_update *u = m->u;
	const bool is_log = section == REFTABLE_LOGS;
	struct reftable_budget budget =
	    REFTABLE_BUDGET(u->is_merge ? MERGE_WORK_MAX : FOLD_WORK_MAX);
	struct reftable_stack part = u->base->tables;
	const struct reftable_record *old;
	struct reftable_merged *folded;
	const struct key *key;
	int r, has_old, order;

	part.tables += u->first_folded;
	part.nr = u->end_folded - u->first_folded;
	r = reftable_merged_open(&part, section, "", true, &budget, &folded,
	    &m->u->fault);
	if (r < 0)
		return r;
	has_old = reftable_merged_next(folded, &old, &m->u->fault);
	for (; r == 0 && has_old >= 0;) {
		key = *at < m->nr && m->keys[*at].is_log == is_log ?
		    &m->keys[*at] :
		    NULL;
		if (key == NULL && has_old == 0)
			break;
		order = key == NULL ? 1 :
		    has_old == 0    ? -1 :
				      compare_record(key, old);
		r = order <= 0 ? add_record(m, key) : add_folded(m, old);
		*at += order <= 0;
		if (order >= 0)
			has_old =
			    reftable_merged_next(folded, &old, &m->u->fault);
	}
	reftable_merged_free(folded);
	return r < 0 ? r : has_old < 0 ? has_old : 0;
}

/* The least index of the folded tables, or else the index of the new
 * records. */
static uint64_t least_index(const struct stack_update *u)
{
	if (u->first_folded == u->end_folded)
		return u->index;
	return reftable_stack_min_index(u->base->tables.tables +
		u->first_folded,
	    u->end_folded - u->first_folded);
}

static int write_records(struct making *m)
{
	size_t at = 0;
	int r;

	m->writer = reftable_writer_new(m->u->base->tables.format,
	    least_index(m->u), m->index, add_bytes, m);
	if (m->writer == NULL)
		return -ENOMEM;
	r = write_section(m, REFTABLE_REFS, &at);
	if (r == 0)
		r = write_section(m, REFTABLE_LOGS, &at);
	if (r == 0)
		r = reftable_writer_finish(m->writer);
	if (r == 0)
		r = write_buffer(m);
	reftable_writer_free(m->writer);
	return r;
}

/* ---- files ---- */

/* Gives the table a random name, because a table is known by its name alone,
 * and no name may come back. Without a token nothing in stage/ is ours, so the
 * file is made by its final name. */
static int give_name(struct stack_update *u, uint64_t min, uint64_t max)
{
	const struct sys *sys = u->stack->sys;
	const struct token *token = u->list.token;
	char value[TOKEN_NAME_MAX];
	unsigned tries;
	uint32_t random;
	int r = -EEXIST;

	if (token != NULL)
		token_value_name(value, token->id, u->value_nr);
	for (tries = 0; r == -EEXIST && tries < NAME_TRIES; tries++) {
		if (getrandom(&random, sizeof(random), 0) != sizeof(random))
			return -EIO;
		reftable_writer_name(min, max, random, u->table);
		r = token != NULL ? SYS(sys, linkat, token->stage_fd, value,
					u->stack->dirfd, u->table) :
				    SYS(sys, openat, u->stack->dirfd, u->table,
					O_WRONLY | O_CREAT | O_EXCL, u->mode);
	}
	u->has_table = r >= 0;
	if (token == NULL && r >= 0)
		u->table_fd = r;
	return r < 0 ? r : 0;
}

int stack_table_create(struct stack_update *u, uint64_t min, uint64_t max)
{
	const struct token *token = u->list.token;
	char value[TOKEN_NAME_MAX];
	int fd;

	if (token == NULL)
		return give_name(u, min, max);
	token_value_name(value, token->id, u->value_nr);
	fd = SYS(u->stack->sys, openat, token->stage_fd, value,
	    O_WRONLY | O_CREAT | O_EXCL, u->mode);
	if (fd < 0)
		return fd;
	u->table_fd = fd;
	u->has_staged = true;
	return 0;
}

int stack_table_name(struct stack_update *u, uint64_t min, uint64_t max)
{
	int r = u->list.token != NULL ? give_name(u, min, max) : 0;

	if (r == 0)
		r = SYS(u->stack->sys, fstat, u->table_fd, &u->table_stat);
	return r;
}

int stack_table_drop(struct stack_update *u)
{
	const struct sys *sys = u->stack->sys;
	char value[TOKEN_NAME_MAX];
	int r = 0;

	if (u->table_fd >= 0)
		SYS(sys, close, u->table_fd);
	u->table_fd = -1;
	if (u->list.progress == PROGRESS_DEFERRED)
		return 0;
	u->is_flushed = u->is_large = false;
	if (u->has_table)
		r = SYS(sys, unlinkat, u->stack->dirfd, u->table);
	if (r < 0 && r != -ENOENT)
		return r;
	u->has_table = false;
	if (!u->has_staged)
		return 0;
	token_value_name(value, u->list.token->id, u->value_nr);
	r = SYS(sys, unlinkat, u->list.token->stage_fd, value);
	if (r < 0 && r != -ENOENT)
		return r;
	u->has_staged = false;
	return 0;
}

static int take_index(struct making *m)
{
	struct stack_update *u = m->u;
	uint64_t next = stack_next_index(u->stack, u->base);

	if (u->is_merge) {
		u->index = m->index = reftable_stack_max_index(
		    u->base->tables.tables + u->first_folded,
		    u->end_folded - u->first_folded);
		return 0;
	}
	u->is_large = m->bytes > STACK_LARGE;
	if (next == 0)
		return -EOVERFLOW;
	u->index = m->index = next;
	return 0;
}

static int write_file(struct making *m)
{
	struct stack_update *u = m->u;
	int r = stack_table_create(u, least_index(u), u->index);

	if (r == 0)
		r = write_records(m);
	/* Git's blocks may be larger, so a folded record may not fit. Then the
	 * table is made without folding. */
	if ((r == -E2BIG || r == -EFBIG) && !u->is_merge &&
	    u->first_folded < u->end_folded) {
		u->first_folded = u->end_folded;
		m->buffered = 0;
		r = stack_table_drop(u);
		if (r == 0)
			r = stack_table_create(u, least_index(u), u->index);
		if (r == 0)
			r = write_records(m);
	}
	if (r < 0)
		return r;
	if (!u->is_merge)
		stack_spend_index(u->stack, u->index);
	return stack_table_name(u, least_index(u), u->index);
}

static int make_table(struct making *m, size_t nr)
{
	struct stack_update *u = m->u;
	int r;

	m->buffer = malloc(BUFFER_BYTES);
	if (m->buffer == NULL)
		return -ENOMEM;
	m->index = STACK_INDEX_MAX;
	m->forgotten = forgotten_index(u->stack);
	r = list_records(m, nr);
	if (r == 0) {
		sort(m);
		r = list_tombstones(m);
	}
	if (r == 0)
		r = take_index(m);
	if (r == 0 && !u->is_merge && !u->is_large)
		stack_fold_choose(u, m->bytes);
	sort(m);
	return r < 0 ? r : write_file(m);
}

int stack_table_make(struct stack_update *u, size_t nr, stack_record_of_fn *fn,
    void *arg)
{
	struct making m = { .u = u, .fn = fn, .arg = arg };
	int r;

	memset(&u->fault, 0, sizeof(u->fault));
	snprintf(u->fault.table, sizeof(u->fault.table), "a new table");
	r = make_table(&m, nr);
	if (r < 0)
		stack_table_drop(u);
	free(m.keys);
	free(m.buffer);
	return r;
}
