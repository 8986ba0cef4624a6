/*
 * Redoes log lines.
 *
 * The happy path: every line is there; nothing is written.
 *
 * Failures:
 *	the log's name is taken, by a directory with entries or by a file
 *	above: reported; a value does not wait for its log
 *	a foreign lock on a ref that only needs a line, or no room for the
 *	line: deferred
 *	the ref is gone, or its name was taken: there is no log to repair
 *	the disk: the errno
 *
 * Nobody waits for a line alone, so such a line is deferred where a value would
 * stop the recovery of the repository. In a strict recovery the log of a ref
 * with its value is of this kind, too: the logs of other machines differ, and
 * the owner of a repository may take room and rights away.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/store/files/format/loose.h"
#include "daemon/store/files/recovery/redo_files.h"

bool redo_is_no_log(int err)
{
	return err == -EISDIR || err == -ENOTDIR || err == -ELOOP ||
	    err == -EMLINK || err == -EINVAL;
}

static int add_missing_lines(struct replay *rp, const struct redo *redo,
    const struct reflog_file *log, const struct ref_records_lines *lines)
{
	size_t added = 0, cut = 0;
	bool one = false;
	char text[64];
	int r = 0;

	if (lines->nr > 0)
		r = reflog_repair(log, (const char *const *)lines->lines,
		    lines->nr, lines->known, &added, &cut);
	/* Our lock stood, so nobody has appended since. */
	if (r == 0 && lines->last != NULL)
		r = reflog_complete(log, lines->last, strlen(lines->last),
		    &one);
	if (r == 0 && added + one + cut > 0) {
		snprintf(text, sizeof(text),
		    "%zu lines added, %zu bytes cut off", added + one, cut);
		redo_report(rp, STORE_LOG_REPAIRED, redo->records->name, text);
	}
	return r;
}

/* Mends the end of a log that lacks no line, because a torn end would hide
 * every later line. If another reference has taken the name since, there is no
 * log to mend. */
static int mend_end(struct reflog_file *log)
{
	size_t added, cut;
	int r;

	log->create = false;
	r = reflog_repair(log, NULL, 0, 0, &added, &cut);
	return r == -ENOENT || r == -ENOTDIR || r == -EISDIR ? 0 : r;
}

static int redo_lines(struct replay *rp, struct redo *redo,
    const struct ref_record *after, bool create)
{
	struct ref_records_lines lines;
	char path[REFD_PATH_MAX];
	struct reflog_file log = edit_log(&redo->edit, path);
	int r;

	r = ref_records_log_lines(redo->records, after, redo->held != NULL,
	    ref_records_find(rp->older_records, redo->records->key), &lines);
	if (r < 0)
		return r;
	r = loose_stays_inside(rp->sys, redo->edit.dirfd, path);
	if (r == 0)
		r = redo_read_disk(rp, redo->edit.dirfd, path);
	if (r == 0 && lines.deletes)
		r = edit_remove_log(&redo->edit);
	log.create = create;
	if (lines.row != NULL) {
		log.file_mode = lines.row->rec.file_mode;
		log.dir_mode = lines.row->rec.dir_mode;
	}
	if (r == 0 && (lines.nr > 0 || lines.last != NULL))
		r = add_missing_lines(rp, redo, &log, &lines);
	else if (r == 0)
		r = mend_end(&log);
	ref_records_lines_done(&lines);
	if (redo_is_no_log(r)) {
		redo_report_line(rp, STORE_LEFT, redo->records->name,
		    "its log can't be written: something else stands there");
		return 0;
	}
	return r == -ENOENT && !create ? 0 : r;
}

int redo_log(struct replay *rp, struct redo *redo)
{
	return redo_lines(rp, redo, NULL, true);
}

/* May a line that ERR has stopped wait alone? */
static bool is_of_line(const struct replay *rp, int err)
{
	return err == -ENOSPC || err == -EDQUOT ||
	    (rp->is_strict && (err == -EACCES || err == -EPERM));
}

static void defer_lines(struct replay *rp, const struct redo *redo, int err)
{
	char text[128];

	snprintf(text, sizeof(text),
	    "its log line can't be written: %s; tried again later",
	    strerror(-err));
	redo_report_line(rp, STORE_DEFERRED, redo->records->name, text);
	redo_defer(redo, rp->is_strict);
}

int redo_log_of_value(struct replay *rp, struct redo *redo)
{
	int r = redo_log(rp, redo);

	if (!rp->is_strict || !is_of_line(rp, r))
		return r;
	defer_lines(rp, redo, r);
	return 0;
}

/* Does a log that ends at the value LAST lack our lines? A power loss can take
 * several lines, so LAST can be the old value of any of them. The log is the
 * same one back to a creation or a deletion, so the search ends there. */
static bool ends_before_ours(const struct redo *redo,
    const struct refd_oid *last)
{
	const struct ref_record *rec = redo->value;
	const struct record_member *m = rec->member;

	while (m->action != RECORD_DELETE && m->had_old) {
		if (m->action == RECORD_WRITE && m->log &&
		    refd_oid_eq(last, &m->old_oid))
			return true;
		if (rec == redo->records->items)
			break;
		m = (--rec)->member;
	}
	return false;
}

/* Does the log end at an old value of ours? A log only grows, so our line is
 * then missing, and so are later lines of other writers. After a deletion, a
 * new log begins with a line from the null oid. So if the last line is not from
 * the null oid, the log is the deleted log. */
static int lacks_ours(struct replay *rp, const struct redo *redo)
{
	const struct record_member *m = redo->value->member;
	bool deletes = m->action == RECORD_DELETE;
	char path[REFD_PATH_MAX];
	const struct reflog_file log = edit_log(&redo->edit, path);
	struct refd_oid old, last;
	int r;

	if (deletes ? !m->had_old : m->action != RECORD_WRITE || !m->log)
		return 0;
	r = redo_read_disk(rp, redo->edit.dirfd, path);
	if (r == 0)
		r = reflog_last(&log, &old, &last);
	if (r <= 0)
		return !deletes && (r == 0 || r == -ENOENT);
	return deletes ?
	    refd_oid_eq(&last, &m->old_oid) && !refd_oid_is_null(&old) :
	    ends_before_ours(redo, &last);
}

int redo_log_of_left(struct replay *rp, struct redo *redo)
{
	return redo_lines(rp, redo, lacks_ours(rp, redo) ? NULL : redo->value,
	    true);
}

static int lines_alone(struct replay *rp, struct redo *redo)
{
	struct loose_value loose;
	bool is_there;
	int r;

	r = redo_lock(rp, redo);
	if (r == 0)
		r = edit_read(&redo->edit, &loose);
	if (r < 0)
		return r;
	/* A deleted ref has no log, so none is made. */
	is_there = loose.kind != LOOSE_ABSENT && loose.kind != LOOSE_DIR;
	loose_value_done(&loose);
	return redo_lines(rp, redo, NULL, is_there);
}

int redo_log_alone(struct replay *rp, struct redo *redo)
{
	int r;

	r = lines_alone(rp, redo);
	/* Nobody else waits for a line, so a lack of room only defers the
	 * line. */
	if (is_of_line(rp, r)) {
		defer_lines(rp, redo, r);
		r = 0;
	}
	return redo_end_and_prune(rp, redo, r);
}
