#include "tests/lib/follower_rig.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/time.h"
#include "daemon/store/admission/admissions_internal.h"

struct follower flw;
struct group *flw_group;
int64_t flw_row_ns, flw_node_ns;

static struct admissions admission;
static struct store_parts parts; /* of admission, which has a worker */
static uint8_t uuid[GROUP_UUID_BYTES];

/* ---- admission ---- */

/* work_source.work */
static bool admit(void *arg)
{
	struct txn_fifo txns = { .head = NULL };
	struct txn *txn;
	bool is_work;
	size_t i;

	(void)arg;
	mutex_lock(&admission.mutex);
	txn_fifo_move(&txns, &admission.to_sort);
	mutex_unlock(&admission.mutex);
	is_work = txns.head != NULL;
	while ((txn = txn_fifo_take(&txns)) != NULL) {
		txn->repo = world_repo(w, WORLD_REPO);
		ck_assert_ptr_nonnull(txn->repo);
		for (i = 0; i < txn->nr_updates; i++)
			txn->updates[i].object = TXN_OBJECT_COMMIT;
		memfs_advance(w->fs,
		    group_txn_is_row(txn) ? flw_row_ns : flw_node_ns);
		ck_assert(follower_take(&flw, txn));
	}
	return is_work;
}

static void open_admission(void)
{
	parts = w->store.parts;
	parts.workers = workers_new(1);
	ck_assert_ptr_nonnull(parts.workers);
	admission = (struct admissions){ .cfg = &parts,
		.source = { .work = admit, .most = 1 } };
	mutex_init(&admission.mutex, MUTEX_QUEUES);
	workers_add(parts.workers, &admission.source);
	ck_assert_int_eq(workers_start(parts.workers), 0);
	w->store.parts.admissions = &admission;
}

static void close_admission(void)
{
	workers_stop(parts.workers);
	workers_free(parts.workers);
	mutex_destroy(&admission.mutex);
}

/* ---- fixtures ---- */

static void count_nothing(void *store, size_t nr)
{
	(void)store;
	(void)nr;
}

static void open_group(void)
{
	struct replica *r = group_replica_new("b", 10 * NS_PER_S);

	ck_assert_ptr_nonnull(r);
	r->host = &w->store.parts;
	w->store.parts.replica = r;
	w->store.parts.committed = count_nothing;
	w->store.pipeline->applier.replica = r;
	flw_group = group_of(r);
	ck_assert_int_eq(group_open(flw_group), 0);
	journal_set_shared(w->store.journal,
	    (const uint8_t *)"a group of nodes");
}

static void note_uuid(void)
{
	struct repo *repo = world_repo(w, WORLD_REPO);

	ck_assert_ptr_nonnull(repo);
	memcpy(uuid, repo->uuid, sizeof(uuid));
	repo_put(&w->store.repos, repo);
}

void flw_setup(void)
{
	wr_setup();
	note_uuid();
	open_group();
	open_admission();
	flw_row_ns = flw_node_ns = 0;
	flw = (struct follower){ .host = &w->store.parts, .group = flw_group };
	LIST_INIT(&flw.waiting);
	LIST_INIT(&flw.mends);
	mutex_init(&flw.mutex, MUTEX_INNER);
	pthread_cond_init(&flw.back, NULL);
}

void flw_teardown(void)
{
	memfs_between(w->fs, 0, NULL, NULL);
	close_admission();
	waiting_free(&flw);
	mends_free(&flw);
	pthread_cond_destroy(&flw.back);
	mutex_destroy(&flw.mutex);
	group_free(flw_group);
	wr_teardown();
}

/* ---- rows ---- */

static void make_record(struct group_bytes *record, const char *const *names,
    size_t nr, char old, char new_c)
{
	struct record_member *members = calloc(nr, sizeof(*members));
	struct record rec = { .committer = "A <a@example.org> 1700000000 +0000",
		.message = "test",
		.file_mode = 0644,
		.dir_mode = 0755,
		.nr_updates = (uint32_t)nr,
		.object_format = world_format(),
		.members = members,
		.nr_members = nr };
	size_t i;

	ck_assert_ptr_nonnull(members);
	for (i = 0; i < nr; i++)
		members[i] = (struct record_member){ .index = (uint32_t)i,
			.status = REFD_OK,
			.answers = true,
			.name = names[i],
			.worktree = "",
			.action = RECORD_WRITE,
			.had_old = old != '0',
			.old_oid = world_oid(old),
			.new_oid = world_oid(new_c) };
	record->data = record_encode(&rec, &record->len);
	ck_assert_ptr_nonnull(record->data);
	free(members);
}

void flw_make_row(struct group_input *in, uint64_t lsn,
    const char *const *names, size_t nr, char old, char new_c)
{
	static const char path[] = "r.git"; /* of WORLD_REPO, below the root */
	struct group_row *row = &in->frame.row.row;

	*in = (struct group_input){ .frame.type = GROUP_ROW };
	in->frame.row.lsn = lsn;
	in->frame.row.epoch = 1;
	memcpy(row->repo, uuid, sizeof(row->repo));
	memcpy(row->txid.bytes, &lsn, sizeof(lsn));
	row->is_final = true;
	row->path = (struct group_bytes){ (const uint8_t *)path, strlen(path) };
	make_record(&row->record, names, nr, old, new_c);
	in->len = group_frame_bytes(&in->frame);
	ck_assert_uint_gt(in->len, 0);
	in->bytes = malloc(in->len);
	ck_assert_ptr_nonnull(in->bytes);
	group_frame_encode(&in->frame, in->bytes);
}

void flw_free_row(struct group_input *in)
{
	free((void *)(uintptr_t)in->frame.row.row.record.data);
	free(in->bytes);
	*in = (struct group_input){ .bytes = NULL };
}
