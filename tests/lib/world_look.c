#include "tests/lib/world.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum refd_object_format world_format(void)
{
	const char *name = getenv("REFD_TEST_FORMAT");
	enum refd_object_format format = REFD_FORMAT_SHA1;

	if (name != NULL && refd_object_format_from_name(name, &format) < 0)
		abort();
	return format;
}

static size_t hex_len(void)
{
	return refd_object_format_hex(world_format());
}

struct refd_oid world_oid(char c)
{
	struct refd_oid oid = { 0 };

	memset(oid.bytes, c == '0' ? 0 : c,
	    refd_object_format_bytes(world_format()));
	return oid;
}

char *world_text(const char *text)
{
	char hex[REFD_OID_MAX_HEX + 1], *out, *to;
	struct refd_oid oid;

	to = out = malloc(strlen(text) * REFD_OID_MAX_HEX + 1);
	if (out == NULL)
		abort();
	for (; *text != '\0'; text++) {
		if (*text != '@') {
			*to++ = *text;
			continue;
		}
		if (*++text == '*') {
			to =
			    stpcpy(to, refd_object_format_name(world_format()));
			continue;
		}
		oid = world_oid(*text);
		to = stpcpy(to, refd_oid_hex(&oid, world_format(), hex));
	}
	*to = '\0';
	return out;
}

void world_write(struct memfs *fs, const char *path, const char *text)
{
	char *whole = world_text(text);

	memfs_write(fs, path, whole);
	free(whole);
}

char *world_full_name(const char *name)
{
	char *full = NULL;

	if (asprintf(&full, "%s%s", name[0] == '@' ? "" : "refs/heads/",
		name + (name[0] == '@')) < 0)
		abort();
	return full;
}

static char letter_of(const char *hex)
{
	struct refd_oid oid;

	if (refd_oid_parse(hex, world_format(), &oid) < 0)
		return '?';
	return refd_oid_is_null(&oid) ? '0' : (char)oid.bytes[0];
}

static char *slurp(struct world *w, const char *path, size_t *len)
{
	char *buf;

	if (sys_read_file(memfs_other(w->fs), AT_FDCWD, path, 1 << 20, &buf,
		len) < 0)
		return NULL;
	return buf;
}

char world_ref(struct world *w, const char *name)
{
	char path[512], *buf, *at, *full = world_full_name(name), c;
	const size_t hex = hex_len();
	size_t len;

	snprintf(path, sizeof(path), WORLD_REPO "/%s", full);
	buf = slurp(w, path, &len);
	if (buf != NULL) {
		c = strncmp(buf, "ref: ", 5) == 0      ? '>' :
		    len == hex + 1 && buf[hex] == '\n' ? letter_of(buf) :
							 '?';
		free(buf);
		free(full);
		return c;
	}
	snprintf(path, sizeof(path), " %s\n", full);
	free(full);
	buf = slurp(w, WORLD_REPO "/packed-refs", &len);
	if (buf == NULL)
		return '0';
	at = strstr(buf, path);
	c = at == NULL || (size_t)(at - buf) < hex ? '0' : letter_of(at - hex);
	free(buf);
	return c;
}

int world_log_count(struct world *w, const char *name, char old, char new_c)
{
	char path[512], *buf, *line, *rest, *full = world_full_name(name);
	const size_t hex = hex_len();
	int count = 0;
	size_t len;

	snprintf(path, sizeof(path), WORLD_REPO "/logs/%s", full);
	free(full);
	buf = slurp(w, path, &len);
	if (buf == NULL)
		return 0;
	if (strlen(buf) != len || (len > 0 && buf[len - 1] != '\n'))
		count = -1;
	rest = buf;
	while (count >= 0 && (line = strsep(&rest, "\n")) != NULL) {
		if (line[0] == '\0')
			continue;
		if (strlen(line) < 2 * hex + 2 || line[hex] != ' ' ||
		    line[2 * hex + 1] != ' ')
			count = -1;
		else if (letter_of(line) == old &&
		    letter_of(line + hex + 1) == new_c)
			count++;
	}
	free(buf);
	return count;
}

bool world_has_log(struct world *w, const char *name)
{
	char path[512], *full = world_full_name(name);

	snprintf(path, sizeof(path), WORLD_REPO "/logs/%s", full);
	free(full);
	return memfs_exists(w->fs, path);
}

void world_stop_clock(struct world *w, bool stop)
{
	w->clock_stands = stop;
}

const char *world_litter(struct world *w)
{
	static char text[512];
	const struct sys *sys = memfs_other(w->fs);
	char *locks = memfs_list_locks(w->fs, WORLD_REPO);
	struct sys_dirent entry;
	struct sys_dir *dir;
	bool any = locks[0] != '\0';

	snprintf(text, sizeof(text), "locks are left: %s", locks);
	free(locks);
	if (any)
		return text;
	if (memfs_exists(w->fs, WORLD_REPO "/packed-refs.new"))
		return "packed-refs.new is left";
	if (SYS(sys, dir_open, AT_FDCWD, WORLD_REPO "/refd/stage", &dir) < 0)
		return NULL;
	do
		any = SYS(sys, dir_next, dir, &entry) > 0;
	while (any && entry.type == DT_DIR);
	if (any)
		snprintf(text, sizeof(text), "%s is left, staged", entry.name);
	SYS(sys, dir_close, dir);
	return any ? text : NULL;
}
