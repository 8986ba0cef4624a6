/*
 * Proves that a program of libgit2 sees no difference: the same calls in two
 * equal repositories, one of them attached to refd, return the same codes and
 * leave the same refs, symbolic refs and logs. Prints `ok` and `not ok` lines.
 *
 *	differ REPO REPO-OF-REFD SOCKET OTHER-REPO
 *
 * Both repositories have the commits HEAD and HEAD~1, and a work tree with a
 * file `f`. fetch reads OTHER-REPO.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/libgit2/refd_git2.h"
#include "tests/libgit2/calls.h"

/* ---- the comparison ---- */

static void show_log(FILE *out, git_repository *repo, const char *name)
{
	git_reflog *log;
	size_t i;

	if (!git_reference_has_log(repo, name))
		return;
	if (git_reflog_read(&log, repo, name) < 0)
		errx(1, "%s: %s", name, git_error_last()->message);
	for (i = 0; i < git_reflog_entrycount(log); i++) {
		const git_reflog_entry *e = git_reflog_entry_byindex(log, i);
		const char *message = git_reflog_entry_message(e);
		char id[GIT_OID_HEXSZ + 1];

		fprintf(out, "\t%s",
		    git_oid_tostr(id, sizeof(id), git_reflog_entry_id_old(e)));
		fprintf(out, " %s %s\t%s\n",
		    git_oid_tostr(id, sizeof(id), git_reflog_entry_id_new(e)),
		    git_reflog_entry_committer(e)->name,
		    message ? message : "");
	}
	git_reflog_free(log);
}

static void show_ref(FILE *out, git_repository *repo, const git_reference *ref)
{
	const char *target = git_reference_symbolic_target(ref);
	char id[GIT_OID_HEXSZ + 1];

	if (!target)
		target =
		    git_oid_tostr(id, sizeof(id), git_reference_target(ref));
	fprintf(out, "%s %s\n", git_reference_name(ref), target);
	show_log(out, repo, git_reference_name(ref));
}

/* All refs with their logs, owned by the caller. */
static char *show(git_repository *repo)
{
	git_reference_iterator *it;
	git_reference *ref;
	size_t len;
	char *text;
	FILE *out = open_memstream(&text, &len);

	ref = calls_look(repo, "HEAD");
	show_ref(out, repo, ref);
	git_reference_free(ref);
	if (git_reference_iterator_new(&it, repo) < 0)
		errx(1, "%s", git_error_last()->message);
	while (git_reference_next(&ref, it) == 0) {
		show_ref(out, repo, ref);
		git_reference_free(ref);
	}
	git_reference_iterator_free(it);
	fclose(out);
	return text;
}

/* The first line in which two texts differ. */
static void show_difference(const char *a, const char *b)
{
	size_t at = 0;

	while (a[at] && a[at] == b[at])
		at++;
	while (at > 0 && a[at - 1] != '\n')
		at--;
	printf("# files: %.*s\n# refd:  %.*s\n", (int)strcspn(a + at, "\n"),
	    a + at, (int)strcspn(b + at, "\n"), b + at);
}

static int compare(const struct call *c, git_repository *files,
    git_repository *refd)
{
	int want = c->run(files), got = c->run(refd);
	const git_error *why = git_error_last();
	char *before = show(files), *after = show(refd);
	int bad = want != got || strcmp(before, after) != 0;

	if (!bad)
		printf("ok %s: %d\n", c->name, got);
	else
		printf("not ok %s: files: %d, refd: %d %s\n", c->name, want,
		    got, got < 0 && why ? why->message : "");
	if (strcmp(before, after) != 0)
		show_difference(before, after);
	free(before);
	free(after);
	return bad;
}

static git_repository *open_repo(const char *path)
{
	git_repository *repo;
	git_object *id;

	if (git_repository_open(&repo, path) < 0 ||
	    git_revparse_single(&id, repo, "HEAD~1") < 0)
		errx(1, "%s: %s", path, git_error_last()->message);
	calls_one = *git_object_id(id);
	git_object_free(id);
	if (git_reference_name_to_id(&calls_two, repo, "HEAD") < 0)
		errx(1, "%s: %s", path, git_error_last()->message);
	return repo;
}

int main(int argc, char **argv)
{
	git_repository *files, *refd;
	const struct call *c;
	int bad = 0;
	if (argc != 5)
		errx(129, "usage: differ REPO REPO-OF-REFD SOCKET OTHER-REPO");
	git_libgit2_init();
	files = open_repo(argv[1]);
	refd = open_repo(argv[2]);
	calls_other_repo = argv[4];
	if (refd_git2_attach(refd, argv[3]) < 0 ||
	    git_signature_new(&calls_who, "A", "a@example.com", 1700000000,
		60) < 0)
		errx(1, "%s", git_error_last()->message);
	for (c = calls_refs; c->name; c++)
		bad |= compare(c, files, refd);
	for (c = calls_logs; c->name; c++)
		bad |= compare(c, files, refd);
	git_signature_free(calls_who);
	git_repository_free(files);
	git_repository_free(refd);
	git_libgit2_shutdown();
	return bad;
}
