#include "tests/lib/config_rig.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/git/configfiles.h"
#include "client/git/gitconfig.h"
#include "tests/lib/tmp.h"

struct gitdir config_rig_gd;

void config_rig_setup(void)
{
	struct text why = { 0 };

	tmp_setup();
	unsetenv("GIT_CONFIG");
	unsetenv("GIT_CONFIG_GLOBAL");
	unsetenv("GIT_CONFIG_SYSTEM");
	ck_assert_int_eq(fchdir(tmp_fd), 0);
	tmp_run("git init -q --bare bare.git");
	ck_assert(gitdir_find(&config_rig_gd, "bare.git", &why));
}

void config_rig_teardown(void)
{
	gitdir_done(&config_rig_gd);
	ck_assert_int_eq(chdir("/"), 0);
	tmp_teardown();
}

bool config_rig_same(const char *what)
{
	struct text ours = { 0 };
	struct gitconfig git = { 0 };
	size_t own;
	bool enough = configfiles_list(&ours, &config_rig_gd, &own);

	if (enough) {
		ck_assert_msg(gitconfig_read(&git, config_rig_gd.path) == 0,
		    "%s: git fails", what);
		ck_assert_msg(ours.len == git.list.len &&
			(!ours.len ||
			    !memcmp(ours.data, git.list.data, ours.len)),
		    "%s: git has other entries", what);
		ck_assert_msg(git.own_end ?
			own == git.own && ours.len == git.own_end :
			own == ours.len,
		    "%s: git has other entries of the repository", what);
	}
	text_done(&ours);
	gitconfig_done(&git);
	return enough;
}
