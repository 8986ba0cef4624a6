/*
 * The chain of digests of the rows. Each digest contains the digest before, so
 * a line that is noted elsewhere fixes all earlier rows (refd log --head, refd
 * verify --head).
 *
 * Happy path:
 *	extend	SHA-256 of the digest before, and of the row as its checksum
 *		covers it: numbers and id, always as many bytes, and the body
 *	trim	the digest of the trimmed rows goes into a table of its own, in
 *		the transaction that deletes them. So the chain of the other
 *		rows can always be made again from the journal alone
 *
 * Somebody who rewrites the journal can store any digest of the trimmed rows.
 * But then the digest of the rows behind the trimmed rows differs from the
 * noted digest, so the stored digest need not be protected.
 *
 * Failure modes:
 *	no table, because nothing was trimmed yet	a chain of zeros
 *	a refd without chains has trimmed since		the same: the earlier
 *							lines do not match
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/store/journal/journal_internal.h"
#include "proto/hex.h"

void journal_chain_add(struct journal_chain *chain,
    const struct journal_row *row)
{
	uint8_t head[JOURNAL_HEAD_BYTES];
	struct sha sha;

	journal_put_head(row, head);
	sha_init(&sha, REFD_FORMAT_SHA256);
	sha_add(&sha, chain->digest, sizeof(chain->digest));
	sha_add(&sha, head, sizeof(head));
	if (row->len > 0)
		sha_add(&sha, row->body, row->len);
	sha_done(&sha, chain->digest);
	chain->lsn = row->lsn;
}

/* The chain of a journal that has all its rows begins with zeros, so only the
 * first trimming makes the table. The only row has the id 1. */
int journal_write_chain(struct journal *j, const struct journal_chain *chain)
{
	sqlite3_stmt *s = NULL;
	int rc;

	rc = sqlite3_exec(j->db,
	    "CREATE TABLE IF NOT EXISTS " JOURNAL_CHAIN
	    "(id INTEGER PRIMARY KEY, lsn INTEGER NOT NULL,"
	    " digest BLOB NOT NULL) STRICT",
	    NULL, NULL, NULL);
	if (rc == SQLITE_OK)
		rc = journal_prepare(j->db,
		    "INSERT OR REPLACE INTO " JOURNAL_CHAIN " VALUES(1, ?, ?)",
		    &s);
	if (rc == SQLITE_OK) {
		sqlite3_bind_int64(s, 1, (sqlite3_int64)chain->lsn);
		sqlite3_bind_blob(s, 2, chain->digest, sizeof(chain->digest),
		    SQLITE_STATIC);
		rc = journal_run(s);
	}
	sqlite3_finalize(s);
	return rc;
}

/* ---- the line ---- */

char *journal_chain_text(const uint8_t uuid[16],
    const struct journal_chain *chain, char text[JOURNAL_CHAIN_TEXT])
{
	char id[33], digest[2 * SHA256_BYTES + 1];

	snprintf(text, JOURNAL_CHAIN_TEXT, "refd-head %s %" PRIu64 " %s",
	    refd_hex_put(uuid, 16, id), chain->lsn,
	    refd_hex_put(chain->digest, SHA256_BYTES, digest));
	return text;
}

/* Only the text that journal_chain_text() makes. */
bool journal_chain_parse(const char *text, uint8_t uuid[16],
    struct journal_chain *chain)
{
	char id[33], digest[2 * SHA256_BYTES + 1], again[JOURNAL_CHAIN_TEXT];

	return sscanf(text, "refd-head %32s %" SCNu64 " %64s", id, &chain->lsn,
		   digest) == 3 &&
	    refd_hex_parse(id, uuid, 16) == 0 &&
	    refd_hex_parse(digest, chain->digest, SHA256_BYTES) == 0 &&
	    strcmp(journal_chain_text(uuid, chain, again), text) == 0;
}
