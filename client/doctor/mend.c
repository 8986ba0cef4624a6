/*
 * What can be mended without a risk. "refd enable" is run for most of it,
 * which says by itself what it cannot do, and writes down what it does.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/base/child.h"
#include "client/doctor/doctor_internal.h"
#include "client/enable/owner.h"
#include "client/enable/registry.h"

/* What it does is told by what is not found any more. */
static void run(const char *const argv[])
{
	struct text t = { 0 };

	child_capture(argv, &t);
	text_done(&t);
}

static void enable(const char *repo)
{
	const char *const argv[] = { "/proc/self/exe", "enable", repo, NULL };

	run(argv);
}

static void enable_system_again(void)
{
	static const char *const argv[] = { "/proc/self/exe", "enable",
		"--system", NULL };

	run(argv);
}

/* Where the directory around it is gone as well, it may be a disk that is not
 * mounted. */
static void forget(const char *path)
{
	char *around = xstrdup(path), *slash = strrchr(around, '/');
	bool is_there;

	if (slash)
		*slash = '\0';
	is_there = slash && access(around, F_OK) == 0;
	free(around);
	if (!is_there)
		return;
	if (registry_open())
		registry_remove(path);
	registry_close();
}

/* Who holds git's lock may remove it: nobody else is writing it then. */
static void remove_new(const char *repo)
{
	char *lock = xasprintf("%s/packed-refs.lock", repo);
	char *new = xasprintf("%s/packed-refs.new", repo);
	struct text why = { 0 };
	struct stat st;
	int fd = -1;

	if (owner_stat(repo, &st, &why)) {
		owner_enter(&st);
		fd = open(lock, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (fd >= 0) {
			close(fd);
			if (unlink(new) < 0)
				say_warning("%s: %s", new, strerror(errno));
			unlink(lock);
		}
		owner_leave();
	}
	text_done(&why);
	free(lock);
	free(new);
}

/* Is that done already, for what was found before? */
static bool is_again(const struct findings *f, size_t at)
{
	const struct finding *this = &f->list[at];
	size_t i;

	for (i = 0; i < at; i++)
		if (finding_mend(f->list[i].id) == finding_mend(this->id) &&
		    !strcmp(f->list[i].where, this->where))
			return true;
	return false;
}

bool mend(const struct findings *f)
{
	bool any = false;
	size_t i;

	for (i = 0; i < f->nr; i++) {
		enum mend how = finding_mend(f->list[i].id);
		const char *where = f->list[i].where;

		any |= how != MEND_NOT;
		if (is_again(f, i))
			continue;
		switch (how) {
		case MEND_NOT:
			break;
		case MEND_ENABLE:
			enable(where);
			break;
		case MEND_SYSTEM:
			enable_system_again();
			break;
		case MEND_LIST:
			forget(where);
			break;
		case MEND_PACKED:
			remove_new(where);
			break;
		}
	}
	return any;
}
