/*
 * The findings of a recovery, on their way to the report.
 *
 * The happy path: each finding is passed on.
 *
 * In a strict recovery (recover.h), a finding after which this machine alone
 * would have a value of its own keeps its repository waiting, and the first
 * such finding is explained. A start passes such findings on, too. A retry does
 * not, because each retry meets the same findings again. Other findings come
 * again as well, because the ref has its value and no redo removes them. A
 * retry holds these findings back until it ends well.
 */
#include <stdlib.h>
#include <string.h>

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

struct recover_held {
	struct recover_held *next;
	struct store_found found;
	char texts[]; /* its ref and its text */
};

/* False: there is no memory. */
static bool hold(struct recover_findings *f, const struct store_found *found)
{
	const size_t nr_ref = strlen(found->ref) + 1;
	const size_t nr_text = strlen(found->text) + 1;
	struct recover_held *held = malloc(sizeof(*held) + nr_ref + nr_text);

	if (held == NULL)
		return false;
	held->found = *found;
	held->found.ref = memcpy(held->texts, found->ref, nr_ref);
	held->found.text = memcpy(held->texts + nr_ref, found->text, nr_text);
	held->next = f->held;
	f->held = held;
	return true;
}

static struct recover_held *drop_held(struct recover_held *held)
{
	struct recover_held *next = held->next;

	free(held);
	return next;
}

void recover_findings_pass(struct recover_findings *f)
{
	for (; f->held != NULL; f->held = drop_held(f->held))
		f->report->found(f->report->arg, &f->held->found);
}

/* No evidence was saved for FOUND. */
static bool comes_again(const struct recover_findings *f,
    const struct store_found *found)
{
	return f->is_strict && f->is_retry && found->evidence == NULL &&
	    (found->is_line || found->finding == STORE_OBJECT_LACKING);
}

void recover_findings_add(void *findings, const struct store_found *found)
{
	struct recover_findings *f = findings;
	/* Each machine has logs of its own. */
	const bool waits =
	    f->is_strict && !found->is_line && is_apart(found->finding);

	if ((!waits || !f->is_retry) &&
	    !(comes_again(f, found) && hold(f, found)))
		f->report->found(f->report->arg, found);
	if (waits && !f->waits)
		f->why = repo_why("%s%s%s (%s)", found->ref,
		    found->ref[0] != '\0' ? ": " : "", found->text,
		    store_finding_name(found->finding));
	f->waits = f->waits || waits;
}

void recover_findings_end(struct recover_findings *f)
{
	free(f->why);
	f->why = NULL;
	f->waits = false;
	while (f->held != NULL)
		f->held = drop_held(f->held);
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

void recover_findings_failed(const struct recover_findings *findings,
    const char *repo, int err, bool lacks_refs)
{
	char *text = repo_why("%s: its records are kept, and nothing is "
			      "written there until they are redone%s",
	    leftover_locks_why(err),
	    lacks_refs ? "; this node does not lead its group before" : "");
	const struct store_found found = { .finding = STORE_FAILED,
		.repo = repo,
		.ref = "",
		.text = text != NULL ? text : leftover_locks_why(err) };

	findings->report->found(findings->report->arg, &found);
	free(text);
}
