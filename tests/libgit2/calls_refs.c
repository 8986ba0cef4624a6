/*
 * Calls of libgit2 for the comparison: references, branches, tags, commits,
 * HEAD, fetch, iterators.
 */
#include "tests/libgit2/calls.h"

git_oid calls_one, calls_two;
git_signature *calls_who;
const char *calls_other_repo;

git_reference *calls_look(git_repository *repo, const char *name)
{
	git_reference *ref;

	return git_reference_lookup(&ref, repo, name) == 0 ? ref : NULL;
}

int calls_create(git_repository *repo, const char *name, const git_oid *id,
    int force)
{
	git_reference *ref = NULL;
	int err = git_reference_create(&ref, repo, name, id, force, "made");

	git_reference_free(ref);
	return err;
}

static int matching(git_repository *repo, const char *name, const git_oid *id,
    int force, const git_oid *old)
{
	git_reference *ref = NULL;
	int err = git_reference_create_matching(&ref, repo, name, id, force,
	    old, "matched");

	git_reference_free(ref);
	return err;
}

static int symbolic(git_repository *repo, const char *name, const char *target,
    int force, const char *old)
{
	git_reference *ref = NULL;
	int err = git_reference_symbolic_create_matching(&ref, repo, name,
	    target, force, old, "pointed");

	git_reference_free(ref);
	return err;
}

static int new_branch(git_repository *repo)
{
	return calls_create(repo, "refs/heads/a", &calls_one, 0);
}

static int forced(git_repository *repo)
{
	return calls_create(repo, "refs/heads/a", &calls_two, 1);
}

static int right_old(git_repository *repo)
{
	return matching(repo, "refs/heads/a", &calls_one, 1, &calls_two);
}

static int wrong_old(git_repository *repo)
{
	return matching(repo, "refs/heads/a", &calls_two, 1, &calls_two);
}

static int not_null(git_repository *repo)
{
	static const git_oid none;

	return matching(repo, "refs/heads/a", &calls_two, 1, &none);
}

static int null_old(git_repository *repo)
{
	static const git_oid none;

	return matching(repo, "refs/heads/b", &calls_two, 1, &none);
}

static int old_of_nothing(git_repository *repo)
{
	return matching(repo, "refs/heads/none", &calls_two, 1, &calls_one);
}

static int old_without_force(git_repository *repo)
{
	return matching(repo, "refs/heads/none", &calls_two, 0, &calls_one);
}

static int same_value(git_repository *repo)
{
	return calls_create(repo, "refs/heads/b", &calls_two, 1);
}

static int long_message(git_repository *repo)
{
	git_reference *ref = NULL;
	int err = git_reference_create(&ref, repo, "refs/heads/lines",
	    &calls_one, 0, "two\nlines");

	git_reference_free(ref);
	return err;
}

static int set_target(git_repository *repo)
{
	git_reference *ref = calls_look(repo, "refs/heads/a"), *moved = NULL;
	int err = git_reference_set_target(&moved, ref, &calls_two, "moved");

	git_reference_free(moved);
	git_reference_free(ref);
	return err;
}

static int stale(git_repository *repo)
{
	git_reference *ref = calls_look(repo, "refs/heads/a"), *moved = NULL;
	int err = calls_create(repo, "refs/heads/a", &calls_one, 1);

	if (err == 0)
		err =
		    git_reference_set_target(&moved, ref, &calls_two, "stale");
	git_reference_free(ref);
	return err;
}

/* Of a ref without a log: libgit2 deletes the log, although the deletion fails.
 */
static int stale_delete(git_repository *repo)
{
	git_reference *ref;
	int err = calls_create(repo, "refs/tags/stale", &calls_one, 1);

	ref = calls_look(repo, "refs/tags/stale");
	if (err == 0)
		err = calls_create(repo, "refs/tags/stale", &calls_two, 1);
	if (err == 0)
		err = git_reference_delete(ref);
	git_reference_free(ref);
	return err;
}

static int delete_it(git_repository *repo)
{
	git_reference *ref = calls_look(repo, "refs/heads/b");
	int err = git_reference_delete(ref);

	git_reference_free(ref);
	return err;
}

static int delete_missing(git_repository *repo)
{
	return git_reference_remove(repo, "refs/heads/none");
}

static int delete_tag(git_repository *repo)
{
	int err = calls_create(repo, "refs/tags/t", &calls_one, 0);

	return err < 0 ? err : git_reference_remove(repo, "refs/tags/t");
}

/* Outside of refs/heads, because git and refd log changes of symbolic refs, and
 * libgit2 does not. */
static int new_symref(git_repository *repo)
{
	return symbolic(repo, "refs/sym/s", "refs/heads/a", 0, NULL);
}

static int symref_exists(git_repository *repo)
{
	return symbolic(repo, "refs/sym/s", "refs/heads/main", 0, NULL);
}

static int symref_right_old(git_repository *repo)
{
	return symbolic(repo, "refs/sym/s", "refs/heads/nowhere", 1,
	    "refs/heads/a");
}

static int symref_wrong_old(git_repository *repo)
{
	return symbolic(repo, "refs/sym/s", "refs/heads/a", 1,
	    "refs/heads/main");
}

static int old_target_of_an_id(git_repository *repo)
{
	return symbolic(repo, "refs/heads/a", "refs/heads/main", 1,
	    "refs/heads/main");
}

static int old_id_of_a_symref(git_repository *repo)
{
	return matching(repo, "refs/sym/s", &calls_one, 1, &calls_two);
}

static int delete_symref(git_repository *repo)
{
	git_reference *ref = calls_look(repo, "refs/sym/s");
	int err = git_reference_delete(ref);

	git_reference_free(ref);
	return err;
}

static int id_over_symref(git_repository *repo)
{
	int err = symbolic(repo, "refs/sym/s2", "refs/heads/main", 0, NULL);

	return err < 0 ? err : calls_create(repo, "refs/sym/s2", &calls_one, 1);
}

static int symref_over_id(git_repository *repo)
{
	return symbolic(repo, "refs/sym/s2", "refs/heads/main", 1, NULL);
}

static int bad_name(git_repository *repo)
{
	return calls_create(repo, "refs/heads/a\nb", &calls_one, 0);
}

static int dot_lock(git_repository *repo)
{
	return calls_create(repo, "refs/heads/a.lock", &calls_one, 0);
}

static int no_object(git_repository *repo)
{
	git_oid absent;

	git_oid_fromstr(&absent, "1234567890123456789012345678901234567890");
	return calls_create(repo, "refs/heads/absent", &absent, 0);
}

static int commit(git_repository *repo)
{
	git_commit *parent;
	git_tree *tree;
	git_oid id;
	int err;

	if (git_commit_lookup(&parent, repo, &calls_two) < 0 ||
	    git_commit_tree(&tree, parent) < 0)
		return -1;
	err = git_commit_create_v(&id, repo, "HEAD", calls_who, calls_who, NULL,
	    "three", tree, 1, parent);
	git_tree_free(tree);
	git_commit_free(parent);
	return err;
}

static int reset(git_repository *repo)
{
	git_object *to;
	int err = git_object_lookup(&to, repo, &calls_two, GIT_OBJECT_COMMIT);

	if (err == 0)
		err = git_reset(repo, to, GIT_RESET_SOFT, NULL);
	git_object_free(to);
	return err;
}

static int annotated(git_repository *repo)
{
	git_object *to;
	git_oid id;
	int err = git_object_lookup(&to, repo, &calls_two, GIT_OBJECT_COMMIT);

	if (err == 0)
		err =
		    git_tag_create(&id, repo, "v1", to, calls_who, "tag\n", 0);
	git_object_free(to);
	return err;
}

static int switch_branch(git_repository *repo)
{
	return git_repository_set_head(repo, "refs/heads/a");
}

static int unborn(git_repository *repo)
{
	return git_repository_set_head(repo, "refs/heads/unborn");
}

static int detach(git_repository *repo)
{
	return git_repository_set_head_detached(repo, &calls_one);
}

static int back_to_main(git_repository *repo)
{
	return git_repository_set_head(repo, "refs/heads/main");
}

static int no_log(git_repository *repo)
{
	int err = calls_create(repo, "refs/other/x", &calls_one, 0);

	if (err == 0 && git_reference_has_log(repo, "refs/other/x"))
		err = -1;
	return err;
}

static int ensured_log(git_repository *repo)
{
	int err = git_reference_ensure_log(repo, "refs/other/x");

	return err < 0 ? err :
			 calls_create(repo, "refs/other/x", &calls_two, 1);
}

static int fetch(git_repository *repo)
{
	git_remote *remote;
	int err;

	err = git_remote_create(&remote, repo, "origin", calls_other_repo);
	if (err == 0)
		err = git_remote_fetch(remote, NULL, NULL, NULL);
	git_remote_free(remote);
	return err;
}

static int globs(git_repository *repo)
{
	git_reference_iterator *it;
	const char *name;
	int nr = 0;

	if (git_reference_iterator_glob_new(&it, repo, "refs/heads/*") < 0)
		return -1;
	while (git_reference_next_name(&name, it) == 0)
		nr++;
	git_reference_iterator_free(it);
	return nr;
}

const struct call calls_refs[] = {
	{ "a new branch", new_branch },
	{ "a new branch that exists", new_branch },
	{ "a forced value", forced },
	{ "the right old value", right_old },
	{ "a wrong old value", wrong_old },
	{ "an old value that should not exist", not_null },
	{ "no old value", null_old },
	{ "the old value of a missing ref", old_of_nothing },
	{ "the same without force", old_without_force },
	{ "the same value again", same_value },
	{ "a message of two lines", long_message },
	{ "set_target", set_target },
	{ "set_target of a stale reference", stale },
	{ "the deletion of a stale reference", stale_delete },
	{ "a deletion", delete_it },
	{ "the deletion of a missing ref", delete_missing },
	{ "a deletion without an old value", delete_tag },
	{ "a symbolic ref", new_symref },
	{ "a symbolic ref that exists", symref_exists },
	{ "the right old target", symref_right_old },
	{ "a wrong old target", symref_wrong_old },
	{ "an old target, and the ref has an id", old_target_of_an_id },
	{ "an old id, and the ref is symbolic", old_id_of_a_symref },
	{ "the deletion of a symbolic ref", delete_symref },
	{ "an id over a symbolic ref", id_over_symref },
	{ "a symbolic ref over an id", symref_over_id },
	{ "a bad name", bad_name },
	{ "a name of a lock", dot_lock },
	{ "a missing object", no_object },
	{ "a commit on HEAD", commit },
	{ "a commit on an old parent", commit },
	{ "reset", reset },
	{ "an annotated tag", annotated },
	{ "an annotated tag that exists", annotated },
	{ "another branch", switch_branch },
	{ "an unborn branch", unborn },
	{ "a detached HEAD", detach },
	{ "main again", back_to_main },
	{ "a ref without a log", no_log },
	{ "ensure_log", ensured_log },
	{ "fetch", fetch },
	{ "an iterator with a pattern", globs },
	{ NULL, NULL },
};
