#include "client/deliver/delivery.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/lib/clock.h"

#define BLOCK 64 /* bytes of a block of SHA-256 */

#define ANSWER_MAX (64 * 1024)
#define OUTPUT_MAX (64 * 1024)
#define CONNECT_MS 10000

static const struct endpoint *endpoint_of(const struct delivery *a)
{
	return a->stream->to->endpoint;
}

static void end(struct delivery *a, bool is_success)
{
	a->has_ended = true;
	a->is_success = is_success;
}

static void PRINTF_LIKE(2, 3) fail(struct delivery *a, const char *fmt, ...)
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
	struct delivery *a = arg;

	(void)data;
	a->received += size * nr;
	return a->received > ANSWER_MAX ? 0 : size * nr;
}

static void PRINTF_LIKE(2, 3)
    add_header(struct delivery *a, const char *fmt, ...)
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

/* A pusher may write anything, so the headers have nothing that a pusher
 * wrote. */
static void add_headers(struct delivery *a)
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
		    delivery_sign(secret->data, secret->len, a->row.body,
			a->row.len, signature));
}

#define SET(option, value)                                                     \
	(result = result == CURLE_OK ?                                         \
		curl_easy_setopt(a->easy, option, value) :                     \
		result)

static void start_http(struct delivery *a)
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
 * texts of libcurl are constants, so no message contains the url. */
void delivery_http_ended(struct delivery *a, CURLcode result)
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

/* Nobody else could stop a command that fills the log, so the output of the
 * command goes through this program, which bounds the output. */
static int launch_command(struct delivery *a, int input, int output)
{
	const char *argv[] = { "/bin/sh", "-c", endpoint_of(a)->command, NULL };
	char *env[] = { xasprintf("REFD_EVENT=%s", a->row.event),
		xasprintf("REFD_DELIVERY=%s", a->row.id),
		xasprintf("REFD_ATTEMPT=%" PRIu64, a->row.failures + 1), NULL };
	struct launch l = { .argv = argv,
		.in = input,
		.out = output,
		.err = output,
		.env = env,
		.seconds = INT_MAX };
	int err = launch_start(&a->command, &l);
	size_t i;

	a->command.end_ms = clock_now_ms() + endpoint_of(a)->timeout_ms;
	for (i = 0; env[i]; i++)
		free(env[i]);
	return err;
}

static void start_command(struct delivery *a)
{
	int input = launch_file(a->row.body, a->row.len), err = input;
	int ends[2];

	if (input >= 0 && pipe2(ends, O_CLOEXEC) < 0) {
		err = -errno;
	} else if (input >= 0) {
		err = launch_command(a, input, ends[1]);
		close(ends[1]);
		a->output = ends[0];
		fcntl(a->output, F_SETFL, O_NONBLOCK);
	}
	if (input >= 0)
		close(input);
	if (err < 0)
		fail(a, "cannot run the command: %s", strerror(-err));
}

static void close_output(struct delivery *a)
{
	if (a->output >= 0)
		close(a->output);
	a->output = -1;
}

/* A command that prints more still succeeds by its status, so the rest is read
 * and thrown away. One read takes all that a pipe holds. */
static void pass_output(struct delivery *a)
{
	char data[65536];
	size_t room = OUTPUT_MAX - a->received, len;
	ssize_t got;

	if (a->output < 0)
		return;
	got = read(a->output, data, sizeof(data));
	if (got == 0)
		close_output(a);
	if (got <= 0)
		return;
	len = (size_t)got < room ? (size_t)got : room;
	a->received += len;
	print_text(stderr, PRINT_AS_LINES, data, len);
	if ((size_t)got == len || a->was_cut)
		return;
	a->was_cut = true;
	if (len > 0 && data[len - 1] != '\n')
		print_lines(stderr, "\n");
	say_warning("endpoint '%s': %s '%s' of '%s': the command prints more "
		    "than %d KiB; the rest is left out",
	    endpoint_of(a)->name, a->row.event, a->row.id, a->row.repo,
	    OUTPUT_MAX / 1024);
}

void delivery_tick(struct delivery *a)
{
	const struct launched *c = &a->command;
	bool has_ended;

	if (endpoint_of(a)->url || a->has_ended)
		return;
	has_ended = launch_has_ended(&a->command);
	pass_output(a);
	if (!has_ended)
		return;
	if (c->was_late)
		fail(a, "the command took longer than %" PRIu64 " ms",
		    endpoint_of(a)->timeout_ms);
	else if (WIFSIGNALED(c->status))
		fail(a, "the command died of signal %d", WTERMSIG(c->status));
	else if (WEXITSTATUS(c->status))
		fail(a, "the command ended with status %d",
		    WEXITSTATUS(c->status));
	else
		end(a, true);
}

/* ---- both ---- */

struct delivery *delivery_start(CURLM *multi, struct stream *stream,
    struct outbox_row *row)
{
	struct delivery *a = xcalloc(1, sizeof(*a));

	a->multi = multi;
	a->stream = stream;
	a->row = *row;
	memset(row, 0, sizeof(*row));
	a->began_ms = clock_now_ms();
	a->command.process = -1;
	a->output = -1;
	if (endpoint_of(a)->url)
		start_http(a);
	else
		start_command(a);
	return a;
}

void delivery_free(struct delivery *a)
{
	if (a->easy) {
		curl_multi_remove_handle(a->multi, a->easy);
		curl_easy_cleanup(a->easy);
	}
	close_output(a);
	curl_slist_free_all(a->headers);
	outbox_row_done(&a->row);
	free(a);
}

/* ---- the signature, and the pause ---- */

static void hash(const uint8_t block[BLOCK], const void *data, size_t len,
    uint8_t out[SHA256_BYTES])
{
	struct sha sha;

	sha_init(&sha, REFD_FORMAT_SHA256);
	sha_add(&sha, block, BLOCK);
	sha_add(&sha, data, len);
	sha_done(&sha, out);
}

/* The key, filled up with zeroes, or the hash of a long key. */
static void block_of(const void *key, size_t len, uint8_t block[BLOCK])
{
	struct sha sha;

	memset(block, 0, BLOCK);
	if (len <= BLOCK) {
		memcpy(block, key, len);
		return;
	}
	sha_init(&sha, REFD_FORMAT_SHA256);
	sha_add(&sha, key, len);
	sha_done(&sha, block);
}

char *delivery_sign(const void *key, size_t key_len, const void *body,
    size_t len, char text[SIGNATURE_LEN + 1])
{
	uint8_t block[BLOCK], sum[SHA256_BYTES];
	char *to = text + sprintf(text, "sha256=");
	size_t i;

	block_of(key, key_len, block);
	for (i = 0; i < BLOCK; i++)
		block[i] ^= 0x36;
	hash(block, body, len, sum);
	for (i = 0; i < BLOCK; i++)
		block[i] ^= 0x36 ^ 0x5c;
	hash(block, sum, SHA256_BYTES, sum);
	for (i = 0; i < SHA256_BYTES; i++)
		to += sprintf(to, "%02x", sum[i]);
	return text;
}

uint64_t delivery_pause_ms(uint64_t failures, uint32_t random)
{
	uint64_t most = ATTEMPT_FIRST_MS;

	for (; failures > 1 && most < ATTEMPT_MOST_MS; failures--)
		most *= 2;
	if (most > ATTEMPT_MOST_MS)
		most = ATTEMPT_MOST_MS;
	return most / 2 + random % (most / 2 + 1);
}
