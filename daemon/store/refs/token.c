/*
 * Ref locks as hard links of a token file, because the common inode then tells
 * recovery which locks are refd's.
 *
 * Happy path:
 *	init		create <id>.0 in stage/, empty
 *	lock		link <id>.0 to <ref>.lock, one system call
 *	unlock		unlink <ref>.lock
 *	done		unlink <id>.0
 *
 * Failure modes:
 *	a parent directory is missing, or pruned between its making and the
 *	link: made again, up to three times, then -ENOENT
 *	the file has the maximum of links: <id>.1, <id>.2, ...
 *	a crash: token and locks survive together, and recovery recognises them
 *	by their common inode
 *	a power loss may keep a lock and lose its token: a start with rows from
 *	before the power loss recognises the lock by its mode and its size
 */
#include "daemon/store/refs/token.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/limits.h"

#define LOCK_SUFFIX ".lock"
#define PRUNE_TRIES 3
#define ID_DIGITS   16

void token_name(char name[TOKEN_NAME_MAX], uint64_t id, unsigned k)
{
	snprintf(name, TOKEN_NAME_MAX, "%016llx.%u", (unsigned long long)id, k);
}

void token_value_name(char name[TOKEN_NAME_MAX], uint64_t id, unsigned n)
{
	snprintf(name, TOKEN_NAME_MAX, "%016llx-%u", (unsigned long long)id, n);
}

/* Makes the name again and compares, because an id and k have exactly one
 * name. */
int token_parse_name(const char *name, uint64_t *id, unsigned *k)
{
	char again[TOKEN_NAME_MAX];
	unsigned long long parsed_id;
	unsigned long parsed_k;
	char *end;

	if (strspn(name, "0123456789abcdef") != ID_DIGITS ||
	    name[ID_DIGITS] != '.')
		return -1;
	parsed_id = strtoull(name, NULL, 16);
	parsed_k = strtoul(name + ID_DIGITS + 1, &end, 10);
	if (parsed_k > UINT32_MAX)
		return -1;
	token_name(again, parsed_id, (unsigned)parsed_k);
	if (strcmp(again, name) != 0)
		return -1;
	*id = parsed_id;
	*k = (unsigned)parsed_k;
	return 0;
}

int token_lock_path(char out[REFD_PATH_MAX], const char *path)
{
	size_t len = strlen(path);

	if (len + sizeof(LOCK_SUFFIX) > REFD_PATH_MAX)
		return -ENAMETOOLONG;
	memcpy(out, path, len);
	memcpy(out + len, LOCK_SUFFIX, sizeof(LOCK_SUFFIX));
	return 0;
}

static int make_next_file(struct token *tok)
{
	char name[TOKEN_NAME_MAX];
	int fd;

	token_name(name, tok->id, tok->nr_files);
	fd = SYS(tok->sys, openat, tok->stage_fd, name,
	    O_WRONLY | O_CREAT | O_EXCL, TOKEN_MODE);
	if (fd < 0)
		return fd;
	/* Empty, so close() has nothing to fail at. */
	SYS(tok->sys, close, fd);
	memcpy(tok->name, name, sizeof(name));
	tok->nr_files++;
	tok->links = 0;
	return 0;
}

int token_init(struct token *tok, const struct sys *sys, int stage_fd,
    uint64_t id)
{
	*tok = (struct token){ .sys = sys, .stage_fd = stage_fd, .id = id };
	return make_next_file(tok);
}

/* The link may have failed after it happened. Such a lock counts as taken,
 * because nobody would know the lock without the token, and nobody would remove
 * it. */
static int make_link(const struct token *tok, int dirfd, const char *lock)
{
	struct sys_stat own, there;
	int r = SYS(tok->sys, linkat, tok->stage_fd, tok->name, dirfd, lock);

	if (sys_may_have_happened(r) &&
	    SYS(tok->sys, lstatat, tok->stage_fd, tok->name, &own) == 0 &&
	    SYS(tok->sys, lstatat, dirfd, lock, &there) == 0 &&
	    there.ino == own.ino && there.dev == own.dev)
		return 0;
	return r;
}

/* Links once, and goes on with the next file if the file is full. */
static int link_once(struct token *tok, int dirfd, const char *lock)
{
	int r;

	if (tok->links >= TOKEN_LINKS_MAX && (r = make_next_file(tok)) < 0)
		return r;
	r = make_link(tok, dirfd, lock);
	if (r == -EMLINK && tok->links > 0) {
		r = make_next_file(tok);
		if (r < 0)
			return r;
		r = make_link(tok, dirfd, lock);
	}
	if (r == 0)
		tok->links++;
	return r;
}

int token_lock(struct token *tok, int dirfd, const char *path, mode_t dir_mode)
{
	char lock[REFD_PATH_MAX];
	unsigned tries;
	int r;

	r = token_lock_path(lock, path);
	if (r < 0)
		return r;
	tok->made_dirs = 0;
	r = link_once(tok, dirfd, lock);
	for (tries = 0; r == -ENOENT && tries < PRUNE_TRIES; tries++) {
		r = sys_make_parents(tok->sys, dirfd, lock, dir_mode);
		if (r < 0)
			continue;
		tok->made_dirs += (unsigned)r;
		r = link_once(tok, dirfd, lock);
	}
	return r;
}

int token_unlock(struct token *tok, int dirfd, const char *path)
{
	char lock[REFD_PATH_MAX];
	int r;

	r = token_lock_path(lock, path);
	if (r == 0)
		r = SYS(tok->sys, unlinkat, dirfd, lock);
	return r == -ENOENT ? 0 : r;
}

int token_locked_at(struct token *tok, int64_t *ctime_ns)
{
	struct sys_stat st;
	int r;

	if (tok->nr_files == 0)
		return -ENOENT;
	r = SYS(tok->sys, lstatat, tok->stage_fd, tok->name, &st);
	if (r == 0)
		*ctime_ns = st.ctime_ns;
	return r;
}

int token_done(struct token *tok)
{
	char name[TOKEN_NAME_MAX];
	int err, r = 0;

	while (tok->nr_files > 0) {
		token_name(name, tok->id, --tok->nr_files);
		err = SYS(tok->sys, unlinkat, tok->stage_fd, name);
		if (err < 0 && err != -ENOENT)
			r = err;
	}
	tok->links = 0;
	return r;
}
