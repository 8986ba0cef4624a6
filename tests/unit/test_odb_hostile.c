/*
 * Proves that a file in the place of an object, a pack, an index or a list of
 * alternates, whether malformed, truncated during use or a FIFO, is never
 * waited for, believed or fatal (findings F2, F3).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/store/objects/pack.h"
#include "proto/lib/sha.h"
#include "tests/lib/odb_rig.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- hostile files ---- */

/* The path of the loose object REVISION of r. */
#define PATH_OF                                                                \
	"path() { p=$(git -C r rev-parse $1); echo "                           \
	"r/objects/${p%%${p#??}}/${p#??}; } && "

CASE(.setup = odb_rig_setup, .teardown = odb_rig_teardown, .seconds = 120);

TEST(a_corrupt_object_is_an_error)
{
	static const char *const commands[] = {
		"echo garbage >$f",
		": >$f",
		"rm -f $f; mkfifo $f",
		"rm -f $f; mkdir $f",
		"cp $f g; rm -f $f; ln -s $PWD/g $f",
		"head -c 5 $f >g; cp g $f",
		"printf 'commit 00\\0' | zlib >$f",
		"printf 'commit -1\\0' | zlib >$f",
		"printf 'commit 99999999999999999999\\0' | zlib >$f",
		"printf 'commit 1' | zlib >$f",
		"printf 'ofs-delta 1\\0' | zlib >$f",
		/* A long stream of empty blocks inflates to nothing. */
		"(printf '\\x78\\x01'; yes \"$(printf 'x')\" | head -c 400000 "
		"| tr 'x\\n' '\\000\\377') >$f",
	};
	size_t i;

	odb_rig_make_objects();
	tmp_run("cp -r r keep");
	for (i = 0; i < COUNT(commands); i++) {
		tmp_run("zlib() { python3 -c 'import sys, zlib; "
			"sys.stdout.buffer.write(zlib.compress("
			"sys.stdin.buffer.read()))'; } && " PATH_OF
			"f=$(path x) && chmod +w $f && %s",
		    commands[i]);
		odb_rig_open("r");
		ck_assert_msg(odb_rig_type("refs/heads/x") == OBJECT_ERROR,
		    "%s", commands[i]);
		tmp_run("rm -rf r && cp -r keep r");
	}
	/* An object with an intact second copy is found in the second place. */
	tmp_run(
	    PATH_OF "f=$(path x) && git -C r repack -q -a && chmod +w $f && "
		    "echo garbage >$f");
	odb_rig_open("r");
	ck_assert_int_eq(odb_rig_type("refs/heads/x"), OBJECT_COMMIT);
}

static const char *const suffixes[] = { "idx", "pack" };

/* F2: while the files are open, every file is cut to every possible size. A
 * mapping of the files would end the process. */
TEST(a_pack_is_truncated_meanwhile)
{
	struct refd_oid oid;
	char *out, want[32], why[ODB_FAULT_TEXT];
	enum object_type type;
	long size, at;
	size_t i;

	odb_rig_make_objects();
	tmp_run("git -C r repack -q -a -d && chmod -R +w r && cp -r r keep");
	oid = odb_rig_named("refs/heads/x");
	for (i = 0; i < COUNT(suffixes); i++) {
		out =
		    tmp_output("stat -c %%s r/objects/pack/*.%s", suffixes[i]);
		size = strtol(out, NULL, 10);
		free(out);
		snprintf(want, sizeof(want), "%s: damaged", suffixes[i]);
		for (at = size - 1; at >= 0; at -= at > 200 ? 41 : 7) {
			odb_rig_open("r");
			ck_assert_int_eq(odb_type(odb_rig, &oid),
			    OBJECT_COMMIT);
			tmp_run("truncate -s %ld r/objects/pack/*.%s", at,
			    suffixes[i]);
			type = odb_type(odb_rig, &oid);
			ck_assert(
			    type == OBJECT_COMMIT || type == OBJECT_ERROR);
			odb_rig_open("r");
			ck_assert_int_eq(odb_type(odb_rig, &oid), OBJECT_ERROR);
			ck_assert_int_eq(odb_fault(odb_rig, &oid, why),
			    -EBADMSG);
			ck_assert_ptr_nonnull(strstr(why, ": pack/pack-"));
			ck_assert_str_eq(strrchr(why, '.') + 1, want);
			tmp_run("cp keep/objects/pack/* r/objects/pack/");
		}
		/* The file is complete again, though the directory did not
		 * change. */
		ck_assert_int_eq(odb_type(odb_rig, &oid), OBJECT_COMMIT);
	}
}

TEST(no_fifo_in_the_place_of_a_pack)
{
	struct refd_oid oid;
	size_t i;

	odb_rig_make_objects();
	tmp_run("git -C r repack -q -a -d && cp -r r keep");
	oid = odb_rig_named("refs/heads/x");
	for (i = 0; i < COUNT(suffixes); i++) {
		tmp_run("cd r/objects/pack && f=$(echo *.%s) && rm -f $f && "
			"mkfifo $f",
		    suffixes[i]);
		odb_rig_open("r");
		ck_assert_int_eq(odb_type(odb_rig, &oid), OBJECT_ERROR);
		tmp_run("rm -rf r && cp -r keep r");
	}
}

/* Inverts every 3rd byte of an index and a pack with deltas, and makes bytes of
 * numbers large. The only requirement is that the reader returns. */
TEST(bytes_are_turned_over, .times = 2)
{
	struct refd_oid oids[8], to;
	char path[256], *names, *out, *all, *rest, *line;
	unsigned char *bytes, was;
	size_t i, size, at, nr = 0;
	struct stat st;
	int fd;

	tmp_run(ODB_RIG_HISTORY
	    "cd r && git -c repack.useDeltaBaseOffset=%s repack -q "
	    "-a -d -f && chmod +w .git/objects/pack/*",
	    _i == 0 ? "true" : "false");
	all = tmp_output("cd r && git verify-pack -v .git/objects/pack/*.idx | "
			 "grep -E '^[0-9a-f]{40}.* [1-9] [0-9a-f]{40}$' | "
			 "cut -c1-40 | head -n 6; git rev-parse t3 HEAD");
	rest = all;
	while ((line = strsep(&rest, "\n")) != NULL && nr < 8 && *line)
		oids[nr++] = odb_rig_oid(line);
	free(all);
	for (i = 0; i < COUNT(suffixes); i++) {
		names =
		    tmp_output("echo r/.git/objects/pack/*.%s", suffixes[i]);
		names[strcspn(names, "\n")] = '\0';
		snprintf(path, sizeof(path), "%s/%s", tmp_root, names);
		free(names);
		fd = open(path, O_RDWR);
		ck_assert_int_ge(fd, 0);
		ck_assert_int_eq(fstat(fd, &st), 0);
		size = (size_t)st.st_size;
		bytes = malloc(size);
		ck_assert_int_eq(pread(fd, bytes, size, 0), (ssize_t)size);
		odb_rig_open("r/.git");
		for (at = 0; at < size; at += at < 64 ? 1 : 3) {
			was = bytes[at];
			bytes[at] = at % 2 == 0 ? 0xff : (unsigned char)~was;
			ck_assert_int_eq(pwrite(fd, bytes + at, 1, (off_t)at),
			    1);
			if (at % 16 == 0)
				odb_rig_open("r/.git");
			odb_type(odb_rig, &oids[at % nr]);
			if (at % 5 == 0)
				odb_peel(odb_rig, &oids[nr - 2], &to);
			bytes[at] = was;
			ck_assert_int_eq(pwrite(fd, bytes + at, 1, (off_t)at),
			    1);
		}
		odb_rig_open("r/.git");
		for (at = 0; at < nr; at++)
			ck_assert_int_lt(odb_type(odb_rig, &oids[at]),
			    OBJECT_ERROR);
		free(bytes);
		close(fd);
	}
	out = tmp_output("git -C r fsck 2>&1 | grep -c error");
	ck_assert_str_eq(out, "0\n");
	free(out);
}

/* ---- packs made by hand ---- */

struct made_pack {
	uint8_t pack[4096], idx[8192];
	size_t pack_len, idx_len;
	uint32_t nr;
	struct {
		struct refd_oid oid;
		uint32_t offset;
	} all[16];
};

static void put32(uint8_t *p, uint32_t n)
{
	p[0] = (uint8_t)(n >> 24);
	p[1] = (uint8_t)(n >> 16);
	p[2] = (uint8_t)(n >> 8);
	p[3] = (uint8_t)n;
}

static void made_pack_begin(struct made_pack *h)
{
	memset(h, 0, sizeof(*h));
	memcpy(h->pack, "PACK\0\0\0\2", 8);
	h->pack_len = 12;
}

static struct refd_oid made_pack_oid(int nth)
{
	struct refd_oid oid = { 0 };

	memset(oid.bytes, 0x11 * nth, REFD_SHA1_BYTES);
	return oid;
}

/* Objects come in the order of their ids. */
static void made_pack_add(struct made_pack *h, const void *entry, size_t len)
{
	h->all[h->nr].oid = made_pack_oid((int)h->nr + 1);
	h->all[h->nr++].offset = (uint32_t)h->pack_len;
	memcpy(h->pack + h->pack_len, entry, len);
	h->pack_len += len;
}

static void sum(uint8_t *bytes, size_t *len)
{
	struct refd_oid oid;
	struct sha sha;

	sha_init(&sha, REFD_FORMAT_SHA1);
	sha_add(&sha, bytes, *len);
	sha_done(&sha, oid.bytes);
	memcpy(bytes + *len, oid.bytes, REFD_SHA1_BYTES);
	*len += REFD_SHA1_BYTES;
}

static void made_pack_end(struct made_pack *h)
{
	uint8_t *p = h->idx + 8;
	uint32_t i, b;

	put32(h->pack + 8, h->nr);
	sum(h->pack, &h->pack_len);
	memcpy(h->idx, "\377tOc\0\0\0\2", 8);
	for (b = 0; b < 256; b++, p += 4) {
		for (i = 0; i < h->nr && h->all[i].oid.bytes[0] <= b; i++)
			continue;
		put32(p, i);
	}
	for (i = 0; i < h->nr; i++, p += REFD_SHA1_BYTES)
		memcpy(p, h->all[i].oid.bytes, REFD_SHA1_BYTES);
	p += 4 * h->nr;
	for (i = 0; i < h->nr; i++, p += 4)
		put32(p, h->all[i].offset);
	memcpy(p, h->pack + h->pack_len - REFD_SHA1_BYTES, REFD_SHA1_BYTES);
	h->idx_len = (size_t)(p + REFD_SHA1_BYTES - h->idx);
	sum(h->idx, &h->idx_len);
}

static enum object_type made_pack_type(const struct made_pack *h, int nth)
{
	struct refd_oid oid = made_pack_oid(nth);

	tmp_put_bytes("r/objects/pack/pack-1.pack", h->pack, h->pack_len);
	tmp_put_bytes("r/objects/pack/pack-1.idx", h->idx, h->idx_len);
	odb_rig_open("r");
	return odb_type(odb_rig, &oid);
}

static size_t made_pack_offset(const struct made_pack *h, int nth)
{
	return 8 + 1024 + 24 * h->nr + 4 * (size_t)(nth - 1);
}

TEST(deltas_without_an_end)
{
	uint8_t ref[21] = { 0x70 }, ofs[2] = { 0x60, 0 };
	struct made_pack h;

	tmp_run("git init -q --bare r");
	made_pack_begin(&h);
	made_pack_add(&h, "\x10", 1); /* a commit */
	memset(ref + 1, 0x33, 20);
	made_pack_add(&h, ref, sizeof(ref)); /* 2: on 3 */
	memset(ref + 1, 0x22, 20);
	made_pack_add(&h, ref, sizeof(ref)); /* 3: on 2 */
	memset(ref + 1, 0x44, 20);
	made_pack_add(&h, ref, sizeof(ref)); /* 4: on 4 */
	made_pack_add(&h, ofs, sizeof(ofs)); /* 5: on 5 */
	ofs[1] = 0x7f;
	made_pack_add(&h, ofs, sizeof(ofs)); /* 6: before the pack begins */
	memset(ref + 1, 0x99, 20);
	made_pack_add(&h, ref, sizeof(ref)); /* 7: on a missing object */
	memset(ref + 1, 0x11, 20);
	made_pack_add(&h, ref, sizeof(ref)); /* 8: on 1 */
	made_pack_add(&h, "\x50", 1);        /* 9: of an unknown type */
	made_pack_add(&h, "\x60\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 11);
	made_pack_add(&h, "\x9f\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 11);
	made_pack_end(&h);
	ck_assert_int_eq(made_pack_type(&h, 1), OBJECT_COMMIT);
	ck_assert_int_eq(made_pack_type(&h, 8), OBJECT_COMMIT);
	ck_assert_int_eq(made_pack_type(&h, 2), OBJECT_ERROR);
	ck_assert_int_eq(made_pack_type(&h, 3), OBJECT_ERROR);
	ck_assert_int_eq(made_pack_type(&h, 4), OBJECT_ERROR);
	ck_assert_int_eq(made_pack_type(&h, 5), OBJECT_ERROR);
	ck_assert_int_eq(made_pack_type(&h, 6), OBJECT_ERROR);
	ck_assert_int_eq(made_pack_type(&h, 7), OBJECT_ERROR);
	ck_assert_int_eq(made_pack_type(&h, 9), OBJECT_ERROR);
	ck_assert_int_eq(made_pack_type(&h, 10), OBJECT_ERROR);
	ck_assert_int_eq(made_pack_type(&h, 11), OBJECT_ERROR);
	ck_assert_int_eq(made_pack_type(&h, 14), OBJECT_ABSENT);
}

/* Each step of a chain counts, because admission bounds its turns by the
 * work. */
TEST(long_chains_are_work)
{
	uint8_t ref[21] = { 0x70 };
	struct made_pack h;

	tmp_run("git init -q --bare r");
	made_pack_begin(&h);
	memset(ref + 1, 0x22, 20);
	made_pack_add(&h, ref, sizeof(ref)); /* 1: on 2 */
	memset(ref + 1, 0x11, 20);
	made_pack_add(&h, ref, sizeof(ref)); /* 2: on 1 */
	made_pack_end(&h);
	ck_assert_int_eq(made_pack_type(&h, 1), OBJECT_ERROR);
	ck_assert_uint_ge(odb_take_work(odb_rig), PACK_CHAIN / 8);
}

TEST(indexes_that_lie)
{
	struct made_pack good, h;
	uint32_t bad[] = { 0, 11, 0x7fffffff, 0x80000000, 0x80000001,
		0xffffffff };
	size_t i;

	tmp_run("git init -q --bare r");
	made_pack_begin(&good);
	made_pack_add(&good, "\x10", 1);
	made_pack_add(&good, "\x20", 1);
	made_pack_add(&good, "\x30", 1);
	made_pack_end(&good);
	ck_assert_int_eq(made_pack_type(&good, 2), OBJECT_TREE);
	for (i = 0; i < COUNT(bad); i++) {
		h = good;
		put32(h.idx + made_pack_offset(&h, 2), bad[i]);
		ck_assert_int_eq(made_pack_type(&h, 2), OBJECT_ERROR);
		ck_assert_int_eq(made_pack_type(&h, 3), OBJECT_BLOB);
	}
	/* A decreasing fan-out; a fan-out beyond the table. */
	h = good;
	put32(h.idx + 8 + 4 * 0x10, 3);
	put32(h.idx + 8 + 4 * 0x11, 1);
	ck_assert_int_eq(made_pack_type(&h, 2), OBJECT_ERROR);
	h = good;
	for (i = 0x33; i < 256; i++)
		put32(h.idx + 8 + 4 * i, 0xffffffff);
	ck_assert_int_eq(made_pack_type(&h, 3), OBJECT_ERROR);
	/* A wrong version; a wrong check sum of the pack; a wrong number of
	 * objects. */
	h = good;
	h.idx[7] = 3;
	ck_assert_int_eq(made_pack_type(&h, 2), OBJECT_ERROR);
	h = good;
	h.pack[h.pack_len - 1] ^= 1;
	ck_assert_int_eq(made_pack_type(&h, 2), OBJECT_ERROR);
	h = good;
	h.pack[11]++;
	ck_assert_int_eq(made_pack_type(&h, 2), OBJECT_ERROR);
	/* An index without a pack is ignored, as in git. */
	made_pack_type(&good, 2);
	tmp_run("rm r/objects/pack/pack-1.pack");
	odb_rig_open("r");
	ck_assert_int_eq(odb_rig_type(
			     "2222222222222222222222222222222222222222"),
	    OBJECT_ABSENT);
}

/* More packs than the bound. An object in none of the packs read is not known
 * to be absent. */
TEST(too_many_packs)
{
	tmp_run("git init -q --bare r && cd r/objects/pack && seq -f "
		"'pack-%%.0f.idx' %d | xargs touch",
	    ODB_PACKS + 1);
	odb_rig_open("r");
	ck_assert_int_eq(odb_rig_type(
			     "2222222222222222222222222222222222222222"),
	    OBJECT_ERROR);
}

TEST(alternates_that_are_no_file)
{
	static const char *const commands[] = { "mkfifo $a", "mkdir $a",
		"ln -s ../../../list $a", "truncate -s 64G $a" };
	size_t i;

	tmp_put("list", "/etc\n");
	tmp_run("git init -q --bare a");
	for (i = 0; i < COUNT(commands); i++) {
		tmp_run("a=a/objects/info/alternates && rm -rf $a && %s",
		    commands[i]);
		ck_assert_msg(odb_rig_refresh_of("a") == -EINVAL, "%s",
		    commands[i]);
	}
	tmp_run("mv a/objects/info i && ln -s ../../i a/objects/info");
	ck_assert_int_eq(odb_rig_refresh_of("a"), -ELOOP);
	tmp_run("rm a/objects/info && mv a/objects/pack p && ln -s ../../p "
		"a/objects/pack");
	ck_assert_int_eq(odb_rig_refresh_of("a"), -ELOOP);
	tmp_run("rm a/objects/pack && mkdir a/objects/pack && ln -s x "
		"a/objects/pack/pack-1.idx");
	ck_assert_int_eq(odb_rig_refresh_of("a"), -ELOOP);
	tmp_run("mv a/objects o && ln -s ../o a/objects");
	ck_assert_int_eq(odb_rig_refresh_of("a"), -ELOOP);
}
