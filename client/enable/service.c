/*
 * The happy path: the configuration; a drop-in of the unit, which lets the
 * service write below the roots; systemctl.
 *
 * Failures: a changed file is kept, and a message names the file. Without
 * systemd, the systemctl command is printed. Both commands can be run again.
 */
#include "client/enable/service.h"
#include "client/enable/enable_report.h"

#include <ctype.h>
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/base/child.h"
#include "client/base/cli.h"
#include "client/enable/durable.h"
#include "client/request/connect.h"
#include "client/request/daemons.h"

#define MARK                                                                   \
	"# Made by refd enable --service; refd disable --service removes it.\n"

/* More than enable writes. */
#define FILE_BYTES (1 << 20)

struct service {
	const char *name;
	char *config_dir, *config, *drop_in_dir, *drop_in;
};

/* ---- the name ---- */

static const struct passwd *find_account(const char *account)
{
	const struct passwd *pw = getpwnam(account);
	char *end;
	unsigned long uid = strtoul(account, &end, 10);

	if (pw == NULL && isdigit((unsigned char)account[0]) && *end == '\0')
		pw = getpwuid((uid_t)uid);
	return pw;
}

static void service_init(struct service *sv, const char *account)
{
	const struct passwd *pw = find_account(account);
	const char *s;

	if (geteuid() != 0)
		die("only root can set up a service");
	if (pw == NULL)
		die("there is no account '%s': \"getent passwd\" lists the "
		    "accounts",
		    account);
	if (pw->pw_uid == 0)
		die("root's repositories are served by a daemon of root's: "
		    "set User=root for refd.service");
	for (s = pw->pw_name; *s != '\0'; s++)
		if (!isalnum((unsigned char)*s) && strchr("_.-", *s) == NULL)
			die("'%s' can't be the name of a service", pw->pw_name);
	sv->name = xstrdup(pw->pw_name);
	sv->config_dir = xasprintf("/etc/refd/%s", sv->name);
	sv->config = xasprintf("%s/config", sv->config_dir);
	sv->drop_in_dir =
	    xasprintf("/etc/systemd/system/refd@%s.service.d", sv->name);
	sv->drop_in = xasprintf("%s/roots.conf", sv->drop_in_dir);
}

static void service_done(struct service *sv)
{
	free((char *)sv->name);
	free(sv->config_dir);
	free(sv->config);
	free(sv->drop_in_dir);
	free(sv->drop_in);
}

/* ---- the files ---- */

/* Neither git's configuration nor systemd's accepts all characters unquoted. */
static void check_root(const char *root)
{
	const char *s;

	for (s = root; *s != '\0'; s++)
		if (!isalnum((unsigned char)*s) && strchr("/_.-+@", *s) == NULL)
			die("'%s': write /etc/refd and the unit's drop-in by "
			    "hand, this path needs quoting",
			    root);
}

static void make_texts(const char *const *roots, size_t nr, struct text *config,
    struct text *drop_in)
{
	size_t i;
	int len;

	text_adds(config, MARK "[daemon]\n");
	text_adds(drop_in, MARK "[Service]\n");
	for (i = 0; i < nr; i++) {
		check_root(roots[i]);
		len = (int)strlen(roots[i]);
		len -= len > 1 && roots[i][len - 1] == '/';
		text_addf(config, "\troot = %.*s\n", len, roots[i]);
		text_addf(drop_in, "ReadWritePaths=%.*s\n", len, roots[i]);
	}
}

static bool make_file(const char *dir, const char *path, const struct text *t)
{
	int r = 0;

	if (access(path, F_OK) == 0) {
		enable_report("kept", path, "kept");
		return true;
	}
	if (mkdir(dir, 0755) < 0 && errno != EEXIST)
		r = -errno;
	if (r == 0)
		r = durable_write(path, t, 0644);
	if (r < 0)
		say_error("can't write %s: %s", path, strerror(-r));
	else
		enable_report("written", path, "written");
	return r == 0;
}

/* Did enable write all lines? */
static bool is_ours(const struct text *t)
{
	static const char *const begins[] = { "[daemon]", "[Service]",
		"\troot = ", "ReadWritePaths=" };
	const char *line = t->data;
	size_t i;

	if (!has_prefix(line, MARK))
		return false;
	line += strlen(MARK);
	while (*line != '\0') {
		for (i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
			if (has_prefix(line, begins[i]))
				break;
		if (i == sizeof(begins) / sizeof(begins[0]))
			return false;
		line += strcspn(line, "\n");
		line += *line == '\n';
	}
	return true;
}

static bool remove_file(const char *dir, const char *path)
{
	struct text t = { 0 };
	int r = text_read_regular(&t, path, FILE_BYTES);
	bool ok = true;

	if (r == 0 && !is_ours(&t)) {
		enable_report("kept", path, "kept, it was changed");
	} else if (r == 0) {
		ok = unlink(path) == 0;
		if (ok)
			enable_report("removed", path, "removed");
		else
			say_error("can't remove %s: %s", path, strerror(errno));
		rmdir(dir);
	} else if (access(path, F_OK) == 0) {
		say_error("can't read %s", path);
		ok = false;
	}
	text_done(&t);
	return ok;
}

/* ---- systemd ---- */

static bool control(const struct service *sv, const char *verb)
{
	char *socket = xasprintf("refd@%s.socket", sv->name);
	char *service = xasprintf("refd@%s.service", sv->name);
	const char *reload[] = { "systemctl", "daemon-reload", NULL };
	const char *argv[] = { "systemctl", verb, "--now", socket, service,
		NULL };
	bool ok = true;

	if (access("/run/systemd/system", F_OK) < 0)
		enable_report("remark", NULL,
		    "systemd does not run here; where it does: "
		    "systemctl %s --now %s %s",
		    verb, socket, service);
	else
		ok = child_run(reload) == 0 && child_run(argv) == 0;
	free(socket);
	free(service);
	return ok;
}

/* ---- other daemons ---- */

/* A second daemon would refuse what the first has, and the pushes fail. */
static void refuse_served(const struct service *sv, const char *root)
{
	char *own = xasprintf(CONNECT_ACCOUNT_BEGIN "%s/refd.sock", sv->name);
	const struct known_daemon *other;
	struct daemons all = { 0 };
	struct text who = { 0 };

	daemons_find(&all, NULL);
	other = daemons_other(&all, root, own);
	if (other) {
		daemons_describe(other, &who);
		die("%s is served already by the daemon on %s; use this one by "
		    "\"refd enable --system --socket %s --root %s\", or end it "
		    "first, by \"systemctl disable --now %s.socket "
		    "%s.service\"",
		    root, who.data, other->socket, root,
		    other->unit ? other->unit : "refd",
		    other->unit ? other->unit : "refd");
	}
	daemons_done(&all);
	free(own);
}

/* ---- the commands ---- */

bool service_enable(const char *account, const char *const *roots, size_t nr)
{
	struct text config = { 0 }, drop_in = { 0 };
	struct service sv;
	size_t i;
	bool ok;

	service_init(&sv, account);
	for (i = 0; i < nr; i++)
		refuse_served(&sv, roots[i]);
	if (nr == 0 && access(sv.config, F_OK) < 0)
		die("%s: %s; name what it is to serve by --root", sv.config,
		    strerror(errno));
	make_texts(roots, nr, &config, &drop_in);
	ok = (mkdir("/etc/refd", 0755) == 0 || errno == EEXIST) &&
	    make_file(sv.config_dir, sv.config, &config) &&
	    (nr == 0 || make_file(sv.drop_in_dir, sv.drop_in, &drop_in)) &&
	    control(&sv, "enable");
	if (ok)
		enable_report("remark", NULL,
		    "%s's daemon: socket /run/refd-%s/refd.sock, state "
		    "/var/lib/refd-%s; tell each repository by "
		    "'refd enable --socket /run/refd-%s/refd.sock "
		    "REPOSITORY'",
		    sv.name, sv.name, sv.name, sv.name);
	text_done(&config);
	text_done(&drop_in);
	service_done(&sv);
	return ok;
}

bool service_disable(const char *account)
{
	struct service sv;
	char *state;
	bool ok = true;

	service_init(&sv, account);
	state = xasprintf("/var/lib/refd-%s", sv.name);
	if (access(sv.config, F_OK) < 0 && access(sv.drop_in, F_OK) < 0)
		enable_report("unchanged", sv.name, "no service was enabled");
	else
		ok = control(&sv, "disable") &&
		    remove_file(sv.drop_in_dir, sv.drop_in) &&
		    remove_file(sv.config_dir, sv.config);
	if (ok && access(state, F_OK) == 0)
		enable_report("remark", NULL, "the state in %s is kept", state);
	free(state);
	service_done(&sv);
	return ok;
}
