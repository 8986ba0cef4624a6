#include "daemon/group/service/fetch_id.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/group/service/fetch_repo.h"

#define ID_MAX     8192
#define NO_JOURNAL "00000000000000000000000000000000"

char *fetch_id_hex(const uint8_t uuid[16], char hex[FETCH_ID_HEX + 1])
{
	int i;

	for (i = 0; i < 16; i++)
		sprintf(hex + 2 * i, "%02x", uuid[i]);
	return hex;
}

/* Checks the form as repo_id.c of the daemon does: "uuid <hex>", "journal
 * <hex>", "path </path>". Otherwise a different file of this account could pass
 * for an id. */
static bool has_form(const struct text *id)
{
	static const char journal[] = "\njournal ", path[] = "\npath /";
	const size_t journal_at = strlen("uuid ") + FETCH_ID_HEX;
	const size_t path_at = journal_at + strlen(journal) + FETCH_ID_HEX;

	return id->len > path_at + strlen(path) &&
	    strlen(id->data) == id->len && has_prefix(id->data, "uuid ") &&
	    has_prefix(id->data + journal_at, journal) &&
	    has_prefix(id->data + path_at, path) &&
	    id->data[id->len - 1] == '\n';
}

/* -ENOENT: there is no id, or the file is blank, because a power loss blanks a
 * file that was never synced. -EINVAL: not an id of this account. */
static int read_id(int dir, struct text *id, enum own_file *whose)
{
	int fd = fetch_repo_beneath(dir, "id", O_RDONLY), err = -EINVAL;
	struct stat st;

	*whose = OWN_FILE_FOREIGN;
	if (fd < 0)
		return fd;
	/* The owner and the mode are checked as in repo_id.c of the daemon.
	 * Otherwise a user who may write below the root could get the objects
	 * of another repository. */
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		*whose = own_file_of(st.st_mode, st.st_uid, geteuid());
	if (*whose != OWN_FILE_FOREIGN)
		err = text_read(id, fd, ID_MAX);
	close(fd);
	if (err == 0 && *id->data == 0)
		return -ENOENT;
	return err == 0 && !has_form(id) ? -EINVAL : err;
}

static int write_id(int dir, const char *text)
{
	size_t len = strlen(text);
	int fd, err = 0;

	if (unlinkat(dir, "id.new", 0) < 0 && errno != ENOENT)
		return -errno;
	fd = openat(dir, "id.new", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
	    0644);
	if (fd < 0)
		return -errno;
	if (write(fd, text, len) != (ssize_t)len || fsync(fd) < 0)
		err = -EIO;
	close(fd);
	if (err == 0 && renameat(dir, "id.new", dir, "id") < 0)
		err = -errno;
	return err;
}

static int make_id(int dir, const char *root, const struct fetch_wish *wish)
{
	char hex[FETCH_ID_HEX + 1], *text;
	int err;

	text = xasprintf("uuid %s\njournal " NO_JOURNAL "\npath %s/%s\n",
	    fetch_id_hex(wish->uuid, hex), root, wish->path);
	err = write_id(dir, text);
	free(text);
	return err;
}

static int check_id(const struct text *id, const struct fetch_wish *wish)
{
	char hex[FETCH_ID_HEX + 1], *line;
	bool is_same;

	line = xasprintf("uuid %s\n", fetch_id_hex(wish->uuid, hex));
	is_same = has_prefix(id->data, line);
	free(line);
	return is_same ? 0 : -ESTALE;
}

/* True: the leader has begun the repository without refs (repo_claim.c), so the
 * rows of the group have all its refs, and REPO_FD has no refs either. */
static bool may_begin(int repo_fd, const struct fetch_site *site,
    const struct fetch_wish *wish)
{
	struct text values = { 0 };
	bool is_empty =
	    fetch_repo_values(repo_fd, site, wish, &values) && values.len == 0;

	text_done(&values);
	return fetch_id_is_new(wish) && is_empty;
}

/* For clients, because git must not write here. */
static int make_group(int dir)
{
	int fd = openat(dir, "group",
	    O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644);

	if (fd >= 0)
		close(fd);
	return fd < 0 ? -errno : 0;
}

static int open_refd(int repo_fd)
{
	if (mkdirat(repo_fd, "refd", 0755) < 0 && errno != EEXIST)
		return -errno;
	return fetch_repo_beneath(repo_fd, "refd", O_RDONLY | O_DIRECTORY);
}

int fetch_id_mark(int repo_fd)
{
	int dir = open_refd(repo_fd), err;

	if (dir < 0)
		return dir;
	err = make_group(dir);
	close(dir);
	return err;
}

bool fetch_id_is_new(const struct fetch_wish *wish)
{
	return wish->copies || wish->uuid[6] >> 4 == 8;
}

enum own_file fetch_id_read(const char *path, char hex[FETCH_ID_HEX + 1])
{
	int repo = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC), dir = -1;
	enum own_file whose = OWN_FILE_FOREIGN;
	struct text id = { 0 };
	bool is_there;

	if (repo >= 0)
		dir = fetch_repo_beneath(repo, "refd", O_RDONLY | O_DIRECTORY);
	is_there = dir >= 0 && read_id(dir, &id, &whose) == 0 &&
	    sscanf(id.data, "uuid %32[0-9a-f]\n", hex) == 1 &&
	    strlen(hex) == FETCH_ID_HEX;
	if (dir >= 0)
		close(dir);
	if (repo >= 0)
		close(repo);
	text_done(&id);
	return is_there ? whose : OWN_FILE_FOREIGN;
}

int fetch_id_look(int repo_fd, const struct fetch_wish *wish,
    enum own_file *whose)
{
	struct text id = { 0 };
	int dir = fetch_repo_beneath(repo_fd, "refd", O_RDONLY | O_DIRECTORY);
	int err = dir < 0 ? dir : read_id(dir, &id, whose);

	if (err == 0)
		err = check_id(&id, wish);
	if (dir >= 0)
		close(dir);
	text_done(&id);
	return err == -ELOOP || err == -ENOTDIR || err == -EINVAL ? -ESTALE :
								    err;
}

bool fetch_id_may_claim(int repo_fd, const struct fetch_site *site,
    const struct fetch_wish *wish)
{
	int objects =
	    fetch_repo_beneath(repo_fd, "objects", O_RDONLY | O_DIRECTORY);
	enum own_file whose;

	if (objects < 0)
		return false;
	close(objects);
	return fetch_id_look(repo_fd, wish, &whose) == -ENOENT &&
	    may_begin(repo_fd, site, wish);
}

static bool tell(const struct fetch_wish *wish, int err, struct text *why)
{
	if (err == -ESTALE)
		text_addf(why,
		    "'%s' has another refd/id here: it is a different "
		    "repository, so move it to another path",
		    wish->path);
	else if (err == -ENOTEMPTY)
		text_addf(why,
		    "'%s' is no copy of the leader's, and the group does not "
		    "have its first refs: copy it from the leader, with refd/",
		    wish->path);
	else if (err < 0)
		text_addf(why, "cannot use refd/id of '%s': %s", wish->path,
		    strerror(-err));
	return err == 0;
}

bool fetch_id_claim(int repo_fd, const struct fetch_site *site,
    const char *root, const struct fetch_wish *wish, struct text *why)
{
	struct text id = { 0 };
	int dir = open_refd(repo_fd), err = dir;
	enum own_file whose;

	if (dir >= 0) {
		err = read_id(dir, &id, &whose);
		if (err == 0)
			err = check_id(&id, wish);
		else if (err == -ENOENT)
			err = may_begin(repo_fd, site, wish) ?
			    make_id(dir, root, wish) :
			    -ENOTEMPTY;
		if (err == 0)
			err = make_group(dir);
		close(dir);
	}
	text_done(&id);
	return tell(wish, err, why);
}
