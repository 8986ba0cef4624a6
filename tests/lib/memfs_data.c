/*
 * The content of a file: in memory (NOW), on the disk (DISK), and the
 * differences page by page.
 *
 * A written page is dirty until a sync copies the page to DISK. If the sync
 * fails, the page becomes a ghost: the kernel regards the page as clean, so no
 * later sync writes it. Memory and disk then differ until the page is dropped.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/memfs_internal.h"

#define SECTOR 512

static size_t pages_of(size_t size)
{
	return (size + MEMFS_PAGE - 1) / MEMFS_PAGE;
}

/* New bytes are zeros, even if there were other bytes before. */
static void resize(struct bytes *b, size_t len)
{
	b->p = memfs_grow(b->p, &b->room, len, 1);
	if (len > b->len)
		memset(b->p + b->len, 0, len - b->len);
	b->len = len;
}

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

size_t data_read(const struct inode *node, void *buf, size_t len, size_t off)
{
	if (off >= node->now.len || len == 0)
		return 0;
	len = smaller(len, node->now.len - off);
	memcpy(buf, node->now.p + off, len);
	return len;
}

size_t data_read_disk(const struct inode *node, void *buf, size_t len,
    size_t off)
{
	size_t there;

	if (node->data_dirty)
		return data_read(node, buf, len, off);
	if (off >= node->now.len || len == 0)
		return 0;
	len = smaller(len, node->now.len - off);
	memset(buf, 0, len);
	there = off < node->disk.len ? smaller(len, node->disk.len - off) : 0;
	if (there > 0)
		memcpy(buf, node->disk.p + off, there);
	return len;
}

static void copy(struct bytes *to, const struct bytes *from, size_t len)
{
	if (len > 0)
		memcpy(to->p, from->p, len);
}

/* Updates the mount's list of files that a power loss would change. */
static void relist(struct inode *node)
{
	bool belongs = node->data_dirty || node->time_dirty || node->has_ghosts;

	if (belongs && !node->is_listed)
		TAILQ_INSERT_TAIL(&node->mnt->dirty, node, dirty_link);
	if (!belongs && node->is_listed)
		TAILQ_REMOVE(&node->mnt->dirty, node, dirty_link);
	node->is_listed = belongs;
}

static void mark_dirty(struct inode *node, bool data)
{
	node->time_dirty = true;
	node->data_dirty = node->data_dirty || data;
	relist(node);
}

static void mark_clean(struct inode *node, bool with_time)
{
	node->data_dirty = false;
	if (with_time) {
		node->time_dirty = false;
		node->disk_mtime = node->mtime;
		node->disk_ctime = node->ctime;
	}
	relist(node);
}

void data_touch(struct inode *node)
{
	node->mtime = node->ctime = memfs_file_time(node->mnt->fs);
	if (S_ISREG(node->mode))
		mark_dirty(node, false);
}

/* Takes blocks for the pages of [OFF, OFF + LEN) until the room ends. Returns
 * the number of bytes with a block. */
static size_t take_blocks(struct inode *node, size_t len, size_t off)
{
	struct memfs_mount *mnt = node->mnt;
	size_t page, end = pages_of(off + len);

	node->pages = memfs_grow(node->pages, &node->nr_pages, end, 1);
	for (page = off / MEMFS_PAGE; page < end; page++) {
		if (node->pages[page] & PAGE_TAKEN)
			continue;
		if (mnt->has_block_limit && mnt->blocks_left <= 0)
			break;
		node->pages[page] |= PAGE_TAKEN;
		node->nr_taken++;
		mnt->blocks_left--;
	}
	if (page * MEMFS_PAGE <= off)
		return 0;
	return smaller(len, page * MEMFS_PAGE - off);
}

ssize_t data_write(struct inode *node, const void *buf, size_t len, size_t off)
{
	size_t page;

	if (len == 0)
		return 0;
	if (off > MEMFS_SIZE_MAX || len > MEMFS_SIZE_MAX - off)
		return -EFBIG;
	len = take_blocks(node, len, off);
	if (len == 0)
		return -ENOSPC;
	if (off + len > node->now.len)
		resize(&node->now, off + len);
	memcpy(node->now.p + off, buf, len);
	for (page = off / MEMFS_PAGE; page < pages_of(off + len); page++) {
		node->pages[page] |= PAGE_DIRTY;
		node->pages[page] &= (unsigned char)~PAGE_GHOST;
	}
	data_touch(node);
	mark_dirty(node, true);
	return (ssize_t)len;
}

void data_truncate(struct inode *node, size_t size)
{
	size_t page;

	for (page = pages_of(size); page < node->nr_pages; page++) {
		if (node->pages[page] & PAGE_TAKEN) {
			node->nr_taken--;
			node->mnt->blocks_left++;
		}
		node->pages[page] = 0;
	}
	node->cut_to = smaller(node->cut_to, size);
	resize(&node->now, size);
	data_touch(node);
	mark_dirty(node, true);
}

/* Size of the content on the disk that was not cut off later. */
static size_t base_of(const struct inode *node)
{
	return smaller(node->disk.len, node->cut_to);
}

void data_sync(struct inode *node, bool with_time)
{
	size_t page, off;

	if (node->data_dirty) {
		resize(&node->disk, base_of(node));
		resize(&node->disk, node->now.len);
		for (page = 0; page < pages_of(node->now.len); page++) {
			if (page >= node->nr_pages ||
			    !(node->pages[page] & PAGE_DIRTY))
				continue;
			off = page * MEMFS_PAGE;
			memcpy(node->disk.p + off, node->now.p + off,
			    smaller(MEMFS_PAGE, node->now.len - off));
			node->pages[page] &= (unsigned char)~PAGE_DIRTY;
		}
		node->cut_to = SIZE_MAX;
	}
	if (S_ISREG(node->mode))
		mark_clean(node, with_time);
}

/* The file stays in the list of dirty files, because its size is not on the
 * disk. */
void data_sync_fails(struct inode *node)
{
	size_t page;

	for (page = 0; page < node->nr_pages; page++) {
		if (node->pages[page] & PAGE_DIRTY) {
			node->pages[page] &= (unsigned char)~PAGE_DIRTY;
			node->pages[page] |= PAGE_GHOST;
			node->has_ghosts = true;
		}
	}
	node->sync_errors++;
	relist(node);
}

/* Ghosts become the content of the disk, and zeros beyond its end. */
static void forget_ghosts(struct inode *node)
{
	size_t page, i, base = base_of(node);

	for (page = 0; page < node->nr_pages; page++) {
		if (!(node->pages[page] & PAGE_GHOST))
			continue;
		for (i = page * MEMFS_PAGE;
		    i < (page + 1) * MEMFS_PAGE && i < node->now.len; i++)
			node->now.p[i] = i < base ? node->disk.p[i] : 0;
		node->pages[page] &= (unsigned char)~PAGE_GHOST;
	}
	node->has_ghosts = false;
}

void data_drop_clean(struct inode *node)
{
	forget_ghosts(node);
	relist(node);
}

/* ---- after a power loss ---- */

/* splitmix64 (Steele, Lea, Flood 2014). */
uint64_t memfs_random(uint64_t *rng)
{
	uint64_t z = *rng += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

enum fate { NOTHING, CUT_SHORT, NULS, TORN, SECTORS, ALL };

static enum fate fate_of(const struct inode *node, enum memfs_data how,
    uint64_t *rng)
{
	switch (how) {
	case MEMFS_DATA_NONE:
		return NOTHING;
	case MEMFS_DATA_ALL:
		return ALL;
	case MEMFS_DATA_NULS:
		return NULS;
	case MEMFS_DATA_TORN:
		return node->now.len > base_of(node) ? TORN : SECTORS;
	case MEMFS_DATA_MIXED:
		break;
	}
	return (enum fate)(memfs_random(rng) % (ALL + 1));
}

/* Some sectors of NOW did not reach the disk: they get their content on the
 * disk. */
static void mix_sectors(struct inode *node, uint64_t *rng)
{
	size_t off, i, base = base_of(node);

	for (off = 0; off < node->now.len; off += SECTOR) {
		if (memfs_random(rng) & 1)
			continue;
		for (i = off; i < off + SECTOR && i < node->now.len; i++)
			node->now.p[i] = i < base ? node->disk.p[i] : 0;
	}
}

/* An interrupted append: at a random place the file ends, or NULs begin. */
static void tear(struct inode *node, uint64_t *rng)
{
	size_t base = base_of(node), size = node->now.len, at = base;

	if (size > base)
		at += memfs_random(rng) % (size - base);
	if (size <= base)
		return;
	resize(&node->now, at);
	if (memfs_random(rng) & 1)
		resize(&node->now, size);
}

static void apply(struct inode *node, enum fate fate, uint64_t *rng)
{
	size_t base = base_of(node), size = node->now.len;

	switch (fate) {
	case NOTHING:
		resize(&node->now, node->disk.len);
		copy(&node->now, &node->disk, node->disk.len);
		break;
	case CUT_SHORT:
	case NULS:
		resize(&node->now, smaller(base, size));
		copy(&node->now, &node->disk, node->now.len);
		if (fate == NULS)
			resize(&node->now, size);
		break;
	case TORN:
		tear(node, rng);
		break;
	case SECTORS:
		mix_sectors(node, rng);
		break;
	case ALL:
		break;
	}
}

/* Sets blocks and flags after a power loss: all content is on the disk. */
static void recount(struct inode *node)
{
	size_t page, nr = pages_of(node->now.len);

	node->pages = memfs_grow(node->pages, &node->nr_pages, nr, 1);
	for (page = 0; page < node->nr_pages; page++)
		node->pages[page] = page < nr ? PAGE_TAKEN : 0;
	if (!node->is_gone)
		node->mnt->blocks_left += (int64_t)node->nr_taken - (int64_t)nr;
	node->nr_taken = nr;
}

void data_cut(struct inode *node, enum memfs_data how, uint64_t *rng)
{
	enum fate fate = fate_of(node, how, rng);
	bool is_old = fate == NOTHING;

	if (!node->data_dirty || (memfs_random(rng) & 1))
		forget_ghosts(node);
	if (node->data_dirty) {
		apply(node, fate, rng);
		recount(node);
		resize(&node->disk, node->now.len);
		copy(&node->disk, &node->now, node->now.len);
		node->cut_to = SIZE_MAX;
		node->has_ghosts = false;
	}
	if (!is_old && fate != ALL)
		is_old = memfs_random(rng) & 1;
	if (is_old) {
		node->mtime = node->disk_mtime;
		node->ctime = node->disk_ctime;
	}
	mark_clean(node, true);
}

void data_free(struct inode *node)
{
	node->has_ghosts = false;
	mark_clean(node, true);
	free(node->now.p);
	free(node->disk.p);
	free(node->pages);
}
