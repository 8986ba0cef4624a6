/*
 * The keys of history's index, and the search for keys.
 *
 * A key is a letter and a value. A number is stored as the count of its bytes,
 * then the bytes, so that no key is a prefix of another key:
 *	n <repo> <name>	a ref
 *	a <name>	a ref of any repository
 *	r <repo>	a repository
 *	u <uid>		a peer
 *	w <text>	a user, in the words of an identity
 *
 * Failure modes: those of journal_index.c.
 */
#include <assert.h>
#include <string.h>

#include "daemon/store/journal/journal_index_internal.h"

/* ---- keys ---- */

static void put_letter(struct journal_key *key, char letter)
{
	key->bytes[0] = (uint8_t)letter;
	key->len = 1;
}

static void put_number(struct journal_key *key, uint64_t n)
{
	unsigned i, bytes = 0;

	while (bytes < 8 && n >> (8 * bytes) != 0)
		bytes++;
	key->bytes[key->len++] = (uint8_t)bytes;
	for (i = bytes; i-- > 0;)
		key->bytes[key->len++] = (uint8_t)(n >> (8 * i));
}

static void put_text(struct journal_key *key, const char *text, size_t len)
{
	assert(len <= sizeof(key->bytes) - key->len);
	memcpy(key->bytes + key->len, text, len);
	key->len += len;
}

void journal_index_key_repo(struct journal_key *key, uint64_t repo)
{
	put_letter(key, 'r');
	put_number(key, repo);
}

void journal_index_key_uid(struct journal_key *key, uint32_t uid)
{
	put_letter(key, 'u');
	put_number(key, uid);
}

void journal_index_key_user(struct journal_key *key, const char *user,
    size_t len)
{
	put_letter(key, 'w');
	put_text(key, user, len);
}

void journal_index_key_ref(struct journal_key *key, uint64_t repo,
    const char *name, size_t len)
{
	put_letter(key, repo != 0 ? 'n' : 'a');
	if (repo != 0)
		put_number(key, repo);
	put_text(key, name, len);
}

/* ---- finding ---- */

static sqlite3_int64 segment_of(uint64_t after, uint64_t before, bool down)
{
	return journal_index_segment(down ? before - 1 : after + 1);
}

int journal_index_find(struct journal_index *x, const struct journal_key *key,
    uint64_t after, uint64_t before, bool down, uint64_t *lsns, size_t max,
    size_t *nr)
{
	sqlite3_stmt *s = down ? x->stmts[INDEX_DOWN] : x->stmts[INDEX_UP];
	int rc;

	*nr = 0;
	sqlite3_bind_int64(s, 1, segment_of(after, before, down));
	sqlite3_bind_blob(s, 2, key->bytes, (int)key->len, SQLITE_STATIC);
	sqlite3_bind_int64(s, 3, journal_signed(after));
	sqlite3_bind_int64(s, 4, journal_signed(before));
	sqlite3_bind_int64(s, 5, (sqlite3_int64)max);
	while ((rc = sqlite3_step(s)) == SQLITE_ROW)
		lsns[(*nr)++] = (uint64_t)sqlite3_column_int64(s, 0);
	sqlite3_reset(s);
	return rc == SQLITE_DONE ? 0 : journal_errno(rc);
}

/* The least key that does not begin with KEY. */
static void key_behind(const struct journal_key *key, struct journal_key *end)
{
	*end = *key;
	while (end->len > 1 && end->bytes[end->len - 1] == 0xff)
		end->len--;
	end->bytes[end->len - 1]++;
}

int journal_index_each(struct journal_index *x, const struct journal_key *key,
    uint64_t after, uint64_t before,
    int (*cb)(void *arg, const char *rest, size_t len, uint64_t lsn), void *arg)
{
	struct journal_key end;
	sqlite3_stmt *s = x->stmts[INDEX_EACH];
	int rc = SQLITE_DONE, r = 0;

	key_behind(key, &end);
	sqlite3_bind_int64(s, 1, segment_of(after, before, false));
	sqlite3_bind_blob(s, 2, key->bytes, (int)key->len, SQLITE_STATIC);
	sqlite3_bind_blob(s, 3, end.bytes, (int)end.len, SQLITE_STATIC);
	sqlite3_bind_int64(s, 4, journal_signed(after));
	sqlite3_bind_int64(s, 5, journal_signed(before));
	while (r == 0 && (rc = sqlite3_step(s)) == SQLITE_ROW)
		r = cb(arg, (const char *)sqlite3_column_blob(s, 0) + key->len,
		    (size_t)sqlite3_column_bytes(s, 0) - key->len,
		    (uint64_t)sqlite3_column_int64(s, 1));
	sqlite3_reset(s);
	return r != 0 || rc == SQLITE_DONE ? r : journal_errno(rc);
}
