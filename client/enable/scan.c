#include "client/enable/scan.h"

#include <errno.h>
#include <fts.h>
#include <string.h>

#include "proto/lib/interrupt.h"

void scan_repositories(const char *root,
    void (*each)(const struct gitdir *gd, void *data), void *data)
{
	char *const paths[] = { (char *)root, NULL };
	FTS *walk = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	struct text why = { 0 };
	struct gitdir gd;
	FTSENT *at;

	while (walk && !interrupt_came() && (at = fts_read(walk))) {
		if (at->fts_info != FTS_D)
			continue;
		memset(&gd, 0, sizeof(gd));
		if (gitdir_locate(&gd, at->fts_path, &why)) {
			each(&gd, data);
			fts_set(walk, at, FTS_SKIP);
		}
		gitdir_done(&gd);
		text_clear(&why);
	}
	if (walk)
		fts_close(walk);
	else
		say_error("%s: %s", root, strerror(errno));
	text_done(&why);
}
