/*
 * Proves which repositories refd accepts, which repositories refd leaves to git
 * and why, and which settings refd reads. Includes have bounds and lead nowhere
 * else, and no file keeps the reader waiting (findings F3 and F4). The
 * repositories are made by git.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/store/repos/repo.h"
#include "daemon/store/repos/repo_config.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct repo_config config;
static char *why;

static void setup(void)
{
	tmp_setup();
	memset(&config, 0, sizeof(config));
	why = NULL;
}

static void teardown(void)
{
	repo_config_done(&config);
	free(why);
	tmp_teardown();
}

static enum refd_status open_repo(const char *name)
{
	char path[PATH_MAX + 64];
	enum refd_status status;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", tmp_root, name);
	repo_config_done(&config);
	free(why);
	why = NULL;
	fd = open(path, O_RDONLY | O_DIRECTORY);
	if (fd < 0)
		return REFD_NOREPO;
	status = repo_config_read(&sys_kernel, fd, path, &config, &why);
	if (status == REFD_OK)
		status = repo_check_git_dir(&sys_kernel, fd, path, &why);
	close(fd);
	return status;
}

static void must_open(const char *name)
{
	enum refd_status status = open_repo(name);

	ck_assert_msg(status == REFD_OK, "%s: %d, %s", name, (int)status, why);
}

CASE(.setup = setup, .teardown = teardown, .seconds = 60);

TEST(what_git_makes_is_opened)
{
	tmp_run("git init -q --bare b.git && git init -q work && git init -q "
		"--bare none && rm none/config");
	must_open("b.git");
	ck_assert(config.bare);
	ck_assert_int_eq(config.shared_perm, 0);
	ck_assert_ptr_null(config.log_all_ref_updates);
	must_open("work/.git");
	ck_assert(!config.bare);
	ck_assert_str_eq(config.log_all_ref_updates, "true");
	must_open("none");
	ck_assert(config.bare);
}

TEST(what_is_none_is_not)
{
	tmp_mkdir("empty/below");
	tmp_put("file", "");
	tmp_run("git init -q work && mkdir work/sub && git init -q --bare b && "
		"rm b/HEAD && git -C work commit -q --allow-empty -m m && "
		"git -C work worktree add -q ../linked");
	ck_assert_int_eq(open_repo("no"), REFD_NOREPO);
	ck_assert_int_eq(open_repo("empty"), REFD_NOREPO);
	ck_assert_ptr_nonnull(why);
	ck_assert_int_eq(open_repo("file"), REFD_NOREPO);
	ck_assert_int_eq(open_repo("b"), REFD_NOREPO);
	/* no search upwards, and no search for a .git below */
	ck_assert_int_eq(open_repo("work/sub"), REFD_NOREPO);
	ck_assert_int_eq(open_repo("work"), REFD_NOREPO);
	ck_assert_int_eq(open_repo("work/.git/worktrees/linked"), REFD_NOREPO);
	must_open("work/.git");
}

struct format {
	const char *config;
	bool ok;
	const char *names; /* a word in the sentence */
	bool git_too;      /* git agrees, 2.39 and later */
};

#define V1 "[core]\nrepositoryformatversion=1\n[extensions]\n"

static const struct format formats[] = {
	{ "[core]\nrepositoryformatversion=1\n", true, NULL, true },
	{ "[core]\nrepositoryformatversion=2\n", false, "Version", true },
	{ V1 "noop\nworktreeConfig=true\npreciousObjects=true\n", true, NULL,
	    true },
	{ V1 "relativeWorktrees=true\n", true, NULL, false },
	{ V1 "objectFormat=sha1\n", true, NULL, true },
	{ V1 "objectFormat=sha256\n", true, NULL, true },
	{ V1 "objectFormat=md5\n", false, "extensions.objectFormat", true },
	{ V1 "objectFormat=sha\n", false, "extensions.objectFormat", true },
	{ V1 "objectFormat=\n", false, "extensions.objectFormat", true },
	{ V1 "refStorage=reftable\nunheardOf=1\n", false, "'unheardof'",
	    false },
	{ V1 "refStorage=files\n", true, NULL, false },
	{ V1 "refStorage=files:///else\n", false, "refs are elsewhere", false },
	{ V1 "submodulePathConfig=true\n", true, NULL, false },
	{ V1 "compatObjectFormat=sha256\n", false, "compatObject", false },
	{ "[extensions]\nsubmodulePathConfig=1\n", false, "Config needs",
	    false },
	{ V1 "unheardOf=1\n", false, "'unheardof'", true },
	{ V1 "partialClone=origin\n", true, NULL, true },
	{ "[extensions]\npartialClone=origin\n", true, NULL, true },
	{ "[extensions]\nrefStorage=reftable\n", false, "refStorage", false },
	{ "[core]\nrepositoryformatversion=0\n[extensions]\nobjectFormat=sha1\n",
	    false, "objectFormat", true },
	{ "[extensions]\nunheardOf=1\npreciousObjects=1\n", true, NULL, true },
	{ "[core]\nsharedRepository=0077\n", false, "sharedRepository", true },
	{ "[core]\nsharedRepository=nonsense\n", false, "sharedRepository",
	    true },
};

TEST(a_format_is_taken_or_named, .times = COUNT(formats))
{
	const struct format *f = &formats[_i];
	enum refd_status status;

	tmp_run("git init -q --bare r");
	tmp_put("r/config", f->config);
	status = open_repo("r");
	ck_assert_msg(status == (f->ok ? REFD_OK : REFD_UNSUPPORTED),
	    "%s: %d, %s", f->config, (int)status, why);
	if (!f->ok) {
		ck_assert_msg(strstr(why, f->names) != NULL, "%s", why);
		ck_assert_msg(strstr(why, "/r'") != NULL, "%s", why);
	}
	if (f->git_too)
		ck_assert(f->ok ==
		    !tmp_status("git -C r hash-object -w --stdin </dev/null"));
}

/* The last value counts, as in git. */
TEST(reftables_are_known)
{
	tmp_run("git init -q --bare r");
	tmp_put("r/config", V1 "refStorage=files\nrefStorage=reftable\n");
	must_open("r");
	ck_assert(config.is_reftable);
	tmp_put("r/config", V1 "refStorage=reftable\nrefStorage=files\n");
	must_open("r");
	ck_assert(!config.is_reftable);
}

/* The client need not be allowed to read the file. The only quoted word is the
 * name of an unknown extension. */
TEST(no_message_quotes_the_file, .times = 12)
{
	static const char *const configs[] = {
		"[core]\nsecret-word\n[extensions\n",
		"[core]\nrepositoryformatversion=secret-word\n",
		"[core]\nrepositoryformatversion=1\n"
		"[extensions \"secret-word\"]\nx=1\n",
		"[core]\nrepositoryformatversion=1\n"
		"[extensions]\nobjectFormat=secret-word\n",
		"[core]\nrepositoryformatversion=1\n"
		"[extensions]\nrefStorage=secret-word\n",
		"[core]\nrepositoryformatversion=1\n"
		"[extensions]\nworktreeConfig=secret-word\n",
		"[core]\nbare=secret-word\n",
		"[core]\nsharedRepository=secret-word\n",
		"[core]\nworktree=secret-word\nbare=x\n",
		"[include]\npath=secret-word\n[core]\nbare=secret-word\n",
		"[secret-word \"secret-word\nx",
		"secret-word = secret-word \\q\n",
	};

	tmp_run("git init -q --bare r");
	tmp_put("r/config", configs[_i]);
	ck_assert_int_ne(open_repo("r"), REFD_OK);
	ck_assert_msg(strcasestr(why, "secret-word") == NULL, "%s", why);
}

TEST(a_config_that_can_not_be_parsed_fails)
{
	tmp_run("git init -q --bare r");
	tmp_put("r/config", "[core\nnonsense");
	ck_assert_int_eq(open_repo("r"), REFD_IO);
	ck_assert_ptr_nonnull(why);
	tmp_put("r/config", "[core]\nbare=perhaps\n");
	ck_assert_int_eq(open_repo("r"), REFD_IO);
	tmp_put("r/config", "[core]\nrepositoryformatversion=x\n");
	ck_assert_int_eq(open_repo("r"), REFD_IO);
}

/* Compared with the mode of a ref written by git under umask 077. */
TEST(sharing_is_read_as_git_reads_it)
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
		"=02660",
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
		perm = config.shared_perm;
		mode = perm >= 0 ? 0600 | (unsigned)perm : (unsigned)-perm;
		ck_assert_msg(mode == git_mode, "'%s': %o, git %o", values[i],
		    mode, git_mode);
	}
}

TEST(settings_of_includes_and_of_the_main_worktree)
{
	tmp_run("git init -q work && cd work/.git && git config include.path "
		"more && git config -f more core.logAllRefUpdates always");
	must_open("work/.git");
	ck_assert_str_eq(config.log_all_ref_updates, "always");
	tmp_run("cd work/.git && git config extensions.worktreeConfig true");
	must_open("work/.git");
	ck_assert(!config.bare);
	tmp_run("cd work/.git && git config -f config.worktree core.bare "
		"true");
	must_open("work/.git");
	ck_assert(config.bare);
	tmp_put("work/.git/config", "[core]\nlogAllRefUpdates\n");
	must_open("work/.git");
	ck_assert_str_eq(config.log_all_ref_updates, "true");
	ck_assert(!config.bare);
	/* Git ignores extensions if the file names no version. */
	tmp_put("work/.git/config", "[extensions]\nworktreeConfig\n");
	must_open("work/.git");
	ck_assert(!config.bare);
	tmp_put("work/.git/config",
	    "[extensions]\nworktreeConfig\n[core]\n"
	    "repositoryformatversion = 0\n");
	must_open("work/.git");
	ck_assert(config.bare);
}

/* Git is asked, because a different version could set other keys. */
TEST(partial_clones_are_known)
{
	static const char *const yes[] = { "remote.origin.promisor true",
		"remote.a.b.promisor 1", "remote.origin.partialCloneFilter x",
		"extensions.partialClone origin" };
	static const char *const no[] = { "remote.origin.promisor false",
		"remote.promisor true", "remotes.x.promisor true",
		"remote.origin.url promisor" };
	size_t i;

	for (i = 0; i < COUNT(yes) + COUNT(no); i++) {
		tmp_run("rm -rf r && git init -q --bare r && git -C r config "
			"%s",
		    i < COUNT(yes) ? yes[i] : no[i - COUNT(yes)]);
		must_open("r");
		ck_assert_int_eq(config.is_partial, i < COUNT(yes));
	}
	tmp_run("rm -rf r && git init -q --bare s && git -C s config "
		"uploadpack.allowFilter true && "
		"git clone -q --bare --filter=blob:none file://$PWD/s r");
	must_open("r");
	ck_assert(config.is_partial);
}

/* The daemon's home and environment have no influence. */
TEST(nobody_elses_settings_are_read)
{
	tmp_run("git init -q --bare r && git init -q --bare other && "
		"git config --global core.logAllRefUpdates always");
	tmp_put(".config/git/config", "[core]\nlogAllRefUpdates=always\n");
	setenv("GIT_DIR", "other", 1);
	setenv("GIT_OBJECT_DIRECTORY", "/nowhere", 1);
	must_open("r");
	ck_assert_ptr_null(config.log_all_ref_updates);
}

TEST(another_owner_does_not_matter)
{
	if (!suite_is_root(__func__))
		return;
	tmp_run("git init -q --bare r && chown -R 12345 r");
	must_open("r");
}

/* ---- hostile files ---- */

static void put_includes(const char *name, const char *first,
    const char *second)
{
	char path[64], text[256];

	snprintf(path, sizeof(path), "r/%s", name);
	snprintf(text, sizeof(text),
	    "[include]\npath = %s\n[include]\npath = %s\n", first, second);
	tmp_put(path, text);
}

/* F4: a tree of includes. Every file reads the next file twice. */
TEST(includes_have_bounds)
{
	char name[16], next[16];
	int i;

	tmp_run("git init -q --bare r");
	put_includes("config", "i0", "i0");
	for (i = 0; i < 9; i++) {
		snprintf(name, sizeof(name), "i%d", i);
		snprintf(next, sizeof(next), "i%d", i + 1);
		put_includes(name, next, next);
	}
	tmp_put("r/i9", "[core]\nlogAllRefUpdates=always\n");
	ck_assert_int_eq(open_repo("r"), REFD_UNSUPPORTED);
	ck_assert_ptr_nonnull(strstr(why, "too many files"));
	/* A file that includes itself. */
	tmp_put("r/config", "[include]\npath = config\n");
	ck_assert_int_eq(open_repo("r"), REFD_UNSUPPORTED);
	ck_assert_ptr_nonnull(strstr(why, "nested too deep"));
	/* The bytes of all files count together. */
	tmp_run("yes '[core]' | head -c 39998 >r/i0 && : >r/config && for i in "
		"$(seq 30); do printf '[include]\npath=i0\n' >>r/config; "
		"done");
	ck_assert_int_eq(open_repo("r"), REFD_UNSUPPORTED);
	ck_assert_ptr_nonnull(strstr(why, "larger than 1 MiB"));
	tmp_run("rm r/config && truncate -s 64G r/config");
	ck_assert_int_eq(open_repo("r"), REFD_UNSUPPORTED);
}

/* Includes that may be read, and includes that only make the settings
 * unsure. */
TEST(includes_lead_nowhere_else)
{
	static const struct {
		const char *include;
		bool is_read;
	} cases[] = {
		{ "[include]\npath=refd/gitconfig\n", true },
		{ "[include]\npath=./refd/../refd//gitconfig\n", true },
		{ "[include]\npath=../outside\n", false },
		{ "[include]\npath=refd/../../outside\n", false },
		{ "[include]\npath=~/outside\n", false },
		{ "[include]\npath=link\n", false },
		{ "[include]\npath=linked/gitconfig\n", false },
		{ "[includeIf \"gitdir:/\"]\npath=refd/gitconfig\n", true },
		{ "[includeIf \"gitdir:**\"]\npath=refd/gitconfig\n", false },
	};
	char text[256];
	size_t i;

	tmp_run("git init -q --bare r && mkdir r/refd && ln -s refd r/linked "
		"&& ln -s ../outside r/link");
	tmp_put("outside", "[core]\nsharedRepository=all\n");
	tmp_put("r/refd/gitconfig", "[core]\nlogAllRefUpdates=always\n");
	for (i = 0; i < COUNT(cases); i++) {
		tmp_put("r/config", cases[i].include);
		must_open("r");
		ck_assert_msg(config.is_log_unsure != cases[i].is_read &&
			config.is_shared_unsure != cases[i].is_read &&
			(config.log_all_ref_updates != NULL) ==
			    cases[i].is_read &&
			config.shared_perm == 0,
		    "%s", cases[i].include);
		/* Settings behind the include count in any case. */
		snprintf(text, sizeof(text),
		    "%s[core]\nlogAllRefUpdates\nsharedRepository=umask\n",
		    cases[i].include);
		tmp_put("r/config", text);
		must_open("r");
		ck_assert(!config.is_log_unsure && !config.is_shared_unsure);
		ck_assert_str_eq(config.log_all_ref_updates, "true");
	}
	snprintf(text, sizeof(text), "[include]\npath=%s/r/refd/gitconfig\n",
	    tmp_root);
	tmp_put("r/config", text);
	must_open("r");
	ck_assert_str_eq(config.log_all_ref_updates, "always");
	/* The path of another directory that begins with the repository's
	 * path. */
	snprintf(text, sizeof(text), "[include]\npath=%s/rrefd/gitconfig\n",
	    tmp_root);
	tmp_put("r/config", text);
	must_open("r");
	ck_assert(config.is_log_unsure && config.is_shared_unsure);
	ck_assert_ptr_null(config.log_all_ref_updates);
	/* git skips a missing include. */
	tmp_put("r/config", "[include]\npath=refd/none\n");
	must_open("r");
	ck_assert(!config.is_log_unsure);
}

/* F3: no process ever writes to these FIFOs; waiting would time the test
 * out. */
TEST(no_fifo_is_waited_for)
{
	static const char *const names[] = { "config", "HEAD",
		"config.worktree", "included" };
	size_t i;

	tmp_run("git init -q --bare r && cd r && git config "
		"extensions.worktreeConfig true && git config "
		"core.repositoryFormatVersion 1 && git config include.path "
		"included && cp config HEAD ..");
	for (i = 0; i < COUNT(names); i++) {
		tmp_run("rm -f r/%s && mkfifo r/%s", names[i], names[i]);
		ck_assert_msg(open_repo("r") == REFD_NOREPO, "%s", names[i]);
		tmp_run("rm r/%s && cp config HEAD r/", names[i]);
		must_open("r");
	}
	tmp_run("rm r/config && ln -s ../config r/config");
	ck_assert_int_eq(open_repo("r"), REFD_UNSUPPORTED);
}
