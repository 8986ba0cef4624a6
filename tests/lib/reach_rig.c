#include "tests/lib/reach_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/cli.h"
#include "tests/lib/tmp.h"

struct gitdir reach_gd;
char reach_sock[600];

void reach_setup(void)
{
	tmp_setup();
	unsetenv("REFD_SOCKET");
	unsetenv("XDG_RUNTIME_DIR");
	tmp_mkdir("repo");
	memset(&reach_gd, 0, sizeof(reach_gd));
	reach_gd.common = xasprintf("%s/repo", tmp_root);
	reach_gd.path = xstrdup(reach_gd.common);
	snprintf(reach_sock, sizeof(reach_sock), "%s/sock", tmp_root);
}

void reach_teardown(void)
{
	gitdir_done(&reach_gd);
	tmp_teardown();
}
