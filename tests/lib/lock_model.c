/*
 * Before every system call, processes begin and end, and take and release the
 * lock.
 */
#include "tests/lib/lock_model.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/store/refs/dead_lock.h"

#define PROC_FD  100
#define PROC_DIR ((struct sys_dir *)&proc_dir)
#define OWNER    1000
#define OTHER    2000

static const char *const kind_names[KINDS] = { "git", "writer", "git", "git",
	"smbd", "smbd", "git", "git", "refd-daemon" };

static int proc_dir;

unsigned lock_model_any(struct model *m, unsigned n)
{
	m->random ^= m->random << 13;
	m->random ^= m->random >> 7;
	m->random ^= m->random << 17;
	return (unsigned)((m->random >> 20) % n);
}

static struct model *model_of(const struct sys *sys)
{
	return sys->ctx;
}

/* ---- the machine ---- */

static struct life *living(struct model *m, uint64_t id)
{
	int i;

	for (i = 0; i < PIDS && id != 0; i++)
		if (m->lives[i].id == id && !m->lives[i].is_zombie)
			return &m->lives[i];
	return NULL;
}

static bool is_held(struct model *m, unsigned ino)
{
	return ino != 0 && living(m, m->inodes[ino].holder) != NULL;
}

/* A lock that refd renamed, and that a process holds. */
bool lock_model_is_moved(struct model *m)
{
	return is_held(m, m->aside);
}

static void drop_name(struct model *m, unsigned *name)
{
	if (*name != 0)
		m->inodes[*name].nlink--;
	*name = 0;
}

static unsigned new_inode(struct model *m, uint64_t holder, uint32_t uid)
{
	unsigned i = 1;

	while (m->inodes[i].nlink > 0 || m->inodes[i].opens > 0)
		i++;
	ck_assert_uint_lt(i, INODES);
	m->inodes[i] =
	    (struct inode){ .holder = holder, .uid = uid, .nlink = 1 };
	return i;
}

static void begin(struct model *m, struct life *l)
{
	static const enum kind kinds[] = { GIT, GIT, GIT, LIBRARY, IDMAPPED,
		ROOTLESS, STRANGER, SERVER, SECRET, SETUID, DAEMON };

	if (l->id == 0)
		*l = (struct life){ .id = ++m->ids,
			.started = m->ticks,
			.kind = kinds[lock_model_any(m, 11)],
			.uid = lock_model_any(m, 3) ? OWNER : OTHER };
}

static void take(struct model *m, const struct life *l)
{
	if (l->id == 0 || l->is_zombie || l->kind == STRANGER || m->lock != 0 ||
	    lock_model_is_moved(m))
		return;
	m->lock = new_inode(m, l->id, l->uid);
	m->names_itself = l->kind == GIT;
	/* The token in refd/stage/. */
	m->inodes[m->lock].nlink += l->kind == DAEMON;
}

/* git goes on if the file exists. */
static void name_itself(struct model *m)
{
	const struct life *l =
	    m->lock != 0 ? living(m, m->inodes[m->lock].holder) : NULL;

	if (l == NULL || !m->names_itself)
		return;
	m->names_itself = false;
	if (m->pid_file != 0)
		return;
	m->pid_file = new_inode(m, l->id, l->uid);
}

static void release(struct model *m)
{
	struct inode *lock = &m->inodes[m->lock];

	if (!is_held(m, m->lock))
		return;
	if (m->pid_file != 0 && m->inodes[m->pid_file].holder == lock->holder)
		drop_name(m, &m->pid_file);
	lock->nlink -= living(m, lock->holder)->kind == DAEMON;
	lock->holder = 0;
	drop_name(m, &m->lock);
}

static void a_person_cleans(struct model *m)
{
	if (!is_held(m, m->lock) && lock_model_any(m, 4) > 0)
		drop_name(m, &m->lock);
	else if (m->lock == 0 && lock_model_any(m, 4) == 0)
		drop_name(m, &m->pid_file);
}

/* Right before refd moves the lock. */
static void it_changes_hands(struct model *m)
{
	if (!is_held(m, m->lock))
		drop_name(m, &m->lock);
	take(m, &m->lives[lock_model_any(m, PIDS)]);
}

static void something_happens(struct model *m)
{
	struct life *l = &m->lives[lock_model_any(m, PIDS)];

	m->ticks++;
	switch (lock_model_any(m, 12)) {
	case 0:
		begin(m, l);
		break;
	case 1:
	case 2:
	case 3:
		l->is_zombie = l->id != 0 && lock_model_any(m, 3) == 0;
		if (!l->is_zombie)
			l->id = 0;
		break;
	case 4:
	case 5:
	case 6:
		take(m, l);
		break;
	case 7:
	case 8:
		name_itself(m);
		break;
	case 9:
		release(m);
		break;
	case 10:
		a_person_cleans(m);
		break;
	default:
		m->clock = lock_model_any(m, 1000000);
	}
}

/* Before every system call. */
static struct model *enter(const struct sys *sys)
{
	struct model *m = model_of(sys);
	unsigned nr = lock_model_any(m, m->calls_per_event) == 0 ?
	    1 + lock_model_any(m, 3) :
	    0;

	while (nr-- > 0)
		something_happens(m);
	return m;
}

/* ---- system calls ---- */

static unsigned *name_of(struct model *m, const char *path)
{
	if (strcmp(path, "x.lock") == 0)
		return &m->lock;
	if (strcmp(path, "x~pid.lock") == 0)
		return &m->pid_file;
	ck_assert_str_eq(path, DEAD_LOCK_ASIDE);
	return &m->aside;
}

static void render(struct model *m, const struct life *l, const char *file)
{
	const bool is_other =
	    l->kind == IDMAPPED || l->kind == ROOTLESS || l->kind == STRANGER;
	const bool is_root = l->kind == SETUID || l->kind == SERVER;
	const uint32_t uid = is_other ? 5000 : is_root ? 0 : l->uid;
	const uint32_t saved = l->kind == SETUID ? l->uid : uid;

	m->proc.id = l->id;
	if (strcmp(file, "stat") == 0)
		snprintf(m->proc.text, sizeof(m->proc.text),
		    "1 (a) b) S 1 1 1 0 -1 1 0 0 0 0 0 0 0 0 20 0 1 0 %llu 1\n",
		    (unsigned long long)l->started);
	else if (strcmp(file, "status") == 0)
		snprintf(m->proc.text, sizeof(m->proc.text),
		    "Name:\t%s\nState:\t%c (x)\nUid:\t%u\t%u\t%u\t%u\n"
		    "Threads:\t1\n",
		    kind_names[l->kind], l->is_zombie ? 'Z' : 'S', uid, uid,
		    saved, uid);
	else if (l->kind == ROOTLESS)
		snprintf(m->proc.text, sizeof(m->proc.text),
		    "0 5000 1\n1 %u 2\n", l->uid - 1);
	else
		snprintf(m->proc.text, sizeof(m->proc.text), "%s",
		    is_other ? "0 5000 1\n" : "0 0 4294967295\n");
}

bool lock_model_ask(const struct sys *sys, enum process_doubt doubt, long pid)
{
	const struct life *l = &enter(sys)->lives[pid - 1];

	return l->id == 0 ||
	    l->kind == (doubt == PROCESS_SERVES ? SERVER : IDMAPPED);
}

static int open_proc(struct model *m, const char *path)
{
	const struct life *l;
	char file[16];
	int pid;

	ck_assert_int_eq(sscanf(path, "/proc/%d/%15s", &pid, file), 2);
	l = &m->lives[pid - 1];
	if (l->id == 0)
		return -ENOENT;
	if (l->kind == SECRET)
		return -EACCES;
	render(m, l, file);
	return PROC_FD;
}

static int fake_openat(const struct sys *sys, int dirfd, const char *path,
    int flags, mode_t mode)
{
	struct model *m = enter(sys);
	unsigned *name;
	int fd = 0;

	(void)flags;
	(void)mode;
	if (dirfd == SYS_TRUSTED)
		return open_proc(m, path);
	name = name_of(m, path);
	if (*name == 0)
		return -ENOENT;
	while (m->fds[fd] != 0)
		fd++;
	m->fds[fd] = *name;
	m->inodes[*name].opens++;
	return fd;
}

static int fake_close(const struct sys *sys, int fd)
{
	struct model *m = enter(sys);

	if (fd != PROC_FD) {
		m->inodes[m->fds[fd]].opens--;
		m->fds[fd] = 0;
	}
	return 0;
}

static void attributes(struct model *m, unsigned ino, struct sys_stat *st)
{
	*st = (struct sys_stat){ .dev = 1,
		.ino = ino,
		.mode = S_IFREG | 0644,
		.uid = m->inodes[ino].uid,
		.nlink = m->inodes[ino].nlink,
		.ctime_ns = m->clock };
}

static int fake_fstat(const struct sys *sys, int fd, struct sys_stat *st)
{
	struct model *m = enter(sys);

	if (fd == PROC_FD)
		*st = (struct sys_stat){ .mode = S_IFREG | 0444 };
	else
		attributes(m, m->fds[fd], st);
	return 0;
}

static int fake_lstatat(const struct sys *sys, int dirfd, const char *path,
    struct sys_stat *st)
{
	struct model *m = enter(sys);
	const unsigned *name = name_of(m, path);

	(void)dirfd;
	if (*name == 0)
		return -ENOENT;
	attributes(m, *name, st);
	return 0;
}

static ssize_t fake_pread(const struct sys *sys, int fd, void *buf, size_t len,
    off_t offset)
{
	struct model *m = enter(sys);
	const char *text = m->proc.text;
	size_t nr;
	int i;

	ck_assert_int_eq(fd, PROC_FD);
	for (i = 0; i < PIDS && m->lives[i].id != m->proc.id; i++)
		;
	if (i == PIDS)
		return -ESRCH;
	nr = strlen(text);
	nr = (size_t)offset < nr ? nr - (size_t)offset : 0;
	nr = nr < len ? nr : len;
	memcpy(buf, text + offset, nr);
	return (ssize_t)nr;
}

static int fake_dir_open(const struct sys *sys, int dirfd, const char *path,
    struct sys_dir **dir)
{
	struct model *m = enter(sys);

	(void)dirfd;
	ck_assert_str_eq(path, "/proc");
	m->next_pid = 0;
	*dir = PROC_DIR;
	return 0;
}

/* As the kernel: the next number that a process has now. */
static int fake_dir_next(const struct sys *sys, struct sys_dir *dir,
    struct sys_dirent *entry)
{
	static char name[16];
	struct model *m = enter(sys);

	(void)dir;
	while (m->next_pid < PIDS && m->lives[m->next_pid].id == 0)
		m->next_pid++;
	if (m->next_pid == PIDS)
		return 0;
	snprintf(name, sizeof(name), "%d", ++m->next_pid);
	*entry = (struct sys_dirent){ .name = name, .type = DT_DIR };
	return 1;
}

static void fake_dir_close(const struct sys *sys, struct sys_dir *dir)
{
	(void)sys;
	(void)dir;
}

static int fake_unlinkat(const struct sys *sys, int dirfd, const char *path)
{
	struct model *m = enter(sys);
	unsigned *name = name_of(m, path);

	(void)dirfd;
	if (*name == 0)
		return -ENOENT;
	m->lost += name != &m->pid_file && is_held(m, *name) &&
	    m->lock + m->aside == *name;
	drop_name(m, name);
	return 0;
}

static int fake_renameat(const struct sys *sys, int olddirfd,
    const char *oldpath, int newdirfd, const char *newpath)
{
	struct model *m = enter(sys);
	unsigned *from = name_of(m, oldpath), *to = name_of(m, newpath);

	(void)olddirfd;
	(void)newdirfd;
	if (lock_model_any(m, 10) == 0)
		it_changes_hands(m);
	if (*from == 0)
		return -ENOENT;
	drop_name(m, to);
	*to = *from;
	*from = 0;
	m->moved += lock_model_is_moved(m);
	return 0;
}

static int fake_linkat(const struct sys *sys, int olddirfd, const char *oldpath,
    int newdirfd, const char *newpath)
{
	struct model *m = enter(sys);
	unsigned *from = name_of(m, oldpath), *to = name_of(m, newpath);

	(void)olddirfd;
	(void)newdirfd;
	if (*to != 0)
		return -EEXIST;
	if (*from == 0)
		return -ENOENT;
	*to = *from;
	m->inodes[*to].nlink++;
	return 0;
}

void lock_model_start(struct model *m, uint64_t seed)
{
	const struct sys sys = { .ctx = m,
		.openat = fake_openat,
		.close = fake_close,
		.fstat = fake_fstat,
		.lstatat = fake_lstatat,
		.pread = fake_pread,
		.dir_open = fake_dir_open,
		.dir_next = fake_dir_next,
		.dir_close = fake_dir_close,
		.unlinkat = fake_unlinkat,
		.renameat = fake_renameat,
		.linkat = fake_linkat };
	unsigned nr;

	memset(m->lives, 0, sizeof(m->lives));
	memset(m->inodes, 0, sizeof(m->inodes));
	memset(m->fds, 0, sizeof(m->fds));
	m->sys = sys;
	m->random = seed * UINT64_C(2654435761) + 88172645463325252;
	m->lock = m->pid_file = m->aside = 0;
	m->calls_per_event = 2 << lock_model_any(m, 7);
	for (nr = 20 + lock_model_any(m, 60); nr > 0; nr--)
		something_happens(m);
	for (nr = 0; nr < PIDS; nr++)
		take(m, &m->lives[nr]);
	if (is_held(m, m->lock) && lock_model_any(m, 3) > 0)
		living(m, m->inodes[m->lock].holder)->id = 0;
}
