/*
 * Which repositories refd takes, which it leaves to git and why, what it
 * reads of their configuration, and which objects it finds there. The
 * repositories are made by git.
 */
#include <check.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/store/repos/gitrepo.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct gitrepo *repo;
static char *why;

static void setup(void)
{
	tmp_setup();
	gitrepo_global_init();
	repo = NULL;
	why = NULL;
}

static void teardown(void)
{
	gitrepo_free(repo);
	free(why);
	gitrepo_global_done();
	tmp_teardown();
}

static enum gitrepo_problem open_repo(const char *name)
{
	char path[PATH_MAX + 64];

	snprintf(path, sizeof(path), "%s/%s", tmp_root, name);
	gitrepo_free(repo);
	repo = NULL;
	free(why);
	why = NULL;
	return gitrepo_open(path, &repo, &why);
}

static void must_open(const char *name)
{
	enum gitrepo_problem problem = open_repo(name);

	ck_assert_msg(problem == GITREPO_OK, "%s: %d, %s", name, (int)problem,
	    why);
	ck_assert_ptr_nonnull(repo);
}

START_TEST(what_git_makes_is_opened)
{
	tmp_run("git init -q --bare b.git && git init -q work && git init -q "
		"--bare none && rm none/config");
	must_open("b.git");
	ck_assert(gitrepo_config(repo)->bare);
	ck_assert_int_eq(gitrepo_config(repo)->shared_perm, 0);
	ck_assert_ptr_null(gitrepo_config(repo)->log_all_ref_updates);
	must_open("work/.git");
	ck_assert(!gitrepo_config(repo)->bare);
	ck_assert_str_eq(gitrepo_config(repo)->log_all_ref_updates, "true");
	must_open("none");
	ck_assert(gitrepo_config(repo)->bare);
}
END_TEST

START_TEST(what_is_none_is_not)
{
	tmp_mkdir("empty/below");
	tmp_put("file", "");
	tmp_run("git init -q work && mkdir work/sub && git init -q --bare b && "
		"rm b/HEAD && git -C work commit -q --allow-empty -m m && "
		"git -C work worktree add -q ../linked");
	ck_assert_int_eq(open_repo("no"), GITREPO_NOT_A_REPOSITORY);
	ck_assert_ptr_nonnull(why);
	ck_assert_int_eq(open_repo("empty"), GITREPO_NOT_A_REPOSITORY);
	ck_assert_int_eq(open_repo("file"), GITREPO_NOT_A_REPOSITORY);
	ck_assert_int_eq(open_repo("b"), GITREPO_NOT_A_REPOSITORY);
	/* no search upwards, and none for a .git below */
	ck_assert_int_eq(open_repo("work/sub"), GITREPO_NOT_A_REPOSITORY);
	ck_assert_int_eq(open_repo("work"), GITREPO_NOT_A_REPOSITORY);
	ck_assert_int_eq(open_repo("work/.git/worktrees/linked"),
	    GITREPO_NOT_A_REPOSITORY);
	ck_assert_ptr_null(repo);
	must_open("work/.git");
}
END_TEST

struct format {
	const char *config;
	bool ok;
	const char *names; /* in the sentence */
	bool git_too;      /* git 2.39 thinks the same */
};

static const struct format formats[] = {
	{ "[core]\nrepositoryformatversion=1\n", true, NULL, true },
	{ "[core]\nrepositoryformatversion=2\n", false, "Version", true },
	{ "[core]\nrepositoryformatversion=1\n[extensions]\nnoop\n"
	  "worktreeConfig=true\npreciousObjects=true\n",
	    true, NULL, true },
	{ "[core]\nrepositoryformatversion=1\n[extensions]\n"
	  "relativeWorktrees=true\n",
	    true, NULL, false },
	{ "[core]\nrepositoryformatversion=1\n[extensions]\n"
	  "objectFormat=sha1\n",
	    true, NULL, true },
	{ "[core]\nrepositoryformatversion=1\n[extensions]\n"
	  "objectFormat=sha256\n",
	    false, "extensions.objectformat=sha256", false },
	{ "[core]\nrepositoryformatversion=1\n[extensions]\n"
	  "refStorage=reftable\n",
	    false, "extensions.refstorage=reftable", true },
	{ "[core]\nrepositoryformatversion=1\n[extensions]\n"
	  "refStorage=files\n",
	    true, NULL, false },
	{ "[core]\nrepositoryformatversion=1\n[extensions]\nunheardOf=1\n",
	    false, "extensions.unheardof=1", true },
	{ "[core]\nrepositoryformatversion=1\n[extensions]\n"
	  "partialClone=origin\n",
	    false, "extensions.partialclone=origin", false },
	{ "[extensions]\npartialClone=origin\n", false, "partialclone", false },
	{ "[extensions]\nrefStorage=reftable\n", false, "refstorage", false },
	{ "[core]\nrepositoryformatversion=0\n[extensions]\nobjectFormat=sha1\n",
	    false, "objectformat", true },
	{ "[extensions]\nunheardOf=1\npreciousObjects=1\n", true, NULL, true },
	{ "[core]\nsharedRepository=0077\n", false, "sharedRepository", true },
	{ "[core]\nsharedRepository=nonsense\n", false, "sharedRepository",
	    true },
};

START_TEST(a_format_is_taken_or_named)
{
	const struct format *f = &formats[_i];
	enum gitrepo_problem problem;

	tmp_run("git init -q --bare r");
	tmp_put("r/config", f->config);
	problem = open_repo("r");
	ck_assert_msg(problem == (f->ok ? GITREPO_OK : GITREPO_UNSUPPORTED),
	    "%s: %d, %s", f->config, (int)problem, why);
	if (!f->ok)
		ck_assert_msg(strstr(why, f->names) != NULL, "%s", why);
	if (f->git_too)
		ck_assert_int_eq(
		    tmp_status("git -C r hash-object -w --stdin </dev/null") ==
			0,
		    f->ok);
}
END_TEST

START_TEST(a_config_that_can_not_be_parsed_fails)
{
	tmp_run("git init -q --bare r");
	tmp_put("r/config", "[core\nnonsense");
	ck_assert_int_eq(open_repo("r"), GITREPO_FAILED);
	ck_assert_ptr_nonnull(why);
	tmp_put("r/config", "[core]\nbare=perhaps\n");
	ck_assert_int_eq(open_repo("r"), GITREPO_FAILED);
	tmp_put("r/config", "[core]\nrepositoryformatversion=x\n");
	ck_assert_int_eq(open_repo("r"), GITREPO_FAILED);
}
END_TEST

/* Against the mode of a ref that git itself writes under umask 077. */
START_TEST(sharing_is_read_as_git_reads_it)
{
	static const char *const values[] = {
		"=umask",
		"=group",
		"=all",
		"=world",
		"=everybody",
		"",
		"=0",
		"=1",
		"=2",
		"=true",
		"=false",
		"=yes",
		"=0640",
		"=0660",
		"=0664",
		"=0600",
		"=0666",
		"=0777",
		"=",
	};
	unsigned git_mode, mode;
	size_t i;
	int perm;

	for (i = 0; i < COUNT(values); i++) {
		tmp_run("rm -rf r && git init -q --bare r && printf "
			"'[core]\\nsharedRepository%s\\n' >>r/config && "
			"umask 077 && cd r && git update-ref refs/heads/x "
			"$(git commit-tree -m m $(git hash-object -w -t tree "
			"/dev/null))",
		    values[i]);
		must_open("r");
		git_mode = tmp_mode("r/refs/heads/x");
		perm = gitrepo_config(repo)->shared_perm;
		mode = perm >= 0 ? 0600 | (unsigned)perm : (unsigned)-perm;
		ck_assert_msg(mode == git_mode, "'%s': %o, git %o", values[i],
		    mode, git_mode);
	}
}
END_TEST

START_TEST(settings_of_includes_and_of_the_main_worktree)
{
	tmp_run("git init -q work && cd work/.git && git config include.path "
		"more && git config -f more core.logAllRefUpdates always");
	must_open("work/.git");
	ck_assert_str_eq(gitrepo_config(repo)->log_all_ref_updates, "always");
	tmp_run("cd work/.git && git config extensions.worktreeConfig true");
	must_open("work/.git");
	ck_assert(!gitrepo_config(repo)->bare);
	tmp_run("cd work/.git && git config -f config.worktree core.bare "
		"true");
	must_open("work/.git");
	ck_assert(gitrepo_config(repo)->bare);
	tmp_put("work/.git/config", "[core]\nlogAllRefUpdates\n");
	must_open("work/.git");
	ck_assert_str_eq(gitrepo_config(repo)->log_all_ref_updates, "true");
	ck_assert(!gitrepo_config(repo)->bare);
}
END_TEST

/* Neither the daemon's home nor its environment has a say. */
START_TEST(nobody_elses_settings_are_read)
{
	tmp_run("git init -q --bare r && git init -q --bare other && "
		"git config --global core.logAllRefUpdates always");
	tmp_put(".config/git/config", "[core]\nlogAllRefUpdates=always\n");
	setenv("GIT_DIR", "other", 1);
	setenv("GIT_OBJECT_DIRECTORY", "/nowhere", 1);
	must_open("r");
	ck_assert_ptr_null(gitrepo_config(repo)->log_all_ref_updates);
}
END_TEST

START_TEST(another_owner_does_not_matter)
{
	tmp_run("git init -q --bare r");
	if (geteuid() != 0)
		return;
	tmp_run("chown -R 12345 r");
	must_open("r");
}
END_TEST

static enum gitrepo_object object(const char *name)
{
	struct refd_oid oid;
	char *hex;

	hex = tmp_output("git -C r rev-parse %s", name);
	ck_assert_int_eq(refd_oid_parse(hex, &oid), 0);
	free(hex);
	return gitrepo_object(repo, &oid);
}

static void make_objects(void)
{
	tmp_run("git init -q --bare r && cd r && b=$(echo x | git hash-object "
		"-w --stdin) && git update-ref refs/heads/x $(git commit-tree "
		"-m m $(printf '100644 blob %%s\\tf\\n' $b | git mktree)) && "
		"git tag -a -m t t refs/heads/x");
}

static void check_objects(void)
{
	ck_assert_int_eq(object("refs/heads/x"), GITREPO_COMMIT);
	ck_assert_int_eq(object("refs/heads/x^{tree}"), GITREPO_TREE);
	ck_assert_int_eq(object("refs/heads/x:f"), GITREPO_BLOB);
	ck_assert_int_eq(object("refs/tags/t"), GITREPO_TAG);
	ck_assert_int_eq(object("0123456789012345678901234567890123456789"),
	    GITREPO_ABSENT);
	ck_assert_int_eq(object("0000000000000000000000000000000000000000"),
	    GITREPO_ABSENT);
}

START_TEST(objects_are_found_loose_and_packed)
{
	make_objects();
	must_open("r");
	check_objects();
	tmp_run("git -C r repack -q -a -d && git -C r prune-packed");
	check_objects();
	ck_assert_int_eq(gitrepo_refresh_objects(repo), 0);
	check_objects();
}
END_TEST

START_TEST(objects_that_come_later_are_found)
{
	struct refd_oid loose, packed;
	char *hex;

	make_objects();
	must_open("r");
	check_objects();
	hex = tmp_output("cd r && echo y | git hash-object -w --stdin");
	refd_oid_parse(hex, &loose);
	free(hex);
	ck_assert_int_eq(gitrepo_object(repo, &loose), GITREPO_BLOB);
	hex = tmp_output("cd r && o=$(echo z | git hash-object -w --stdin) && "
			 "echo $o && echo $o | git pack-objects -q "
			 "objects/pack/pack >/dev/null && git prune-packed");
	refd_oid_parse(hex, &packed);
	free(hex);
	ck_assert_int_eq(gitrepo_object(repo, &packed), GITREPO_BLOB);
}
END_TEST

/* Without the refresh libgit2 goes on seeing it. */
START_TEST(a_pruned_object_is_gone_after_a_refresh)
{
	struct refd_oid oid;
	char *hex;

	make_objects();
	hex = tmp_output("cd r && o=$(echo z | git hash-object -w --stdin) && "
			 "echo $o && echo $o | git pack-objects -q "
			 "objects/pack/pack >/dev/null && git prune-packed");
	refd_oid_parse(hex, &oid);
	free(hex);
	must_open("r");
	ck_assert_int_eq(gitrepo_object(repo, &oid), GITREPO_BLOB);
	tmp_run("git -C r gc -q --prune=now");
	ck_assert_int_eq(gitrepo_refresh_objects(repo), 0);
	ck_assert_int_eq(gitrepo_object(repo, &oid), GITREPO_ABSENT);
	check_objects();
}
END_TEST

START_TEST(alternates_are_searched)
{
	make_objects();
	tmp_run("git clone -q --bare --shared r second && git clone -q --bare "
		"--shared second third && test -z \"$(find third/objects "
		"-type f -name '??????????*' ! -name alternates)\"");
	must_open("third");
	check_objects();
	tmp_run("git init -q --bare empty");
	must_open("empty");
	ck_assert_int_eq(object("refs/heads/x"), GITREPO_ABSENT);
	/* one that is gone is no reason to refuse the repository */
	tmp_run("echo /nowhere/objects >empty/objects/info/alternates");
	must_open("empty");
	ck_assert_int_eq(object("refs/heads/x"), GITREPO_ABSENT);
}
END_TEST

START_TEST(a_corrupt_object_is_an_error)
{
	make_objects();
	tmp_run("cd r && o=$(git rev-parse refs/heads/x) && f=objects/$(echo "
		"$o | cut -c 1-2)/$(echo $o | cut -c 3-) && chmod +w $f && "
		"echo garbage >$f");
	must_open("r");
	ck_assert_int_eq(object("refs/heads/x"), GITREPO_ERROR);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("gitrepo");
	TCase *tc = tcase_create("gitrepo");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, what_git_makes_is_opened);
	tcase_add_test(tc, what_is_none_is_not);
	tcase_add_loop_test(tc, a_format_is_taken_or_named, 0,
	    (int)COUNT(formats));
	tcase_add_test(tc, a_config_that_can_not_be_parsed_fails);
	tcase_add_test(tc, sharing_is_read_as_git_reads_it);
	tcase_add_test(tc, settings_of_includes_and_of_the_main_worktree);
	tcase_add_test(tc, nobody_elses_settings_are_read);
	tcase_add_test(tc, another_owner_does_not_matter);
	tcase_add_test(tc, objects_are_found_loose_and_packed);
	tcase_add_test(tc, objects_that_come_later_are_found);
	tcase_add_test(tc, a_pruned_object_is_gone_after_a_refresh);
	tcase_add_test(tc, alternates_are_searched);
	tcase_add_test(tc, a_corrupt_object_is_an_error);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
