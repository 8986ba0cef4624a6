#include "tests/lib/connect_rig.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/lib/cli.h"
#include "tests/lib/tmp.h"

struct gitdir connect_gd;
char connect_sock[600];

void connect_setup(void)
{
	tmp_setup();
	unsetenv("REFD_SOCKET");
	unsetenv("XDG_RUNTIME_DIR");
	tmp_mkdir("repo");
	memset(&connect_gd, 0, sizeof(connect_gd));
	connect_gd.common = xasprintf("%s/repo", tmp_root);
	connect_gd.path = xstrdup(connect_gd.common);
	snprintf(connect_sock, sizeof(connect_sock), "%s/sock", tmp_root);
}

void connect_teardown(void)
{
	gitdir_done(&connect_gd);
	tmp_teardown();
}

void connect_mark_by(const char *target)
{
	char path[700];

	snprintf(path, sizeof(path), "%s.replayed", connect_sock);
	unlink(path);
	ck_assert_int_eq(symlink(target, path), 0);
}
