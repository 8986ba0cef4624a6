/*
 * Facts that only the WAL file has, read through SQLite's own handle.
 * Committer's mutex held. (https://www.sqlite.org/fileformat2.html, 4.1.)
 *
 * Happy path: only 32 bytes are read, after the WAL has begun anew.
 *
 * Failure modes:
 *	A COMMIT fails while SQLite writes the frames. The transaction does not
 *	count until its last frame, the frame with the commit mark, is whole.
 *	But a write can fail half-way, and an older WAL may have left the other
 *	half in that place: then the frame is whole after all, and after a crash
 *	the next start would find the transaction committed. So the frame is
 *	checked.
 *	The file cannot be read: the answer is yes, since nothing is known.
 */
#include <string.h>

#include "daemon/store/journal/journal_internal.h"

#define HEADER_BYTES       32
#define FRAME_HEADER_BYTES 24

/* Bytes beyond the end of the file read as zeros. */
static bool read_wal(sqlite3_file *wal, void *buf, int len, int64_t offset)
{
	int rc = wal->pMethods->xRead(wal, buf, len, offset);

	return rc == SQLITE_OK || rc == SQLITE_IOERR_SHORT_READ;
}

static sqlite3_file *open_wal(struct journal *j)
{
	sqlite3_file *wal = NULL;

	if (sqlite3_file_control(j->db, "main", SQLITE_FCNTL_JOURNAL_POINTER,
		&wal) != SQLITE_OK ||
	    wal == NULL || wal->pMethods == NULL)
		return NULL;
	return wal;
}

void journal_wal_began(struct journal *j)
{
	sqlite3_file *wal = open_wal(j);

	j->salt_known =
	    wal != NULL && read_wal(wal, j->salt, sizeof(j->salt), 16);
}

bool journal_wal_may_hold(struct journal *j, int nr)
{
	uint8_t header[HEADER_BYTES], frame[FRAME_HEADER_BYTES];
	sqlite3_file *wal = open_wal(j);
	sqlite3_int64 size;
	int64_t at, frame_bytes;

	if (wal == NULL || wal->pMethods->xFileSize(wal, &size) != SQLITE_OK ||
	    !read_wal(wal, header, sizeof(header), 0))
		return true;
	frame_bytes =
	    FRAME_HEADER_BYTES + (int64_t)journal_big_endian(header + 8);
	at = HEADER_BYTES + frame_bytes * (nr - 1);
	if (j->frames > 0) {
		if (!j->salt_known)
			return true;
		if (memcmp(header + 16, j->salt, sizeof(j->salt)) == 0)
			at += frame_bytes * j->frames;
	}
	if (size < at + frame_bytes)
		return false;
	if (!read_wal(wal, frame, sizeof(frame), at))
		return true;
	return journal_big_endian(frame + 4) != 0 &&
	    memcmp(frame + 8, header + 16, 8) == 0;
}
