/*
 * Moves a branch through refd, from a program of libgit2.
 *
 *	cc move_branch.c $(pkg-config --cflags --libs librefd-git2)
 *	move_branch /srv/git/a.git refs/heads/topic COMMIT
 */
#include <stdio.h>

#include "client/libgit2/refd_git2.h"

static int report(int code)
{
	if (code == REFD_GIT2_EUNKNOWN)
		fprintf(stderr, "perhaps: %s\n", git_error_last()->message);
	else if (code < 0)
		fprintf(stderr, "no: %s\n", git_error_last()->message);
	return code == REFD_GIT2_EUNKNOWN ? 2 : code < 0;
}

int main(int argc, char **argv)
{
	git_repository *repo = NULL;
	git_oid commit;
	int code;

	if (argc != 4)
		return 129;
	git_libgit2_init();
	code = git_repository_open(&repo, argv[1]);
	if (code == 0)
		code = refd_git2_attach(repo, NULL);
	if (code == 0)
		code = git_oid_fromstr(&commit, argv[3]);
	if (code == 0)
		code = git_reference_create(NULL, repo, argv[2], &commit, 1,
		    "moved");
	code = report(code);
	git_repository_free(repo);
	git_libgit2_shutdown();
	return code;
}
