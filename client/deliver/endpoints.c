#include "client/deliver/endpoints.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "proto/lib/config_units.h"

#define SECTION       "deliver"
#define SECRET_MAX    4096
#define TIMEOUT_MS    10000
#define TRIES         20
#define PARALLEL      8
#define HOUR_MS       (3600 * 1000)
#define TRIES_MOST    1000
#define PARALLEL_MOST 256

struct endpoints_reading {
	struct endpoints *endpoints;
	const char *path;
	unsigned line;
	struct text *why;
};

static int bad(struct endpoints_reading *r, const char *name, const char *wrong)
{
	text_addf(r->why, "%s:%u: %s: %s", r->path, r->line, name, wrong);
	return -EINVAL;
}

/* ---- values ---- */

static void set(char **to, const char *value)
{
	free(*to);
	*to = xstrdup(value);
}

/* The url may contain a password or a token, and so is in no message. */
static const char *wrong_url(const char *url)
{
	const char *at = strstr(url, "://");
	size_t i;

	if (!has_prefix(url, "https://") && !has_prefix(url, "http://"))
		return "a url begins with https:// or http://";
	at += 3;
	if (strcspn(at, "/?#\\") == 0)
		return "the url has no host";
	if (memchr(at, '@', strcspn(at, "/?#\\")))
		return "a url has no user and no password";
	for (i = 0; url[i]; i++)
		if ((unsigned char)url[i] <= ' ' || url[i] == 0x7f)
			return "the url has a blank or a control character";
	return NULL;
}

static const char *set_number(uint64_t *to, const char *value, uint64_t most)
{
	uint64_t number;

	if (!cli_number(value, most, &number) || number < 1)
		return "is no number, or out of range";
	*to = number;
	return NULL;
}

static const char *set_timeout(uint64_t *to, const char *value)
{
	uint64_t ms;

	if (!config_units_parse(CONFIG_UNITS_TIME, value, &ms) || ms < 1 ||
	    ms > HOUR_MS)
		return "is no time from 1ms to 1h, such as 10s";
	*to = ms;
	return NULL;
}

/* NULL, or the error. */
static const char *set_key(struct endpoint *e, const char *key,
    const char *value)
{
	const char *wrong = NULL;

	if (!strcmp(key, "url")) {
		wrong = wrong_url(value);
		set(&e->url, value);
	} else if (!strcmp(key, "command")) {
		wrong = *value ? NULL : "is empty";
		set(&e->command, value);
	} else if (!strcmp(key, "secretfile")) {
		wrong = *value == '/' ? NULL : "is no absolute path";
		set(&e->secret_file, value);
	} else if (!strcmp(key, "timeout")) {
		wrong = set_timeout(&e->timeout_ms, value);
	} else if (!strcmp(key, "tries")) {
		wrong = set_number(&e->tries, value, TRIES_MOST);
	} else if (!strcmp(key, "parallel")) {
		wrong = set_number(&e->parallel, value, PARALLEL_MOST);
	} else {
		wrong = "is no key of an endpoint";
	}
	return wrong;
}

/* ---- sections ---- */

/* The name is in messages and in labels of metrics, so only plain characters
 * are allowed. */
static bool is_name(const char *name)
{
	size_t len = strspn(name,
	    "abcdefghijklmnopqrstuvwxyz"
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");

	return len > 0 && len <= ENDPOINTS_NAME_MAX && !name[len];
}

static struct endpoint *find(const struct endpoints *all, const char *name)
{
	size_t i;

	for (i = 0; i < all->nr; i++)
		if (!strcmp(all->list[i].name, name))
			return &all->list[i];
	return NULL;
}

const struct endpoint *endpoints_find(const struct endpoints *endpoints,
    const char *name)
{
	return find(endpoints, name);
}

static struct endpoint *find_or_add(struct endpoints *all, const char *name)
{
	struct endpoint *e = find(all, name);

	if (e)
		return e;
	all->list = xroom(all->list, all->nr, &all->size, sizeof(*all->list));
	e = &all->list[all->nr++];
	*e = (struct endpoint){ .name = xstrdup(name),
		.timeout_ms = TIMEOUT_MS,
		.tries = TRIES,
		.parallel = PARALLEL };
	return e;
}

/* NAME is "section.key" or "section.subsection.key". */
static int take(void *arg, const char *name, const char *value, unsigned line)
{
	const char *last = strrchr(name, '.'), *wrong;
	struct endpoints_reading *r = arg;
	char *sub;

	r->line = line;
	if (!has_prefix(name, SECTION "."))
		return bad(r, name, "the only section is [" SECTION "]");
	if (!value)
		return bad(r, name, "has no value");
	if (last == name + strlen(SECTION)) {
		if (strcmp(last, ".socket") != 0)
			return bad(r, name, "is no key of [" SECTION "]");
		set(&r->endpoints->socket, value);
		return 0;
	}
	sub = xstrdup(name + strlen(SECTION) + 1);
	sub[last - name - (ptrdiff_t)strlen(SECTION) - 1] = '\0';
	wrong = is_name(sub) ?
	    set_key(find_or_add(r->endpoints, sub), last + 1, value) :
	    "the name of an endpoint has up to 64 letters, digits, - and _";
	free(sub);
	return wrong ? bad(r, name, wrong) : 0;
}

/* ---- secrets ---- */

static bool read_secret(struct endpoint *e, struct text *why)
{
	struct stat st;
	int err = text_read_regular(&e->secret, e->secret_file, SECRET_MAX);

	if (err < 0) {
		text_addf(why, "cannot read the secret '%s': %s",
		    e->secret_file, strerror(-err));
		return false;
	}
	if (stat(e->secret_file, &st) < 0 || (st.st_mode & S_IRWXO)) {
		text_addf(why,
		    "every user may read the secret '%s': chmod o-rwx",
		    e->secret_file);
		return false;
	}
	while (e->secret.len > 0 &&
	    strchr("\r\n", e->secret.data[e->secret.len - 1]))
		e->secret.len--;
	if (!e->secret.len)
		text_addf(why, "the secret '%s' is empty", e->secret_file);
	return e->secret.len > 0;
}

static bool check(struct endpoint *e, struct text *why)
{
	if (!e->url == !e->command)
		text_addf(why, "endpoint '%s' needs a url or a command",
		    e->name);
	else if (e->command && e->secret_file)
		text_addf(why, "endpoint '%s': a command gets no signature",
		    e->name);
	else
		return !e->secret_file || read_secret(e, why);
	return false;
}

bool endpoints_read(struct endpoints *endpoints, const char *path,
    struct text *why)
{
	struct endpoints_reading r = { .endpoints = endpoints,
		.path = path,
		.why = why };
	size_t i;
	int err = text_read_config(path, take, &r, why);

	for (i = 0; err == 0 && i < endpoints->nr; i++)
		if (!check(&endpoints->list[i], why))
			err = -EINVAL;
	if (err == 0 && !endpoints->nr) {
		text_addf(why, "'%s' has no section [" SECTION " \"NAME\"]",
		    path);
		err = -EINVAL;
	}
	return err == 0;
}

void endpoints_done(struct endpoints *endpoints)
{
	struct endpoint *e = endpoints->list;

	for (; e < endpoints->list + endpoints->nr; e++) {
		free(e->name);
		free(e->url);
		free(e->command);
		free(e->secret_file);
		if (e->secret.data)
			explicit_bzero(e->secret.data, e->secret.size);
		text_done(&e->secret);
	}
	free(endpoints->list);
	free(endpoints->socket);
	memset(endpoints, 0, sizeof(*endpoints));
}
