#include "tests/lib/hook_rig.h"

#include <check.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/push/hook.h"
#include "proto/lib/cli.h"
#include "tests/lib/fake_refd.h"
#include "tests/lib/tmp.h"

static struct pkt_buf in;
static struct fake fake;
static bool serving;

void hook_setup(void)
{
	tmp_setup();
	memset(&in, 0, sizeof(in));
	serving = false;
	unsetenv("GIT_COMMITTER_DATE");
	unsetenv("GIT_SHALLOW_FILE");
	setenv("REFD_SOCKET", "/nowhere/refd.sock", 1);
	tmp_run("git init -q -b main --bare repo.git && "
		"rm -f repo.git/hooks/*");
	ck_assert_int_eq(fchdir(tmp_fd), 0);
	ck_assert_int_eq(chdir("repo.git"), 0);
	setenv("GIT_DIR", ".", 1);
}

void hook_teardown(void)
{
	ck_assert_int_eq(chdir("/"), 0);
	unsetenv("GIT_DIR");
	if (serving)
		fake_stop(&fake);
	tmp_teardown();
}

static void be_served(void)
{
	serving = true;
	setenv("REFD_SOCKET", fake.path, 1);
}

void hook_serve(const char *steps)
{
	fake_start(&fake, steps);
	be_served();
}

void hook_serve_script(void (*script)(struct fake *f))
{
	fake_start_script(&fake, script);
	be_served();
}

void hook_begin(bool atomic)
{
	static const char with[] = "version=1\0atomic";

	pkt_put(&in, with, atomic ? sizeof(with) - 1 : 9);
	pkt_flush(&in);
}

void hook_put(const char *command)
{
	pkt_put(&in, command, strlen(command));
}

void hook_push(const char *command, ...)
{
	va_list ap;

	hook_begin(false);
	va_start(ap, command);
	for (; command != NULL; command = va_arg(ap, const char *))
		hook_put(command);
	va_end(ap);
}

char *hook_run(void)
{
	int ends[2], size = 1 << 20;
	struct text lines = { 0 }, out = { 0 };
	struct pkt pkt;
	size_t at = 17; /* the greeting */
	long taken;

	pkt_flush(&in);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	ck_assert_int_eq(write(ends[0], in.data, in.len), (ssize_t)in.len);
	ck_assert_int_eq(shutdown(ends[0], SHUT_WR), 0);
	ck_assert_int_ge(dup2(ends[1], 0), 0);
	ck_assert_int_ge(dup2(ends[1], 1), 0);
	close(ends[1]);
	ck_assert_int_eq(hook_proc_receive(), 0);
	close(0);
	close(1);
	ck_assert_int_eq(text_read(&out, ends[0], SIZE_MAX), 0);
	close(ends[0]);
	ck_assert_int_eq(strncmp(out.data, "000dversion=10000", 17), 0);
	while ((taken = pkt_parse(out.data + at, out.len - at, &pkt)) > 0) {
		at += (size_t)taken;
		if (pkt.kind == PKT_FLUSH)
			break;
		text_add(&lines, pkt.data, pkt.len);
		text_addc(&lines, '\n');
	}
	ck_assert_uint_eq(at, out.len);
	text_done(&out);
	pkt_buf_done(&in);
	text_adds(&lines, "");
	return lines.data;
}

void hook_expect(const char *wanted)
{
	char *got = hook_run();

	ck_assert_str_eq(got, wanted);
	free(got);
}
