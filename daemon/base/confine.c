#include "daemon/base/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon/base/sys.h"
#include "daemon/base/sys_landlock.h"
#include "daemon/base/sys_seccomp.h"

/* Sanitizers and gcov open files and make calls of their own (Makefile). */
#ifdef REFD_UNCONFINED
#define IS_WANTED false
#else
#define IS_WANTED true
#endif

/*
 * Read while the daemon runs: the mount of a file system (sys_mount.c), the id
 * of this boot, the daemon's own descriptors, and by a reload the names of
 * users and groups, through the libraries of the name service.
 */
static const char *const read_by_all[] = { "/proc/self",
	"/proc/sys/kernel/random/boot_id", "/sys/fs", "/sys/devices/system/cpu",
	"/etc/machine-id", "/etc/nsswitch.conf", "/etc/passwd", "/etc/group",
	"/usr/lib", "/usr/lib64", "/lib", "/lib64", "/usr/local/lib",
	"/var/lib/sss" };

/* passwd and group are replaced by new files on every change, so only a rule
 * for the directory permits reading the new files. A root daemon gets no such
 * rule, because /etc contains /etc/shadow. */
static const char read_by_others[] = "/etc";

static void __attribute__((format(printf, 3, 4))) note(char *text, size_t size,
    const char *fmt, ...)
{
	size_t len = strlen(text);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text + len, size - len, fmt, ap);
	va_end(ap);
}

static void note_in_force(struct confined *c, const char *part)
{
	note(c->by, sizeof(c->by), "%s%s", c->by[0] != '\0' ? ", " : "", part);
}

static void note_missing(struct confined *c, const char *part, const char *why)
{
	note(c->without, sizeof(c->without), "%s%s (%s)",
	    c->without[0] != '\0' ? ", " : "", part, why);
}

/* ---- files ---- */

static int refuse(const char *path, int r, char **why)
{
	if (asprintf(why, "cannot confine the daemon to %s: %s", path,
		strerror(-r)) < 0)
		*why = NULL;
	return r;
}

static int allow(struct landlock *l, const char *path,
    enum landlock_rights rights, char **why)
{
	int r = landlock_allow(l, path, rights);

	return r < 0 ? refuse(path, r, why) : 0;
}

/* The directory of PATH; NULL when out of memory. */
static char *directory_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash == path ? strdup("/") :
			       strndup(path, (size_t)(slash - path));
}

static int allow_directory_of(struct landlock *l, const char *path,
    enum landlock_rights rights, char **why)
{
	char *dir = directory_of(path);
	int r = -ENOMEM;

	*why = NULL;
	if (dir != NULL)
		r = allow(l, dir, rights, why);
	free(dir);
	return r;
}

static bool is_mount_point(const char *path)
{
	struct sys_stat here, above;
	char *dir = directory_of(path);
	bool is = dir != NULL && strcmp(dir, "/") != 0 &&
	    sys_stat_trusted(&sys_kernel, path, &here) == 0 &&
	    sys_stat_trusted(&sys_kernel, dir, &above) == 0 &&
	    here.dev != above.dev;

	free(dir);
	return is;
}

/* A newly mounted file system has another root directory than the allowed
 * directory, so the directory around the mount point must be allowed too. The
 * exception is "/", so a new file system directly below "/" waits for a restart
 * of the daemon. */
static int allow_kept(struct landlock *l, const char *path, char **why)
{
	int r = allow(l, path, LANDLOCK_KEEP, why);

	if (r == 0 && is_mount_point(path))
		r = allow_directory_of(l, path, LANDLOCK_KEEP, why);
	return r;
}

/* Editors replace the file by a new file, so the directory is allowed, too. */
static int allow_config(struct landlock *l, const char *config, char **why)
{
	int r = allow_directory_of(l, config, LANDLOCK_READ, why);

	return r < 0 ? r : allow(l, config, LANDLOCK_READ, why);
}

static int allow_machine(struct landlock *l, char **why)
{
	size_t i;
	int r = 0;

	for (i = 0; i < sizeof(read_by_all) / sizeof(*read_by_all); i++) {
		r = landlock_allow(l, read_by_all[i], LANDLOCK_READ);
		if (r < 0 && r != -ENOENT && r != -EACCES)
			return refuse(read_by_all[i], r, why);
	}
	return geteuid() != 0 ? allow(l, read_by_others, LANDLOCK_READ, why) :
				0;
}

static int allow_places(struct landlock *l, const struct confine_places *p,
    char **why)
{
	int r = allow_kept(l, p->state_dir, why);
	size_t i;

	for (i = 0; r == 0 && i < p->nr_roots; i++)
		r = allow_kept(l, p->roots[i], why);
	for (i = 0; r == 0 && i < 2; i++)
		if (p->sockets[i] != NULL)
			r = allow_directory_of(l, p->sockets[i], LANDLOCK_RENEW,
			    why);
	if (r == 0 && p->config != NULL)
		r = allow_config(l, p->config, why);
	return r < 0 ? r : allow_machine(l, why);
}

static int confine_files(const struct confine_places *places,
    struct confined *c, char **why)
{
	struct landlock l;
	char part[32];
	int r = landlock_begin(&l);

	if (r == 0) {
		r = allow_places(&l, places, why);
		if (r < 0) {
			SYS(&sys_kernel, close, l.ruleset);
			return r;
		}
		r = landlock_enforce(&l);
	}
	if (r == 0) {
		snprintf(part, sizeof(part), "Landlock %d", l.abi);
		note_in_force(c, part);
	} else {
		note_missing(c, "Landlock",
		    r == -EPROTO ? "the kernel is older than 5.19" :
				   strerror(-r));
	}
	return 0;
}

/* ---- the rest ---- */

static void confine_privileges(struct confined *c)
{
	struct rlimit core;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)
		note_in_force(c, "no new privileges");
	else
		note_missing(c, "no new privileges", strerror(errno));
	/* Not reported as missing if core dumps are wanted. */
	if (getrlimit(RLIMIT_CORE, &core) == 0 && core.rlim_cur == 0 &&
	    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0)
		note_in_force(c, "not dumpable");
}

static void confine_calls(struct confined *c)
{
	int r = sys_seccomp_enforce();

	if (r == 0)
		note_in_force(c, "seccomp");
	else
		note_missing(c, "seccomp", strerror(-r));
}

/* Without openat2 no repository can be opened safely (sys_path.c). */
static void look_at_kernel(struct confined *c)
{
	bool is_plain;
	int fd = SYS(&sys_kernel, open_below, SYS_TRUSTED, ".", &is_plain);

	if (fd == -ENOSYS)
		note_missing(c, "openat2", "the kernel is older than 5.6");
	if (fd >= 0)
		SYS(&sys_kernel, close, fd);
}

int confine_process(const struct confine_places *places,
    struct confined *confined, char **why)
{
	int r;

	*confined = (struct confined){ 0 };
	*why = NULL;
	look_at_kernel(confined);
	if (!IS_WANTED) {
		note_in_force(confined,
		    "nothing: built with a sanitizer or for gcov");
		return 0;
	}
	confine_privileges(confined);
	r = confine_files(places, confined, why);
	if (r == 0)
		confine_calls(confined);
	return r;
}
