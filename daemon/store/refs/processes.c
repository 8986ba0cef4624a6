/*
 * The happy path: every directory of /proc with a number is a process. Its stat
 * has the time of start, its status the user ids, and its uid_map the ids that
 * its user namespace maps.
 *
 * Failures: a process that ends meanwhile is left out, and a process whose
 * files cannot be read or understood may hold any lock. /proc lists the
 * processes in the order of their numbers, and a process keeps its number, so
 * no process is missed that runs during the whole search.
 *
 * If a number is used again between two reads, then the first process has
 * ended and the second began after the search, so neither matters.
 *
 * A process enters only namespaces below its own, so a question about its
 * namespace that comes late still finds root's namespace around it.
 */
#include "daemon/store/refs/processes.h"

#include <errno.h>
#include <linux/nsfs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "proto/lib/array.h"
#include "proto/lib/lock_pid.h"
#include "proto/limits.h"

/* status lists up to 65,536 groups, of up to 11 bytes each. */
#define FILE_MAX   (1024 * 1024)
#define MOUNTS_MAX (16 * 1024 * 1024)
/* PROC_PID_INIT_INO and PROC_USER_INIT_INO of the kernel's proc_ns.h. */
#define FIRST_PID_NAMESPACE  0xEFFFFFFCu
#define FIRST_USER_NAMESPACE 0xEFFFFFFDu

static bool is_first_namespace(const struct sys *sys, const char *path,
    uint64_t first)
{
	struct sys_stat st;

	return sys_stat_trusted(sys, path, &st) == 0 && st.ino == first;
}

/* Has a mount on /proc an option that hides processes, or is this unknown? */
static bool has_hidden(const struct sys *sys)
{
	char *text, *line, *end;
	bool hidden = false;
	size_t len;

	if (sys_read_file(sys, SYS_TRUSTED, "/proc/self/mounts", MOUNTS_MAX,
		&text, &len) < 0)
		return true;
	for (line = text; *line != '\0'; line = end + (*end != '\0')) {
		end = strchrnul(line, '\n');
		if (memmem(line, (size_t)(end - line), " /proc ", 7) != NULL &&
		    memmem(line, (size_t)(end - line), "hidepid=", 8) != NULL)
			hidden = true;
	}
	free(text);
	return hidden;
}

const char *processes_in_container(const struct sys *sys)
{
	if (!is_first_namespace(sys, "/proc/self/ns/pid", FIRST_PID_NAMESPACE))
		return "sees only the processes of a container (a pid "
		       "namespace): run the command outside";
	if (!is_first_namespace(sys, "/proc/self/ns/user",
		FIRST_USER_NAMESPACE))
		return "sees other numbers of users in a container (a user "
		       "namespace): run the command outside";
	return NULL;
}

const char *processes_hidden(const struct sys *sys)
{
	const char *why = processes_in_container(sys);

	if (why == NULL && has_hidden(sys))
		why = "does not see all processes, because /proc is mounted "
		      "with hidepid: run the command with another /proc";
	return why;
}

/* The content of FILE of process PID, to be freed. */
static int read_of(const struct sys *sys, long pid, const char *file,
    char **text)
{
	char path[64];
	size_t len;

	snprintf(path, sizeof(path), "/proc/%ld/%s", pid, file);
	return sys_read_file(sys, SYS_TRUSTED, path, FILE_MAX, text, &len);
}

/* The value of a line of status. A name cannot forge a line, because the kernel
 * escapes line feeds. */
static const char *line_of(const char *status, const char *key)
{
	const char *at = status;
	size_t len = strlen(key);

	while (at != NULL && strncmp(at, key, len) != 0) {
		at = strchr(at, '\n');
		at = at != NULL ? at + 1 : NULL;
	}
	return at != NULL ? at + len : NULL;
}

/* The names of the programs of file servers. SIGN is a file that is not empty
 * if the server serves other machines, even before its start. The guests of
 * virtiofsd end with this machine, so virtiofsd needs no such file. */
static const struct {
	const char *name, *sign;
} servers[] = {
	{ "nfsd", "/etc/exports" },
	{ "nfsd", "/var/lib/nfs/etab" },
	{ "ksmbd", "/etc/ksmbd/ksmbd.conf" },
	{ "smbd", "/usr/sbin/smbd" },
	{ "ganesha.nfsd", "/etc/ganesha/ganesha.conf" },
	{ "virtiofsd", NULL },
};

static bool is_file_server(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(servers) / sizeof(servers[0]); i++)
		if (strncmp(name, servers[i].name, strlen(servers[i].name)) ==
		    0)
			return true;
	return false;
}

bool processes_serve_files(const struct sys *sys)
{
	struct sys_stat st;
	size_t i;
	int r;

	for (i = 0; i < sizeof(servers) / sizeof(servers[0]); i++) {
		if (servers[i].sign == NULL)
			continue;
		r = sys_stat_trusted(sys, servers[i].sign, &st);
		if (r == 0 ? st.size > 0 : r != -ENOENT && r != -ENOTDIR)
			return true;
	}
	return false;
}

/* False: malformed. *ENDED: a zombie, whose threads have ended too. */
static bool read_status(struct process *p, const char *status, bool *ended)
{
	const char *name = line_of(status, "Name:\t");
	const char *state = line_of(status, "State:\t");
	const char *uids = line_of(status, "Uid:\t");
	const char *threads = line_of(status, "Threads:\t");

	if (name == NULL || state == NULL || uids == NULL || threads == NULL ||
	    sscanf(uids, "%u %u %u %u", &p->uids[0], &p->uids[1], &p->uids[2],
		&p->uids[3]) != 4)
		return false;
	snprintf(p->name, sizeof(p->name), "%.*s", (int)strcspn(name, "\n"),
	    name);
	*ended =
	    *state == 'X' || (*state == 'Z' && strtol(threads, NULL, 10) <= 1);
	return true;
}

/* ---- the answer of root ---- */

static bool is_server_program(const struct sys *sys, long pid)
{
	char path[64], program[REFD_PATH_MAX];
	const char *slash;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%ld/exe", pid);
	n = SYS(sys, readlinkat, SYS_TRUSTED, path, program,
	    sizeof(program) - 1);
	/* A server of the kernel has no program. */
	if (n < 0)
		return true;
	program[n] = '\0';
	slash = strrchr(program, '/');
	return is_file_server(slash != NULL ? slash + 1 : program);
}

static bool is_namespace_of_root(const struct sys *sys, long pid)
{
	bool is_first = false, is_roots = false;
	struct sys_stat st;
	char path[64];
	uid_t maker;
	int fd, up;

	snprintf(path, sizeof(path), "/proc/%ld/ns/user", pid);
	fd = SYS(sys, openat, SYS_TRUSTED, path, O_RDONLY, 0);
	while (fd >= 0 && !is_first && !is_roots) {
		is_first = SYS(sys, fstat, fd, &st) == 0 &&
		    st.ino == FIRST_USER_NAMESPACE;
		is_roots = !is_first &&
		    (ioctl(fd, NS_GET_OWNER_UID, &maker) < 0 || maker == 0);
		up = is_first ? -1 : ioctl(fd, NS_GET_PARENT);
		SYS(sys, close, fd);
		fd = up;
	}
	if (fd >= 0)
		SYS(sys, close, fd);
	return !is_first;
}

bool processes_answer(const struct sys *sys, enum process_doubt doubt, long pid)
{
	return doubt == PROCESS_SERVES ? is_server_program(sys, pid) :
					 is_namespace_of_root(sys, pid);
}

/* ---- the list ---- */

/* Is MAP the map of the first user namespace, with all numbers unchanged? */
static bool is_plain_map(const char *map)
{
	unsigned long inside, outside, nr;

	return sscanf(map, "%lu %lu %lu", &inside, &outside, &nr) == 3 &&
	    inside == 0 && outside == 0 && nr == UINT32_MAX;
}

/* False: malformed, or no memory. */
static bool read_map(struct process *p, const char *map)
{
	struct uid_range *grown;
	unsigned inside, first, nr;
	int used = 0;

	for (; sscanf(map, "%u %u %u\n%n", &inside, &first, &nr, &used) == 3;
	    map += used) {
		grown = array_room(p->mapped, p->nr_mapped, &p->mapped_size,
		    sizeof(*grown));
		if (grown == NULL)
			return false;
		p->mapped = grown;
		p->mapped[p->nr_mapped++] = (struct uid_range){ first, nr };
	}
	return *map == '\0';
}

static bool has_uid(const struct process *p, uint32_t uid)
{
	return p->uids[0] == uid || p->uids[1] == uid || p->uids[2] == uid ||
	    p->uids[3] == uid;
}

static bool is_gone(int err)
{
	return err == -ENOENT || err == -ESRCH;
}

/* 1: P is filled in. 0: the process has ended. */
static int read_process(const struct sys *sys, process_ask *ask,
    struct process *p)
{
	char *stat = NULL, *status = NULL, *map = NULL;
	bool ended = false, known, in_other;
	int r[3];

	r[0] = read_of(sys, p->pid, "stat", &stat);
	r[1] = read_of(sys, p->pid, "status", &status);
	r[2] = read_of(sys, p->pid, "uid_map", &map);
	known = r[0] == 0 && r[1] == 0 && r[2] == 0 &&
	    read_status(p, status, &ended);
	p->started = known ? lock_pid_started(stat) : 0;
	in_other = known && !is_plain_map(map);
	p->may_hold_any = !known || p->started == 0 ||
	    (in_other && !read_map(p, map)) ||
	    (in_other && ask(sys, PROCESS_IN_NAMESPACE, p->pid)) ||
	    (is_file_server(p->name) && has_uid(p, 0) &&
		ask(sys, PROCESS_SERVES, p->pid));
	free(stat);
	free(status);
	free(map);
	return !ended && !is_gone(r[0]) && !is_gone(r[1]) && !is_gone(r[2]);
}

static int add_process(const struct sys *sys, long pid, process_ask *ask,
    struct processes *all)
{
	struct process *grown, *p;

	grown = array_room(all->list, all->nr, &all->size, sizeof(*grown));
	if (grown == NULL)
		return -ENOMEM;
	all->list = grown;
	p = &all->list[all->nr];
	*p = (struct process){ .pid = pid, .name = "?" };
	if (read_process(sys, ask, p))
		all->nr++;
	else
		free(p->mapped);
	return 0;
}

static int compare(const void *a, const void *b)
{
	long x = ((const struct process *)a)->pid;
	long y = ((const struct process *)b)->pid;

	return (x > y) - (x < y);
}

int processes_find(const struct sys *sys, long self, process_ask *ask,
    struct processes *all)
{
	struct sys_dirent entry;
	struct sys_dir *dir;
	long pid;
	int r;

	r = SYS(sys, dir_open, SYS_TRUSTED, "/proc", &dir);
	if (r < 0)
		return r;
	while ((r = SYS(sys, dir_next, dir, &entry)) > 0) {
		if (entry.name[0] < '1' || entry.name[0] > '9')
			continue;
		pid = strtol(entry.name, NULL, 10);
		if (pid != self && (r = add_process(sys, pid, ask, all)) < 0)
			break;
	}
	SYS(sys, dir_close, dir);
	if (r == 0 && all->nr > 0)
		qsort(all->list, all->nr, sizeof(*all->list), compare);
	return r;
}

static bool still_runs(const struct process *p, const struct processes *now)
{
	const struct process *found = now->nr == 0 ?
	    NULL :
	    bsearch(p, now->list, now->nr, sizeof(*p), compare);

	return found != NULL &&
	    (found->started == p->started || found->started == 0 ||
		p->started == 0);
}

void processes_keep(struct processes *all, const struct processes *now)
{
	size_t i, nr = 0;

	for (i = 0; i < all->nr; i++)
		if (still_runs(&all->list[i], now))
			all->list[nr++] = all->list[i];
		else
			free(all->list[i].mapped);
	all->nr = nr;
}

bool process_may_hold(const struct process *p, uint32_t uid)
{
	size_t i;

	if (p->may_hold_any)
		return true;
	if (has_uid(p, uid))
		return strcmp(p->name, "refd-daemon") != 0;
	for (i = 0; i < p->nr_mapped; i++)
		if (uid - p->mapped[i].first < p->mapped[i].nr)
			return true;
	return false;
}

void processes_done(struct processes *all)
{
	size_t i;

	for (i = 0; i < all->nr; i++)
		free(all->list[i].mapped);
	free(all->list);
	*all = (struct processes){ 0 };
}
