/*
 * Repairs without a risk. Most run "refd enable", which records its steps. A
 * repair reports nothing: the checks that follow show whether the finding is
 * gone.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/base/child.h"
#include "client/doctor/doctor_internal.h"
#include "client/enable/registry.h"
#include "client/git/owner.h"

static void run_quietly(const char *const argv[])
{
	struct text t = { 0 };

	child_capture(argv, &t);
	text_done(&t);
}

static void enable_again(const char *repo)
{
	const char *const argv[] = { "/proc/self/exe", "enable", repo, NULL };

	run_quietly(argv);
}

static void enable_system_again(void)
{
	static const char *const argv[] = { "/proc/self/exe", "enable",
		"--system", NULL };

	run_quietly(argv);
}

/* If the directory around PATH is missing too, a disk may be unmounted, and
 * PATH stays listed. */
static void forget_listed(const char *path)
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

/* Under git's lock, because the holder of the lock writes packed-refs.new. */
static int remove_new_here(void *arg)
{
	const struct owned *repo = arg;
	char *lock = xasprintf("%s/packed-refs.lock", repo->path);
	char *new = xasprintf("%s/packed-refs.new", repo->path);
	int fd = open(lock, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

	if (fd >= 0) {
		close(fd);
		if (unlink(new) < 0)
			say_warning("%s: %s", new, strerror(errno));
		unlink(lock);
	}
	free(lock);
	free(new);
	return 0;
}

static void remove_new(const char *path)
{
	struct text why = { 0 };
	struct owned repo;
	const struct work work = { .run = remove_new_here, .arg = &repo };

	owner_work(&repo, path, work, &why);
	if (why.len)
		say_warning("%s", why.data);
	text_done(&why);
}

/* Does the list name the same repair of the same repository before AT? The
 * findings of a repository are neighbours. */
static bool is_again(const struct findings *f, size_t at)
{
	const struct finding *this = &f->list[at]->finding, *other;

	while (at-- > 0) {
		other = &f->list[at]->finding;
		if (strcmp(other->repo, this->repo))
			return false;
		if (finding_repair(other->id) == finding_repair(this->id))
			return true;
	}
	return false;
}

/* False: this command has no such repair. */
static bool mend(const struct finding *finding)
{
	switch (finding_repair(finding->id)) {
	case REPAIR_ENABLE:
		enable_again(finding->repo);
		return true;
	case REPAIR_SYSTEM:
		enable_system_again();
		return true;
	case REPAIR_LIST:
		forget_listed(finding->repo);
		return true;
	case REPAIR_PACKED_NEW:
		remove_new(finding->repo);
		return true;
	case REPAIR_NONE:
	case REPAIR_REF:
	case REPAIR_LOG:
	case REPAIR_EMPTY:
	case REPAIR_LOCKS:
	case REPAIR_TABLE:
		break;
	}
	return false;
}

bool doctor_mend(const struct findings *f)
{
	bool any = false;
	size_t i;

	for (i = 0; i < f->nr; i++)
		if (!is_again(f, i))
			any |= mend(&f->list[i]->finding);
	return any;
}
