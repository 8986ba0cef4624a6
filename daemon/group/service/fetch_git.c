#include "daemon/group/service/fetch_git.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/base/child.h"
#include "proto/lib/clock.h"

#define PRINTED_MAX 4096
#define OUTPUT_MAX  ((size_t)64 << 20)
#define HERE_MAX    ((size_t)1 << 30)

/* A source that loses its power closes no connection, so ssh must ask whether
 * it is alive. No URL leads to a program, because GIT_ALLOW_PROTOCOL names the
 * other kinds only. */
#define ENVIRONMENT                                                            \
	"GIT_ALLOW_PROTOCOL=ssh:https:http:git:file", "GIT_TERMINAL_PROMPT=0", \
	    "GIT_ASKPASS=",                                                    \
	    "GIT_SSH_COMMAND=ssh -oBatchMode=yes -oConnectTimeout=10"          \
	    " -oServerAliveInterval=5 -oServerAliveCountMax=2",                \
	    "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "LC_ALL=C"

int fetch_git_file(const struct text *text)
{
	int fd = launch_file(text->data, text->len);

	if (fd < 0)
		die("cannot make a file in memory: %s", strerror(-fd));
	return fd;
}

static void print_said(const struct fetch_git *g, struct text *said)
{
	char *line, *next = said->data;

	while ((line = strsep(&next, "\n")))
		if (*line)
			say_warning("%s: git: %s", g->wish->path, line);
}

static int seconds_left(const struct fetch_git *g)
{
	const uint64_t now = clock_now_ms();

	return g->until_ms > now ? (int)((g->until_ms - now + 999) / 1000) : 0;
}

static int run_git(const struct fetch_git *g, struct launch *l,
    struct text *out)
{
	struct text said = { 0 };
	struct child_output o = { .out = out,
		.err = g->said ? g->said : &said,
		.out_max = OUTPUT_MAX,
		.err_max = g->said ? FETCH_SAID_MAX : PRINTED_MAX,
		.cancel = g->wish->cancel };
	int status;

	l->no_git = true;
	l->seconds = seconds_left(g);
	status = l->seconds > 0 ? child_read(l, &o) : -ETIMEDOUT;
	if (status > 0)
		print_said(g, &said);
	text_done(&said);
	return status;
}

int fetch_git_run(const struct fetch_git *g, const char *const argv[],
    const struct text *in, struct text *out)
{
	char *dir = xasprintf("GIT_DIR=%s/%s%s", g->site->dir,
	    refd_object_format_name(g->wish->format),
	    g->tables >= 0 ? "-tables" : "");
	const char *env[] = { ENVIRONMENT, dir, NULL };
	const int fds[][2] = { { g->objects, FETCH_FD_OBJECTS },
		{ g->pack, FETCH_FD_PACK }, { g->refs, FETCH_FD_REFS },
		{ g->tables, FETCH_FD_TABLES } };
	struct launch l = { .argv = argv,
		.in = in ? fetch_git_file(in) : LAUNCH_NULL,
		.env = (char *const *)env };
	size_t i, nr = 0;
	int status;

	for (i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		if (fds[i][0] >= 0)
			l.fds[nr++] =
			    (struct launch_fd){ fds[i][0], fds[i][1] };
	status = run_git(g, &l, out);
	if (in)
		close(l.in);
	free(dir);
	return status;
}

int fetch_git_here(const struct fetch_git *g, int dir, const char *const argv[],
    struct text *out)
{
	static const char *const env[] = { ENVIRONMENT, "GIT_DIR=.",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=core.hooksPath",
		"GIT_CONFIG_VALUE_0=/dev/null", NULL };
	char *path = xasprintf("/proc/self/fd/%d", dir);
	struct launch l = { .argv = argv,
		.in = LAUNCH_NULL,
		.err = STDERR_FILENO,
		.env = (char *const *)env,
		.dir = path,
		.no_git = true,
		.seconds = seconds_left(g) };
	int status = child_read(&l,
	    &(struct child_output){ .out = out,
		.out_max = HERE_MAX,
		.cancel = g->wish->cancel });

	free(path);
	return status;
}

int fetch_git_init(const struct fetch_git *g, int dir)
{
	char *format = xasprintf("--object-format=%s",
	    refd_object_format_name(g->wish->format));
	const char *const argv[] = { "git", "init", "--quiet", "--bare",
		"--template=", format, ".", NULL };
	char *path = xasprintf("/proc/self/fd/%d", dir);
	struct launch l = { .argv = argv, .in = LAUNCH_NULL, .dir = path };
	int status = run_git(g, &l, NULL);

	free(format);
	free(path);
	return status;
}

void fetch_git_refs(struct fetch_git *g, const struct text *lines)
{
	const size_t len = refd_object_format_hex(g->wish->format);
	const char *line;

	if (g->packed.len == 0)
		text_adds(&g->packed, "# pack-refs with: sorted \n");
	/* The names have twelve digits and grow, so they are in order, as in a
	 * sorted packed-refs. */
	for (line = lines->data; line && *line; line += len + 1)
		text_addf(&g->packed, "%.*s refs/known/%012zu\n", (int)len,
		    line, g->packed.len);
	if (g->refs >= 0)
		close(g->refs);
	g->refs = fetch_git_file(&g->packed);
}

void fetch_git_done(struct fetch_git *g)
{
	if (g->refs >= 0)
		close(g->refs);
	g->refs = -1;
	text_done(&g->packed);
}

/* ---- the other node ---- */

/* A URL has escapes, so that a path cannot change host, port or options. A
 * plain path has none. */
void fetch_git_url(struct text *url, const struct fetch_wish *wish)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
				    "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789/-._~";
	bool is_url = strstr(wish->source, "://") != NULL;
	const char *c;

	text_adds(url, wish->source);
	if (url->len > 0 && url->data[url->len - 1] != '/')
		text_addc(url, '/');
	for (c = wish->source_path; *c; c++)
		if (is_url && !strchr(plain, *c))
			text_addf(url, "%%%02X", (unsigned)(uint8_t)*c);
		else
			text_addc(url, *c);
}

int fetch_git_objects(const struct fetch_git *g, const struct text *oids)
{
	struct text url = { 0 };
	const char *argv[] = { "git", "fetch", "--quiet",
		"--no-write-fetch-head", "--no-tags", "--no-auto-maintenance",
		"--no-recurse-submodules", "--stdin", NULL, NULL };
	int status;

	fetch_git_url(&url, g->wish);
	argv[8] = url.data;
	status = fetch_git_run(g, argv, oids, NULL);
	text_done(&url);
	return status;
}

int fetch_git_list(const struct fetch_git *g, struct text *out)
{
	/* If the source is a path, upload-pack runs here. On another node,
	 * upload-pack would read its own repository by the settings of its
	 * machine (transfer.hideRefs), so the settings of this machine must
	 * count here, too. */
	static const char upload[] = "--upload-pack=env -u GIT_CONFIG_NOSYSTEM"
				     " -u GIT_CONFIG_GLOBAL git upload-pack";
	struct text url = { 0 };
	const char *argv[] = { "git", "ls-remote", "--quiet", "--refs", NULL,
		NULL, NULL };
	int status;

	fetch_git_url(&url, g->wish);
	argv[4] = *url.data == '/' ? upload : url.data;
	argv[5] = *url.data == '/' ? url.data : NULL;
	status = fetch_git_run(g, argv, NULL, out);
	text_done(&url);
	return status;
}
