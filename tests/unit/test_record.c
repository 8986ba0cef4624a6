/*
 * Proves the encoding of a journal row's body. Random records come back
 * unchanged. Shorter and longer inputs and unknown versions, flags, statuses
 * and actions are refused. A number of members never costs more memory than the
 * input justifies.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/journal/record.h"
#include "tests/lib/gen_message.h"
#include "tests/lib/suite.h"

#define MEMBERS_MAX 40
#define STRING_MAX  48

/* Storage for the strings of one random record. */
static char strings[2 + 4 * MEMBERS_MAX][STRING_MAX];
static struct record_member members[MEMBERS_MAX];

static const char *random_string(struct gen *g, size_t slot, uint32_t min)
{
	uint32_t i, len = min + gen_below(g, STRING_MAX - 1 - min);

	for (i = 0; i < len; i++)
		strings[slot][i] = (char)(1 + gen_below(g, 255));
	strings[slot][len] = '\0';
	return strings[slot];
}

static enum refd_object_format format; /* of the random ids */
static bool has_indices, is_gated;

static struct refd_oid random_oid(struct gen *g)
{
	struct refd_oid oid = { 0 };
	size_t i;

	for (i = 0; i < refd_object_format_bytes(format); i++)
		oid.bytes[i] = (uint8_t)gen_u64(g);
	return oid;
}

/* SLOT is the first of two slots. */
static void random_ok(struct gen *g, struct record_member *m, size_t slot)
{
	static const enum record_action actions[] = { RECORD_NOTHING,
		RECORD_WRITE, RECORD_DELETE, RECORD_LOG };

	m->action = actions[gen_below(g, 4)];
	if (gen_below(g, 2))
		m->worktree = random_string(g, slot, 1);
	if (m->action == RECORD_WRITE && gen_below(g, 2))
		m->target = random_string(g, slot + 1, 0);
	m->is_line =
	    m->action == RECORD_WRITE && m->target == NULL && gen_below(g, 2);
	m->new_oid = random_oid(g);
	m->had_old = gen_below(g, 2);
	if (m->had_old)
		m->old_oid = random_oid(g);
	if (m->had_old && !has_indices)
		m->old_mtime_ns = (int64_t)gen_u64(g);
	m->had_packed = gen_below(g, 2);
	if (m->had_packed)
		m->packed_oid = random_oid(g);
	m->log = gen_below(g, 2);
	if (has_indices) {
		m->update_index = gen_u64(g);
		m->old_index = gen_u64(g);
		m->base_index = gen_u64(g);
	}
	m->has_before = is_gated && gen_below(g, 2);
	if (m->has_before)
		m->before = random_oid(g);
}

static void random_member(struct gen *g, size_t k)
{
	struct record_member *m = &members[k];

	memset(m, 0, sizeof(*m));
	m->index = (uint32_t)gen_u64(g);
	m->status = (enum refd_status)gen_below(g, REFD_STATUSES);
	if (gen_below(g, 2))
		m->status = REFD_OK;
	m->answers = gen_below(g, 2);
	m->worktree = "";
	m->name = random_string(g, 2 + 4 * k, 1);
	if (gen_below(g, 2))
		m->text = random_string(g, 3 + 4 * k, 0);
	m->has_found = gen_below(g, 2);
	if (m->has_found)
		m->found = random_oid(g);
	if (m->status == REFD_OK)
		random_ok(g, m, 4 + 4 * k);
}

static void random_record(struct gen *g, struct record *rec)
{
	size_t i;

	memset(rec, 0, sizeof(*rec));
	rec->committer = random_string(g, 0, 0);
	rec->message = random_string(g, 1, 0);
	rec->file_mode = (uint32_t)gen_u64(g);
	rec->dir_mode = (uint32_t)gen_u64(g);
	rec->nr_updates = (uint32_t)gen_u64(g);
	rec->atomic = gen_below(g, 2);
	rec->object_format = format = (enum refd_object_format)gen_below(g, 2);
	rec->has_indices = has_indices = gen_below(g, 2);
	rec->is_gated = is_gated = gen_below(g, 2);
	rec->has_objects = gen_below(g, 2);
	rec->continues = gen_below(g, 2);
	rec->digest = gen_u64(g);
	rec->nr_identities = gen_below(g, 3);
	for (i = 0; i < rec->nr_identities; i++) {
		rec->identities[i].name = i == 0 ? "GL_USER" : "REMOTE_USER";
		rec->identities[i].value = rec->message;
	}
	rec->nr_members = gen_below(g, MEMBERS_MAX + 1);
	rec->members = members;
	for (i = 0; i < rec->nr_members; i++)
		random_member(g, i);
}

static void assert_oid_eq(const struct refd_oid *a, const struct refd_oid *b)
{
	ck_assert_mem_eq(a->bytes, b->bytes, sizeof(a->bytes));
}

static void assert_member_eq(const struct record_member *a,
    const struct record_member *b)
{
	ck_assert_uint_eq(a->index, b->index);
	ck_assert_uint_eq(a->status, b->status);
	ck_assert_int_eq(a->answers, b->answers);
	ck_assert_str_eq(a->name, b->name);
	ck_assert_pstr_eq(a->text, b->text);
	ck_assert_int_eq(a->has_found, b->has_found);
	assert_oid_eq(&a->found, &b->found);
	if (a->status != REFD_OK) {
		ck_assert_ptr_null(b->worktree);
		return;
	}
	ck_assert_str_eq(a->worktree, b->worktree);
	ck_assert_uint_eq(a->action, b->action);
	ck_assert_pstr_eq(a->target, b->target);
	ck_assert_int_eq(a->is_line, b->is_line);
	assert_oid_eq(&a->new_oid, &b->new_oid);
	ck_assert_int_eq(a->had_old, b->had_old);
	assert_oid_eq(&a->old_oid, &b->old_oid);
	ck_assert_int_eq(a->old_mtime_ns, b->old_mtime_ns);
	ck_assert_int_eq(a->had_packed, b->had_packed);
	assert_oid_eq(&a->packed_oid, &b->packed_oid);
	ck_assert_int_eq(a->log, b->log);
	ck_assert_uint_eq(a->update_index, b->update_index);
	ck_assert_uint_eq(a->old_index, b->old_index);
	ck_assert_uint_eq(a->base_index, b->base_index);
	ck_assert_int_eq(a->has_before, b->has_before);
	assert_oid_eq(&a->before, &b->before);
}

static void assert_record_eq(const struct record *a, const struct record *b)
{
	size_t i;

	ck_assert_str_eq(a->committer, b->committer);
	ck_assert_str_eq(a->message, b->message);
	ck_assert_uint_eq(a->file_mode, b->file_mode);
	ck_assert_uint_eq(a->dir_mode, b->dir_mode);
	ck_assert_uint_eq(a->nr_updates, b->nr_updates);
	ck_assert_int_eq(a->atomic, b->atomic);
	ck_assert_int_eq(a->has_indices, b->has_indices);
	ck_assert_int_eq(a->is_gated, b->is_gated);
	ck_assert_int_eq(a->has_objects, b->has_objects);
	ck_assert_int_eq(a->continues, b->continues);
	ck_assert_int_eq(a->object_format, b->object_format);
	ck_assert_uint_eq(a->digest, b->digest);
	ck_assert_uint_eq(a->nr_identities, b->nr_identities);
	for (i = 0; i < a->nr_identities; i++) {
		ck_assert_str_eq(a->identities[i].name, b->identities[i].name);
		ck_assert_str_eq(a->identities[i].value,
		    b->identities[i].value);
	}
	ck_assert_uint_eq(a->nr_members, b->nr_members);
	for (i = 0; i < a->nr_members; i++)
		assert_member_eq(&a->members[i], &b->members[i]);
}

/* Decodes from memory of exactly LEN bytes, so that a sanitizer sees any longer
 * read. */
static int decode(const uint8_t *bytes, size_t len, struct record *rec)
{
	uint8_t *exact = malloc(len > 0 ? len : 1);
	int r;

	memcpy(exact, bytes, len);
	r = record_decode(exact, len, rec);
	free(exact);
	return r;
}

CASE(.seconds = 60);

TEST(what_is_decoded_was_encoded)
{
	struct gen g = { .state = 20110704 };
	struct record rec, back;
	uint8_t *bytes;
	size_t len;
	int i;

	for (i = 0; i < 2000; i++) {
		random_record(&g, &rec);
		bytes = record_encode(&rec, &len);
		ck_assert_ptr_nonnull(bytes);
		ck_assert_int_eq(decode(bytes, len, &back), 0);
		assert_record_eq(&rec, &back);
		record_done(&back);
		record_done(&back);
		free(bytes);
	}
}

TEST(a_part_or_more_than_all_is_refused)
{
	struct gen g = { .state = 4 };
	struct record rec, back;
	uint8_t *bytes, *longer;
	size_t len, cut;
	int i;

	for (i = 0; i < 50; i++) {
		random_record(&g, &rec);
		bytes = record_encode(&rec, &len);
		for (cut = 0; cut < len; cut++)
			ck_assert_int_eq(decode(bytes, cut, &back), -EBADMSG);
		longer = calloc(1, len + 1);
		memcpy(longer, bytes, len);
		ck_assert_int_eq(decode(longer, len + 1, &back), -EBADMSG);
		free(longer);
		free(bytes);
	}
}

/* Every accepted record has one encoding, so a changed byte gives another
 * record or an error. */
TEST(a_changed_byte_is_never_taken_for_the_same)
{
	struct gen g = { .state = 77 };
	struct record rec, back;
	uint8_t *bytes, *again;
	size_t len, again_len, at;
	int i, taken = 0, refused = 0;

	for (i = 0; i < 3000; i++) {
		random_record(&g, &rec);
		bytes = record_encode(&rec, &len);
		at = gen_u64(&g) % len;
		bytes[at] ^= (uint8_t)(1 + gen_below(&g, 255));
		if (decode(bytes, len, &back) == 0) {
			again = record_encode(&back, &again_len);
			ck_assert_uint_eq(again_len, len);
			ck_assert_mem_eq(again, bytes, len);
			free(again);
			record_done(&back);
			taken++;
		} else {
			refused++;
		}
		free(bytes);
	}
	ck_assert_int_gt(taken, 100);
	ck_assert_int_gt(refused, 100);
}

static struct record_member one = { .name = "refs/heads/x" };
static struct record small = { .committer = "ab",
	.message = "",
	.members = &one,
	.nr_members = 1 };

/* Offsets in the encoding of SMALL. */
enum {
	AT_VERSION = 0,
	AT_FLAGS = 1,
	AT_COMMITTER = 22,
	AT_NR_IDENTITIES = 22 + 7 + 5,
	AT_NR_MEMBERS,
	AT_STATUS = AT_NR_MEMBERS + 4 + 4,
	AT_ACTION,
	AT_MEMBER_FLAGS
};

static int decode_with(size_t at, uint8_t value)
{
	struct record back;
	size_t len;
	uint8_t *bytes = record_encode(&small, &len);
	int r;

	bytes[at] = value;
	r = decode(bytes, len, &back);
	if (r == 0)
		record_done(&back);
	free(bytes);
	return r;
}

TEST(what_is_unknown_is_refused)
{
	ck_assert_int_eq(decode_with(AT_VERSION, 5), 0);
	ck_assert_int_eq(decode_with(AT_VERSION, 4), -EBADMSG);
	ck_assert_int_eq(decode_with(AT_VERSION, 6), -EBADMSG);
	ck_assert_int_eq(decode_with(AT_NR_IDENTITIES, 1), -EBADMSG);
	ck_assert_int_eq(decode_with(AT_NR_IDENTITIES, REFD_IDENTITIES_MAX + 1),
	    -EBADMSG);
	ck_assert_int_eq(decode_with(AT_FLAGS, 1), 0);
	/* The id is too short for SHA-256. */
	ck_assert_int_eq(decode_with(AT_FLAGS, 2), -EBADMSG);
	/* The three indices are missing. */
	ck_assert_int_eq(decode_with(AT_FLAGS, 4), -EBADMSG);
	ck_assert_int_eq(decode_with(AT_FLAGS, 8), 0);
	ck_assert_int_eq(decode_with(AT_FLAGS, 16), -EBADMSG);
	ck_assert_int_eq(decode_with(AT_ACTION, 4), 0);
	ck_assert_int_eq(decode_with(AT_ACTION, 0), -EBADMSG);
	ck_assert_int_eq(decode_with(AT_ACTION, 5), 0);
	ck_assert_int_eq(decode_with(AT_ACTION, 6), -EBADMSG);
	ck_assert_int_eq(decode_with(AT_STATUS, 99), -EBADMSG);
	ck_assert_int_eq(decode_with(AT_STATUS, REFD_PENDING), -EBADMSG);
	ck_assert_int_eq(decode_with(AT_MEMBER_FLAGS, 0x30), 0);
	/* "ab" with a NUL as second byte. */
	ck_assert_int_eq(decode_with(AT_COMMITTER + 5, 0), -EBADMSG);
}

/* The two strings that come before a member's ids. */
TEST(only_what_is_written_has_a_target)
{
	struct record back;
	size_t len, at;
	uint8_t *bytes;

	one.action = RECORD_WRITE;
	one.worktree = "w";
	one.target = "";
	bytes = record_encode(&small, &len);
	ck_assert_int_eq(decode(bytes, len, &back), 0);
	ck_assert_str_eq(back.members[0].worktree, "w");
	ck_assert_str_eq(back.members[0].target, "");
	record_done(&back);
	bytes[AT_ACTION] = 4;
	ck_assert_int_eq(decode(bytes, len, &back), -EBADMSG);
	bytes[AT_ACTION] = 1;
	/* Makes the string of the worktree empty, behind the flags and the
	 * name. An empty string has another encoding. */
	at = AT_MEMBER_FLAGS + 1 + 4 + strlen(one.name) + 1;
	bytes[at] = 0;
	memmove(bytes + at + 4, bytes + at + 5, len - at - 5);
	ck_assert_int_eq(decode(bytes, len - 1, &back), -EBADMSG);
	free(bytes);
}

TEST(a_rejection_says_nothing_of_what_was_published)
{
	struct record back;
	size_t len;
	uint8_t *bytes;

	one.status = REFD_STALE;
	one.action = RECORD_WRITE;
	one.worktree = "w";
	one.target = "refs/heads/y";
	one.had_old = one.log = true;
	bytes = record_encode(&small, &len);
	ck_assert_int_eq(decode(bytes, len, &back), 0);
	ck_assert_int_eq(back.members[0].status, REFD_STALE);
	ck_assert(!back.members[0].had_old && !back.members[0].log);
	record_done(&back);
	bytes[AT_MEMBER_FLAGS] = 0x04;
	ck_assert_int_eq(decode(bytes, len, &back), -EBADMSG);
	bytes[AT_MEMBER_FLAGS] = 0;
	bytes[AT_ACTION] = 1;
	ck_assert_int_eq(decode(bytes, len, &back), -EBADMSG);
	free(bytes);
}

/* The outcome of every update, and nothing else. */
TEST(what_is_stripped_still_answers)
{
	struct record_member all[] = {
		{ .index = 0,
		    .answers = true,
		    .name = "HEAD",
		    .action = RECORD_LOG },
		{ .index = 0,
		    .name = "refs/heads/a",
		    .action = RECORD_WRITE,
		    .had_old = true,
		    .target = "refs/heads/b" },
		{ .index = 1,
		    .answers = true,
		    .status = REFD_STALE,
		    .name = "refs/heads/c",
		    .has_found = true,
		    .text = "elsewhere" },
	};
	struct record rec = { .committer = "a",
		.message = "b",
		.nr_updates = 2,
		.digest = 7,
		.nr_identities = 1,
		.identities = { { "GL_USER", "alice" } },
		.members = all,
		.nr_members = 3 };

	record_strip(&rec);
	ck_assert_uint_eq(rec.nr_members, 2);
	ck_assert_uint_eq(rec.nr_identities, 0);
	ck_assert_str_eq(rec.committer, "");
	ck_assert_uint_eq(rec.digest, 7);
	ck_assert_str_eq(all[0].name, "HEAD");
	ck_assert_int_eq(all[0].action, RECORD_NOTHING);
	ck_assert_str_eq(all[1].text, "elsewhere");
	ck_assert_int_eq(all[1].status, REFD_STALE);
	ck_assert(all[1].has_found);
}

/* Four billion members claimed by a few bytes: refused, not -ENOMEM. */
TEST(a_claim_costs_no_memory)
{
	ck_assert_int_eq(decode_with(AT_NR_MEMBERS + 3, 0xff), -EBADMSG);
	ck_assert_int_eq(decode_with(AT_NR_MEMBERS, 3), -EBADMSG);
	ck_assert_int_eq(decode_with(AT_COMMITTER + 3, 0xff), -EBADMSG);
}

TEST(a_failed_decode_leaves_the_output_alone)
{
	struct record back;
	uint8_t before[sizeof(back)], junk[] = { 3, 0, 3 };

	memset(&back, 0x5a, sizeof(back));
	memcpy(before, &back, sizeof(back));
	ck_assert_int_eq(decode(junk, sizeof(junk), &back), -EBADMSG);
	ck_assert_mem_eq(&back, before, sizeof(back));
}
