/*
 * The daemon is held back (client/request/hold.h): it has closed the repository
 * and forgotten all records of it. Then the journal in refd/id becomes zeros,
 * which is an id that no journal has claimed (daemon/store/repos/repo_id.h).
 *
 * Failures: updates or records wait, and the id stays as it is.
 */
#include "client/enable/release.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/base/tree.h"
#include "client/request/connect.h"
#include "client/request/hold.h"
#include "client/request/probe.h"

/* Hexadecimal digits of a journal. */
#define DIGITS 32

/* Only the daemon that serves the repository knows which records wait, because
 * they are in the journal of this daemon. */
static bool is_served(const struct gitdir *gd)
{
	struct gitconfig config = { 0 };
	struct daemon_socket socket;
	struct text why = { 0 };
	enum probe probe;

	gitconfig_load(&config, gd);
	connect_choose(&socket, NULL, &config, gd);
	probe = probe_daemon(&socket, gd, gitconfig_object_format(&config, gd),
	    &why);
	gitconfig_done(&config);
	text_done(&why);
	free(socket.path);
	return probe == PROBE_OK;
}

static void clear_journal(int refd)
{
	static const char key[] = "\njournal ";
	struct text id = { 0 };
	char *at;

	tree_read(refd, "id", &id);
	at = strstr(id.data, key);
	if (!at || strspn(at + strlen(key), "0123456789abcdef") != DIGITS)
		die("refd/id is not what refd wrote there");
	memset(at + strlen(key), '0', DIGITS);
	unlinkat(refd, "id.new", 0);
	tree_write(refd, "id.new", id.data);
	tree_check(renameat(refd, "id.new", refd, "id"), "replace", refd, "id");
	tree_check(fsync(refd), "sync", refd, ".");
	text_done(&id);
}

bool release_repository(const struct gitdir *gd)
{
	char *id = xasprintf("%s/refd/id", gd->common);
	const bool has_id = access(id, F_OK) == 0;
	struct hold hold;
	int dir;

	free(id);
	if (!has_id || connect_is_in_group(gd))
		return true;
	if (!is_served(gd))
		return false;
	dir = tree_open(AT_FDCWD, gd->common);
	hold_begin(&hold, dir, gd);
	clear_journal(hold.refd);
	hold_end(&hold);
	close(dir);
	return true;
}
