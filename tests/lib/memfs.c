/*
 * The machine: clock, descriptors, faults, and the moment of the stop.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/memfs_internal.h"

/* A caller that continues after so many failures never stops. */
#define CALLS_WHEN_OFF_MAX 1000000

static const char *const call_names[] = {
#define X(name, call) #call,
	MEMFS_CALLS(X)
#undef X
};

/* New elements are zero. A test can't continue without memory, so this
 * aborts. */
void *memfs_grow(void *array, size_t *room, size_t need, size_t size)
{
	size_t had = room != NULL ? *room : 0, has = had;

	if (array != NULL && need <= had)
		return array;
	if (room == NULL)
		has = need;
	while (has < need)
		has = has == 0 ? 8 : has * 2;
	array = realloc(array, has * size > 0 ? has * size : 1);
	if (array == NULL)
		abort();
	memset((char *)array + had * size, 0, (has - had) * size);
	if (room != NULL)
		*room = has;
	return array;
}

/* ---- begin and end of a call ---- */

static void note_hit(struct memfs *fs)
{
	if (fs->was_hit)
		return;
	fs->was_hit = true;
	snprintf(fs->hit, sizeof(fs->hit), "%s %s", fs->call_name,
	    fs->call_path);
}

static bool fault_is_due(struct memfs *fs, enum memfs_call call)
{
	struct memfs_fault *f = &fs->fault;
	bool matches;

	if (!f->is_armed)
		return false;
	matches = f->call == MEMFS_NR_CALLS ? call != MEMFS_CLOSE :
					      f->call == (int)call;
	if (!matches)
		return false;
	if (f->left > 0) {
		f->left--;
		return false;
	}
	f->is_armed = f->stays;
	return true;
}

static void run_between(struct memfs *fs)
{
	const char *name = fs->call_name, *path = fs->call_path;
	struct memfs_proc *cur = fs->cur;

	if (!fs->between_armed)
		return;
	if (fs->between_left > 0) {
		fs->between_left--;
		return;
	}
	fs->between_armed = false;
	pthread_mutex_unlock(&fs->lock);
	fs->between(fs, fs->between_arg);
	pthread_mutex_lock(&fs->lock);
	fs->cur = cur;
	fs->call_name = name;
	fs->call_path = path;
}

/* Called with the lock held. CALL_PATH and CALL_NAME describe the call. */
static int may_go_on(struct memfs *fs, struct memfs_proc *proc,
    enum memfs_call call)
{
	fs->cur = proc;
	fs->faulted_now = false;
	fs->wall += fs->step;
	fs->mono += fs->step;
	if (proc->is_other)
		return fs->power == POWER_CUT ? -EIO : 0;
	if (fs->power != POWER_ON) {
		if (++fs->calls_when_off > CALLS_WHEN_OFF_MAX) {
			fprintf(stderr, "memfs: the caller does not give up\n");
			abort();
		}
		return -EIO;
	}
	if (call != MEMFS_CLOSE) {
		fs->nr_calls++;
		run_between(fs);
	}
	if (!fault_is_due(fs, call))
		return 0;
	note_hit(fs);
	if (fs->fault.is_after) {
		fs->err_after = fs->fault.err;
		return 0;
	}
	fs->faulted_now = true;
	return fs->fault.err;
}

int memfs_enter(const struct sys *sys, enum memfs_call call, const char *path,
    struct memfs **out)
{
	struct memfs_proc *proc = sys->ctx;
	struct memfs *fs = proc->fs;

	*out = fs;
	pthread_mutex_lock(&fs->lock);
	fs->call_name = call_names[call];
	fs->call_path = path;
	return may_go_on(fs, proc, call);
}

static struct memfs_open *open_of(struct memfs *fs, int fd)
{
	size_t i = (size_t)(fd - fs->first_fd);

	return fd >= fs->first_fd && i < fs->nr_fds ? fs->fds[i] : NULL;
}

int memfs_enter_at(const struct sys *sys, enum memfs_call call, int dirfd,
    const char *path, struct memfs **out)
{
	struct memfs_proc *proc = sys->ctx;
	struct memfs *fs = proc->fs;
	struct memfs_open *open;

	*out = fs;
	pthread_mutex_lock(&fs->lock);
	fs->call_name = call_names[call];
	fs->call_path = path;
	open = open_of(fs, dirfd);
	if (open != NULL && open->flags & O_PATH) {
		snprintf(proc->shown, sizeof(proc->shown), "%s/%.60s",
		    open->path, path);
		fs->call_path = proc->shown;
	}
	return may_go_on(fs, proc, call);
}

int memfs_enter_fd(const struct sys *sys, enum memfs_call call, int fd,
    struct memfs **out)
{
	struct memfs_proc *proc = sys->ctx;
	struct memfs *fs = proc->fs;
	struct memfs_open *open;

	*out = fs;
	pthread_mutex_lock(&fs->lock);
	fs->call_name = call_names[call];
	open = open_of(fs, fd);
	fs->call_path = open != NULL ? open->path : "";
	return may_go_on(fs, proc, call);
}

int memfs_leave(struct memfs *fs, int r)
{
	if (r >= 0 && fs->err_after < 0)
		r = fs->err_after;
	fs->err_after = 0;
	pthread_mutex_unlock(&fs->lock);
	return r;
}

int memfs_change_begins(struct memfs *fs)
{
	if (fs->cur->is_other)
		return 0;
	if (fs->stop_armed && fs->stop_left-- == 0) {
		fs->stop_armed = false;
		fs->power = fs->stop_how;
		note_hit(fs);
		return -EIO;
	}
	fs->nr_changes++;
	return 0;
}

/* ---- descriptors ---- */

int memfs_fd_new(struct memfs *fs, struct inode *node, int flags)
{
	struct memfs_open *open = memfs_grow(NULL, NULL, 1, sizeof(*open));
	size_t len = strlen(fs->call_path);

	*open = (struct memfs_open){ .proc = fs->cur,
		.node = node,
		.flags = flags,
		.errors_seen = node->sync_errors };
	snprintf(open->path, sizeof(open->path), "%s",
	    fs->call_path + (len >= MEMFS_SHOWN ? len - MEMFS_SHOWN + 1 : 0));
	node->opens++;
	inode_get(node);
	fs->fds = memfs_grow(fs->fds, &fs->fds_room, fs->nr_fds + 1,
	    sizeof(*fs->fds));
	fs->fds[fs->nr_fds] = open;
	if (!fs->cur->is_other)
		fs->nr_open++;
	return fs->first_fd + (int)fs->nr_fds++;
}

int memfs_fd_get(struct memfs *fs, int fd, struct memfs_open **open)
{
	int i = fd - fs->first_fd;

	if (fd < fs->first_fd || (size_t)i >= fs->nr_fds ||
	    fs->fds[i] == NULL || fs->fds[i]->proc != fs->cur) {
		if (fd >= fs->first_live_fd && !fs->cur->is_other)
			fs->bad_fds++;
		return -EBADF;
	}
	*open = fs->fds[i];
	if ((*open)->is_dead)
		return -EIO;
	return (*open)->node->mnt->dead;
}

void memfs_fd_drop(struct memfs *fs, size_t index)
{
	struct memfs_open *open = fs->fds[index];
	struct inode *node = open->node;

	if (!open->proc->is_other)
		fs->nr_open--;
	if (node->locker == open)
		node->locker = NULL;
	if (!open->is_dead) {
		node->opens--;
		inode_settle(node);
	}
	inode_put(node);
	free(open);
	fs->fds[index] = NULL;
}

/* The caller still unwinds, so a later use of these descriptors is no error. */
void memfs_drop_all_fds(struct memfs *fs, struct memfs_proc *only)
{
	struct sys_dir *dir;
	bool any_left = false;
	size_t i;

	for (i = 0; i < fs->nr_fds; i++) {
		if (fs->fds[i] == NULL)
			continue;
		if (only == NULL || fs->fds[i]->proc == only)
			memfs_fd_drop(fs, i);
		else
			any_left = true;
	}
	TAILQ_FOREACH(dir, &fs->dirs, link) {
		if (dir->node != NULL && (only == NULL || dir->proc == only))
			memfs_dir_strand(fs, dir);
	}
	fs->first_live_fd = fs->first_fd + (int)fs->nr_fds;
	if (any_left)
		return;
	fs->first_fd += (int)fs->nr_fds;
	fs->nr_fds = 0;
}

/* ---- the clock ---- */

int64_t memfs_file_time(struct memfs *fs)
{
	return fs->wall - fs->wall % fs->tick;
}

static int64_t now_wall(const struct sys *sys)
{
	struct memfs *fs = ((struct memfs_proc *)sys->ctx)->fs;
	int64_t now;

	pthread_mutex_lock(&fs->lock);
	now = fs->wall;
	pthread_mutex_unlock(&fs->lock);
	return now;
}

static int64_t now_mono(const struct sys *sys)
{
	struct memfs *fs = ((struct memfs_proc *)sys->ctx)->fs;
	int64_t now;

	pthread_mutex_lock(&fs->lock);
	now = fs->mono;
	pthread_mutex_unlock(&fs->lock);
	return now;
}

static int64_t now_boot(const struct sys *sys)
{
	return now_mono(sys) - ((struct memfs_proc *)sys->ctx)->fs->booted;
}

static void sleep_ns(const struct sys *sys, int64_t ns)
{
	memfs_advance(((struct memfs_proc *)sys->ctx)->fs, ns > 0 ? ns : 0);
}

void memfs_advance(struct memfs *fs, int64_t ns)
{
	pthread_mutex_lock(&fs->lock);
	fs->wall += ns;
	fs->mono += ns;
	pthread_mutex_unlock(&fs->lock);
}

void memfs_step_clock(struct memfs *fs, int64_t ns)
{
	pthread_mutex_lock(&fs->lock);
	fs->wall += ns;
	pthread_mutex_unlock(&fs->lock);
}

/* ---- making a memfs ---- */

static void init_proc(struct memfs *fs, struct memfs_proc *proc, bool other)
{
	proc->fs = fs;
	proc->is_other = other;
	proc->sys.ctx = proc;
	memfs_names_table(&proc->sys);
	memfs_inodes_table(&proc->sys);
	memfs_fds_table(&proc->sys);
	proc->sys.now_wall = now_wall;
	proc->sys.now_mono = now_mono;
	proc->sys.now_boot = now_boot;
	proc->sys.sleep_ns = sleep_ns;
}

struct memfs *memfs_new(void)
{
	struct memfs *fs = memfs_grow(NULL, NULL, 1, sizeof(*fs));

	pthread_mutex_init(&fs->lock, NULL);
	TAILQ_INIT(&fs->dirs);
	init_proc(fs, &fs->proc[0], false);
	init_proc(fs, &fs->proc[1], true);
	fs->cur = &fs->proc[1];
	fs->wall = 1700000000LL * 1000000000LL;
	fs->mono = 1000000000LL;
	fs->step = 1000;
	fs->tick = 1;
	fs->first_fd = fs->first_live_fd = MEMFS_FIRST_FD;
	fs->max_fds = UINT32_MAX;
	fs->next_mount_id = 0x80000001ULL;
	memfs_boots(fs);
	memfs_mount_new(fs, NULL);
	return fs;
}

void memfs_free(struct memfs *fs)
{
	struct sys_dir *dir;
	unsigned i;

	if (fs == NULL)
		return;
	memfs_drop_all_fds(fs, NULL);
	while ((dir = TAILQ_FIRST(&fs->dirs)) != NULL)
		memfs_dir_free(fs, dir);
	for (i = fs->nr_mounts; i-- > 0;) {
		changes_cut(fs->mounts[i], fs->mounts[i]->nr_log);
		inode_put(fs->mounts[i]->root);
	}
	for (i = fs->nr_mounts; i-- > 0;) {
		free(fs->mounts[i]->log);
		free(fs->mounts[i]->free_inos);
		free(fs->mounts[i]);
	}
	free(fs->fds);
	pthread_mutex_destroy(&fs->lock);
	free(fs);
}

const struct sys *memfs_sys(struct memfs *fs)
{
	return &fs->proc[0].sys;
}

const struct sys *memfs_other(struct memfs *fs)
{
	return &fs->proc[1].sys;
}
