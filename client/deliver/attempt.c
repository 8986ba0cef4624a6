#include "client/deliver/attempt.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/deliver/signature.h"
#include "client/librefd/conn.h"

#define ANSWER_MAX (64 * 1024)
#define CONNECT_MS 10000

extern char **environ;

static const struct endpoint *endpoint_of(const struct attempt *a)
{
	return a->stream->to->endpoint;
}

static void end(struct attempt *a, bool is_success)
{
	a->has_ended = true;
	a->is_success = is_success;
}

static void PRINTF_LIKE(2, 3) fail(struct attempt *a, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(a->error, sizeof(a->error), fmt, ap);
	va_end(ap);
	end(a, false);
}

/* ---- HTTP ---- */

/* The answer is counted and thrown away. */
static size_t receive(char *data, size_t size, size_t nr, void *arg)
{
	struct attempt *a = arg;

	(void)data;
	a->received += size * nr;
	return a->received > ANSWER_MAX ? 0 : size * nr;
}

static void PRINTF_LIKE(2, 3)
    add_header(struct attempt *a, const char *fmt, ...)
{
	struct curl_slist *longer;
	char line[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	longer = curl_slist_append(a->headers, line);
	if (!longer)
		die("out of memory");
	a->headers = longer;
}

/* The headers have nothing that a pusher wrote. */
static void add_headers(struct attempt *a)
{
	const struct text *secret = &endpoint_of(a)->secret;
	char signature[SIGNATURE_LEN + 1];

	add_header(a, "Content-Type: application/json");
	add_header(a, "Expect:");
	add_header(a, "X-Refd-Event: %s", a->row.event);
	add_header(a, "X-Refd-Delivery: %s", a->row.id);
	add_header(a, "X-Refd-Attempt: %" PRIu64, a->row.failures + 1);
	if (secret->len)
		add_header(a, "X-Hub-Signature-256: %s",
		    signature_text(secret->data, secret->len, a->row.body,
			a->row.len, signature));
}

#define SET(option, value)                                                     \
	(result = result == CURLE_OK ?                                         \
		curl_easy_setopt(a->easy, option, value) :                     \
		result)

static void start_http(struct attempt *a)
{
	const struct endpoint *e = endpoint_of(a);
	CURLcode result = CURLE_OK;

	a->easy = curl_easy_init();
	if (!a->easy)
		die("out of memory");
	add_headers(a);
	SET(CURLOPT_PRIVATE, a);
	SET(CURLOPT_URL, e->url);
	SET(CURLOPT_PROTOCOLS_STR, "http,https");
	SET(CURLOPT_FOLLOWLOCATION, 0L);
	SET(CURLOPT_NOSIGNAL, 1L);
	SET(CURLOPT_USERAGENT, "refd-deliver/" REFD_VERSION);
	SET(CURLOPT_HTTPHEADER, a->headers);
	SET(CURLOPT_POSTFIELDS, a->row.body);
	SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)a->row.len);
	SET(CURLOPT_TIMEOUT_MS, (long)e->timeout_ms);
	SET(CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
	SET(CURLOPT_WRITEFUNCTION, receive);
	SET(CURLOPT_WRITEDATA, a);
	SET(CURLOPT_HEADERFUNCTION, receive);
	SET(CURLOPT_HEADERDATA, a);
	if (result != CURLE_OK)
		die("libcurl: %s", curl_easy_strerror(result));
	if (curl_multi_add_handle(a->multi, a->easy) != CURLM_OK)
		die("libcurl cannot start a request");
}

/* The status decides, even if the rest of the answer is too long. The error
 * texts of libcurl are constants. */
void attempt_http_ended(struct attempt *a, CURLcode result)
{
	long status = 0;

	curl_easy_getinfo(a->easy, CURLINFO_RESPONSE_CODE, &status);
	if (result != CURLE_OK && result != CURLE_WRITE_ERROR)
		fail(a, "%s", curl_easy_strerror(result));
	else if (status >= 200 && status < 300)
		end(a, true);
	else if (status >= 300 && status < 400)
		fail(a, "HTTP status %ld: redirects are not followed", status);
	else
		fail(a, "HTTP status %ld", status);
}

/* ---- commands ---- */

/* The environment of this program and three variables. */
static char **environment_of(const struct attempt *a)
{
	size_t nr = 0, i;
	char **env;

	while (environ[nr])
		nr++;
	env = xcalloc(nr + 4, sizeof(*env));
	for (i = 0; i < nr; i++)
		env[i] = xstrdup(environ[i]);
	env[nr++] = xasprintf("REFD_EVENT=%s", a->row.event);
	env[nr++] = xasprintf("REFD_DELIVERY=%s", a->row.id);
	env[nr++] = xasprintf("REFD_ATTEMPT=%" PRIu64, a->row.failures + 1);
	return env;
}

static void free_strings(char **list)
{
	size_t i;

	for (i = 0; list[i]; i++)
		free(list[i]);
	free(list);
}

/* A file in memory: a command that does not read cannot block this program.
 * Negative errno on failure. */
static int input_of(const struct attempt *a)
{
	int fd = memfd_create("change", MFD_CLOEXEC);
	size_t done = 0;
	ssize_t n;

	if (fd < 0)
		return -errno;
	while (done < a->row.len) {
		n = write(fd, a->row.body + done, a->row.len - done);
		if (n < 0) {
			close(fd);
			return -ENOSPC;
		}
		done += (size_t)n;
	}
	lseek(fd, 0, SEEK_SET);
	return fd;
}

/* In a process group of its own, with the signals of a new program. What the
 * command prints goes where the messages of this program go. */
static int spawn(struct attempt *a, int input)
{
	char *argv[] = { "sh", "-c", endpoint_of(a)->command, NULL };
	char **env = environment_of(a);
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t none, pipes;
	int err;

	sigemptyset(&none);
	sigemptyset(&pipes);
	sigaddset(&pipes, SIGPIPE);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, input, STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr,
	    POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
		POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &pipes);
	err = posix_spawn(&a->pid, "/bin/sh", &files, &attr, argv, env);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&files);
	free_strings(env);
	return -err;
}

static void start_command(struct attempt *a)
{
	int input = input_of(a), err = input;

	if (input >= 0) {
		err = spawn(a, input);
		close(input);
	}
	if (err < 0) {
		a->pid = 0;
		fail(a, "cannot run the command: %s", strerror(-err));
		return;
	}
	/* musl has no function for this call. */
	a->pidfd = (int)syscall(SYS_pidfd_open, a->pid, 0);
	if (a->pidfd < 0)
		die("cannot watch a process: %s", strerror(errno));
}

uint64_t attempt_deadline_ms(const struct attempt *a)
{
	return a->pid ? a->began_ms + endpoint_of(a)->timeout_ms : UINT64_MAX;
}

/* The zombie keeps the number of the group. So the signal meets only processes
 * that the command left behind. */
static int reap(struct attempt *a)
{
	int status = 0;

	kill(-a->pid, SIGKILL);
	waitpid(a->pid, &status, 0);
	a->pid = 0;
	return status;
}

void attempt_tick(struct attempt *a, uint64_t now_ms)
{
	siginfo_t info = { .si_pid = 0 };
	int status;

	if (!a->pid || a->has_ended)
		return;
	if (waitid(P_PID, (id_t)a->pid, &info, WEXITED | WNOHANG | WNOWAIT) ==
		0 &&
	    info.si_pid == a->pid) {
		status = reap(a);
		if (WIFSIGNALED(status))
			fail(a, "the command died of signal %d",
			    WTERMSIG(status));
		else if (WEXITSTATUS(status))
			fail(a, "the command ended with status %d",
			    WEXITSTATUS(status));
		else
			end(a, true);
	} else if (now_ms >= attempt_deadline_ms(a)) {
		reap(a);
		fail(a, "the command took longer than %" PRIu64 " ms",
		    endpoint_of(a)->timeout_ms);
	}
}

/* ---- both ---- */

struct attempt *attempt_start(CURLM *multi, struct stream *stream,
    struct outbox_row *row)
{
	struct attempt *a = xcalloc(1, sizeof(*a));

	a->multi = multi;
	a->stream = stream;
	a->row = *row;
	memset(row, 0, sizeof(*row));
	a->began_ms = refd_now_ms();
	a->pidfd = -1;
	if (endpoint_of(a)->url)
		start_http(a);
	else
		start_command(a);
	return a;
}

void attempt_free(struct attempt *a)
{
	if (a->easy) {
		curl_multi_remove_handle(a->multi, a->easy);
		curl_easy_cleanup(a->easy);
	}
	curl_slist_free_all(a->headers);
	if (a->pidfd >= 0)
		close(a->pidfd);
	outbox_row_done(&a->row);
	free(a);
}
