#include "client/request/daemons.h"

#include <errno.h>
#include <glob.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/git/gitconfig.h"
#include "client/git/quote.h"
#include "client/refd.h"
#include "client/request/connect.h"

#define CONFIGS    "/etc/refd/"
#define SOCKET_END "/refd.sock"
#define ASK_MS     3000

/* ---- names ---- */

/* The account in /run/refd-ACCOUNT/refd.sock, owned, or NULL for another
 * socket. */
static char *account_of(const char *socket)
{
	static const char begin[] = CONNECT_ACCOUNT_BEGIN;
	const char *name = socket + strlen(begin), *end;

	if (!has_prefix(socket, begin))
		return NULL;
	end = strchr(name, '/');
	if (!end || end == name || strcmp(end, SOCKET_END))
		return NULL;
	return xasprintf("%.*s", (int)(end - name), name);
}

/* $XDG_CONFIG_HOME of this user, if SOCKET is that of the user's own daemon. */
static char *own_config(const char *socket)
{
	const char *run = getenv("XDG_RUNTIME_DIR");
	const char *base = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	char *own = xasprintf("%s" SOCKET_END, run ? run : ""), *file = NULL;

	if (geteuid() != 0 && !strcmp(socket, own) && base && *base)
		file = xasprintf("%s/refd/config", base);
	else if (geteuid() != 0 && !strcmp(socket, own) && home)
		file = xasprintf("%s/.config/refd/config", home);
	free(own);
	return file;
}

char *daemons_config(const char *socket)
{
	char *account = account_of(socket), *file;

	if (account)
		file = xasprintf(CONFIGS "%s/config", account);
	else if (!strcmp(socket, REFD_SYSTEM_SOCKET))
		file = xstrdup(CONFIGS "config");
	else
		file = own_config(socket);
	free(account);
	return file;
}

static bool is_installed(const char *unit)
{
	static const char *const dirs[] = { "/etc", "/run", "/usr/local/lib",
		"/usr/lib", "/lib" };
	bool is = false;
	size_t i;

	for (i = 0; i < sizeof(dirs) / sizeof(dirs[0]) && !is; i++) {
		char *path = xasprintf("%s/systemd/system/%s", dirs[i], unit);

		is = access(path, F_OK) == 0;
		free(path);
	}
	return is;
}

char *daemons_unit(const char *socket)
{
	char *account = account_of(socket), *config = daemons_config(socket);
	char *unit = NULL;

	/* The unit of each account is there, also without a daemon, so the
	 * configuration has to exist, too. */
	if (account && is_installed("refd@.service") &&
	    access(config, F_OK) == 0)
		unit = xasprintf("refd@%s", account);
	else if (!account && !strcmp(socket, REFD_SYSTEM_SOCKET) &&
	    is_installed("refd.service"))
		unit = xstrdup("refd");
	free(account);
	free(config);
	return unit;
}

void daemons_add_start(const char *socket, int err, struct text *out)
{
	const size_t end = strlen(REFD_ADMIN_SUFFIX);
	char *path = xstrdup(socket), *unit, *command = NULL;
	size_t len = strlen(path);

	if (len > end && !strcmp(path + len - end, REFD_ADMIN_SUFFIX))
		path[len - end] = '\0';
	unit = daemons_unit(path);
	if (err != -ENOENT && err != -ECONNREFUSED && err != -ENOTDIR)
		; /* somebody listens */
	else if (unit)
		command = quote_command("systemctl", "start", unit, NULL);
	else
		command =
		    quote_command("refd", "daemon", "--socket", path, NULL);
	if (command)
		text_addf(out, "; start the daemon: %s", command);
	free(command);
	free(unit);
	free(path);
}

void daemons_add_root_command(const char *socket, const char *root,
    struct text *out)
{
	char *config = daemons_config(socket), *unit = daemons_unit(socket);

	text_adds(out, "git config -f ");
	if (config)
		quote_shell(config, out);
	else
		text_adds(out, "<the daemon's configuration>");
	text_adds(out, " --add daemon.root ");
	quote_shell(root, out);
	if (unit) {
		text_addf(out,
		    " && mkdir -p /etc/systemd/system/%s.service.d && printf "
		    "'[Service]\\nReadWritePaths=%%s\\n' ",
		    unit);
		quote_shell(root, out);
		text_addf(out,
		    " >>/etc/systemd/system/%s.service.d/roots.conf && "
		    "systemctl daemon-reload && systemctl restart %s",
		    unit, unit);
	} else {
		text_adds(out, ", and restart the daemon");
	}
	free(config);
	free(unit);
}

/* ---- what a daemon says ---- */

static void add_root(struct known_daemon *known, const char *root)
{
	known->roots = xrealloc(known->roots,
	    (known->nr_roots + 1) * sizeof(*known->roots));
	known->roots[known->nr_roots++] = xstrdup(root);
}

/* The kernel knows the account of a process. But a daemon of a user could name
 * the process of another account, so there the owner of the socket counts. */
static void name_account(struct known_daemon *known, uint64_t pid)
{
	char *path = known->is_of_root ?
	    xasprintf("/proc/%llu", (unsigned long long)pid) :
	    xstrdup(known->socket);
	const struct passwd *pw;
	struct stat st;

	if (stat(path, &st) == 0) {
		free(known->account);
		pw = getpwuid(st.st_uid);
		known->account = pw ? xstrdup(pw->pw_name) :
				      xasprintf("%u", (unsigned)st.st_uid);
	}
	free(path);
}

static void ask_status(struct known_daemon *known, struct refd *r)
{
	struct refd_request req = { .verb = REFD_VERB_STATUS };
	struct refd_answer ans;
	size_t i;

	if (refd_call(r, &req, ASK_MS, &ans) < 0)
		return;
	for (i = 0; ans.kind == REFD_ANSWER_PAIRS && i < ans.nr_pairs; i++)
		if (!strcmp(ans.pairs[i].key, "root.path"))
			add_root(known, ans.pairs[i].value);
		else if (!strcmp(ans.pairs[i].key, "paused"))
			known->is_paused = !strcmp(ans.pairs[i].value, "yes");
	refd_answer_done(&ans);
}

static void ask(struct known_daemon *known)
{
	const struct daemon_socket socket = { .path = known->socket };
	struct refd *r = connect_new(&socket);
	int err = refd_connect(r, ASK_MS);

	known->listens = err != -ENOENT && err != -ECONNREFUSED &&
	    err != -ENOTDIR && err != -EACCES;
	if (err == 0) {
		known->state =
		    xstrdup(refd_server_state_name(refd_hello(r)->state));
		name_account(known, refd_hello(r)->pid);
		ask_status(known, r);
	} else {
		known->state = xstrdup(
		    known->listens || err == -EACCES ? refd_error(r) : "off");
	}
	refd_free(r);
}

/* The directories that the daemon serves when it starts. */
static void read_roots(struct known_daemon *known)
{
	char *file = daemons_config(known->socket);
	struct gitconfig config = { 0 };
	const char *key, *value;
	size_t at = 0;

	if (file && access(file, R_OK) == 0 &&
	    gitconfig_read_file(&config, file) == 0)
		while (gitconfig_next(&config, &at, &key, &value))
			if (!strcmp(key, "daemon.root"))
				add_root(known, value);
	gitconfig_done(&config);
	free(file);
}

/* ---- all ---- */

static void add(struct daemons *all, const char *socket, bool is_of_root)
{
	struct known_daemon *known;
	size_t i;

	for (i = 0; i < all->nr; i++)
		if (!strcmp(all->list[i].socket, socket))
			return;
	all->list = xroom(all->list, all->nr, &all->size, sizeof(*all->list));
	known = &all->list[all->nr++];
	*known = (struct known_daemon){ .socket = xstrdup(socket),
		.unit = daemons_unit(socket),
		.account = account_of(socket),
		.is_of_root = is_of_root };
	ask(known);
	if (!known->nr_roots)
		read_roots(known);
}

/* Adds the daemon of each file that PATTERN finds. The name of the daemon
 * stands between BEGIN and END in the path, and tells its socket. */
static void add_found(struct daemons *all, const char *pattern,
    const char *begin, const char *end)
{
	const char *path, *stop;
	glob_t found = { 0 };
	char *socket;
	size_t i;

	if (glob(pattern, 0, NULL, &found) != 0)
		found.gl_pathc = 0;
	for (i = 0; i < found.gl_pathc; i++) {
		path = found.gl_pathv[i];
		stop = path + strlen(path) - strlen(end);
		path += strlen(begin);
		socket = xasprintf(CONNECT_ACCOUNT_BEGIN "%.*s" SOCKET_END,
		    (int)(stop - path), path);
		add(all, socket, true);
		free(socket);
	}
	globfree(&found);
}

void daemons_find_users(struct daemons *all)
{
	glob_t found = { 0 };
	size_t i;

	if (glob("/run/user/*" SOCKET_END, 0, NULL, &found) != 0)
		found.gl_pathc = 0;
	for (i = 0; i < found.gl_pathc; i++)
		add(all, found.gl_pathv[i], false);
	globfree(&found);
}

void daemons_find(struct daemons *all, const char *socket)
{
	char *unit = daemons_unit(REFD_SYSTEM_SOCKET);
	struct daemon_socket chosen;

	if (access(REFD_SYSTEM_SOCKET, F_OK) == 0 ||
	    (unit && access(CONFIGS "config", F_OK) == 0))
		add(all, REFD_SYSTEM_SOCKET, true);
	free(unit);
	add_found(all, CONNECT_ACCOUNT_BEGIN "*" SOCKET_END,
	    CONNECT_ACCOUNT_BEGIN, SOCKET_END);
	add_found(all, CONFIGS "*/config", CONFIGS, "/config");
	/* By the environment, or of a user without /run/user. */
	connect_choose(&chosen, NULL, NULL, NULL);
	if (access(chosen.path, F_OK) == 0)
		add(all, chosen.path, false);
	free(chosen.path);
	if (socket)
		add(all, socket, false);
}

void daemons_done(struct daemons *all)
{
	struct known_daemon *known;

	while (all->nr) {
		known = &all->list[--all->nr];
		while (known->nr_roots)
			free(known->roots[--known->nr_roots]);
		free(known->roots);
		free(known->socket);
		free(known->unit);
		free(known->account);
		free(known->state);
	}
	free(all->list);
	*all = (struct daemons){ 0 };
}

void daemons_describe(const struct known_daemon *known, struct text *out)
{
	size_t i;

	text_add_visible(out, known->socket);
	text_addf(out, " (unit %s, account %s, roots",
	    known->unit ? known->unit : "none",
	    known->account ? known->account : "not known");
	for (i = 0; i < known->nr_roots; i++) {
		text_addc(out, ' ');
		text_add_visible(out, known->roots[i]);
	}
	text_adds(out, known->nr_roots ? ")" : " not known)");
}

/* Is PATH the directory DIR, or below DIR? */
static bool lies_in(const char *path, const char *dir)
{
	size_t len = strlen(dir);

	while (len && dir[len - 1] == '/')
		len--;
	return !strncmp(path, dir, len) &&
	    (path[len] == '/' || path[len] == '\0');
}

const struct known_daemon *daemons_on(const struct daemons *all,
    const char *socket)
{
	size_t i;

	for (i = 0; i < all->nr; i++)
		if (!strcmp(all->list[i].socket, socket))
			return all->list[i].listens ? &all->list[i] : NULL;
	return NULL;
}

bool daemons_serves(const struct known_daemon *known, const char *root)
{
	size_t i;

	for (i = 0; i < known->nr_roots; i++)
		if (lies_in(root, known->roots[i]) ||
		    lies_in(known->roots[i], root))
			return true;
	return false;
}

const struct known_daemon *daemons_other(const struct daemons *all,
    const char *root, const char *socket)
{
	const struct known_daemon *known;
	size_t i;

	for (i = 0; i < all->nr; i++) {
		known = &all->list[i];
		if (known->listens && known->is_of_root &&
		    strcmp(known->socket, socket) != 0 &&
		    daemons_serves(known, root))
			return known;
	}
	return NULL;
}
