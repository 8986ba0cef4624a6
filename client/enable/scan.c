#include "client/enable/scan.h"

#include <errno.h>
#include <fts.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "client/base/cli.h"
#include "proto/lib/interrupt.h"

static bool has(const char *dir, const char *name, mode_t type)
{
	char *path = xasprintf("%s/%s", dir, name);
	struct stat st;
	bool is =
	    lstat(path, &st) == 0 && (!type || (st.st_mode & S_IFMT) == type);

	free(path);
	return is;
}

bool scan_is_repository(const char *dir)
{
	return has(dir, ".git", S_IFREG) || has(dir, ".git/HEAD", 0) ||
	    (has(dir, "HEAD", 0) &&
		(has(dir, "objects", 0) || has(dir, "commondir", 0)));
}

void scan_repositories(const char *root,
    void (*each)(const char *dir, void *data), void *data)
{
	char *const paths[] = { (char *)root, NULL };
	FTS *walk = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	FTSENT *at;

	while (walk && !interrupt_came() && (at = fts_read(walk))) {
		if (at->fts_info != FTS_D || !scan_is_repository(at->fts_path))
			continue;
		each(at->fts_path, data);
		fts_set(walk, at, FTS_SKIP);
	}
	if (walk)
		fts_close(walk);
	else
		say_error("%s: %s", root, strerror(errno));
}
