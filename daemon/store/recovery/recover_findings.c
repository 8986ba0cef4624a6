/*
 * The findings of a recovery, on their way to the report.
 *
 * The happy path: each finding is passed on.
 *
 * In a strict recovery (recover.h), a finding after which this machine alone
 * would have a value of its own is counted, and the first one explained.
 */
#include <stdlib.h>

#include "daemon/store/recovery/recover_internal.h"

/* Does this machine differ from the others after FINDING? A missing repository
 * makes no difference, because its records are redone before anybody uses it
 * again. Nor does a lacking object, because the ref has its value. */
static bool is_apart(enum store_finding finding)
{
	switch (finding) {
	case STORE_REDONE:
	case STORE_ROLLED_FORWARD:
	case STORE_UNLOCKED:
	case STORE_LOG_REPAIRED:
	case STORE_TABLE_MENDED:
	case STORE_OBJECTS_RESTORED:
	case STORE_REPO_MISSING:
	case STORE_OBJECT_LACKING:
		return false;
	case STORE_LEFT:
	case STORE_DROPPED:
	case STORE_DEFERRED:
	case STORE_OBJECT_MISSING:
	case STORE_CORRUPT:
	case STORE_FAILED:
		break;
	}
	return true;
}

void recover_findings_add(void *findings, const struct store_found *found)
{
	struct recover_findings *f = findings;

	f->report->found(f->report->arg, found);
	/* Each machine has logs of its own. */
	if (!f->is_strict || found->is_line || !is_apart(found->finding))
		return;
	f->nr_refused++;
	if (f->why == NULL)
		f->why = repo_why(
		    "'%s'%s%s: %s (%s). The journal is of a group of nodes, "
		    "and a node gives up no update of its group: correct the "
		    "cause and start again, or make the node anew from a copy "
		    "of another node",
		    found->repo, found->ref[0] != '\0' ? " " : "", found->ref,
		    found->text, store_finding_name(found->finding));
}

void recover_findings_repo(struct recover_findings *findings,
    enum store_finding finding, const char *repo, const char *text)
{
	const struct store_found found = { .finding = finding,
		.repo = repo,
		.ref = "",
		.text = text };

	recover_findings_add(findings, &found);
}

void recover_findings_failed(struct recover_findings *findings,
    const char *repo, int err, bool has_rows)
{
	char *text = repo_why("%s: its records are kept, and nothing is "
			      "written there until they are redone",
	    leftover_locks_why(err));

	const struct store_found found = { .finding = STORE_FAILED,
		.repo = repo,
		.ref = "",
		.text = text != NULL ? text : leftover_locks_why(err) };

	if (has_rows)
		recover_findings_add(findings, &found);
	else
		findings->report->found(findings->report->arg, &found);
	free(text);
}
