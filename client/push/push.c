#include "client/push/push.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/limits.h"
#include "proto/utf8.h"

void push_done(struct push *push)
{
	size_t i;

	for (i = 0; i < push->nr; i++) {
		free(push->commands[i].name);
		free(push->commands[i].ref);
		free(push->commands[i].ng);
		pkt_buf_done(&push->commands[i].said);
	}
	free(push->commands);
	text_done(&push->options);
	memset(push, 0, sizeof(*push));
}

void push_reader_done(struct push_reader *in)
{
	free(in->data);
	in->data = NULL;
}

/* ---- in ---- */

static bool fill(struct push_reader *in)
{
	ssize_t n;

	if (!in->data) {
		in->size = 2 * REFD_PACKET_MAX;
		in->data = xrealloc(NULL, in->size);
	}
	memmove(in->data, in->data + in->begin, in->end - in->begin);
	in->end -= in->begin;
	in->begin = 0;
	do
		n = read(in->fd, in->data + in->end, in->size - in->end);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return false;
	in->end += (size_t)n;
	return true;
}

/* The packet is valid until the next call. */
static bool read_packet(struct push_reader *in, struct pkt *pkt,
    const char **why)
{
	long taken = 0;

	for (;;) {
		if (in->end > in->begin)
			taken = pkt_parse(in->data + in->begin,
			    in->end - in->begin, pkt);
		if (taken > 0 && pkt->kind != PKT_DELIM) {
			in->begin += (size_t)taken;
			return true;
		}
		if (taken) {
			*why = "receive-pack speaks no pkt-lines";
			return false;
		}
		if (!fill(in)) {
			*why = "receive-pack hung up";
			return false;
		}
	}
}

static bool has_word(const char *words, size_t len, const char *word)
{
	const char *end = words + len, *at = words, *stop;

	while (at < end) {
		stop = memchr(at, ' ', (size_t)(end - at));
		if (!stop)
			stop = end;
		if ((size_t)(stop - at) == strlen(word) &&
		    !memcmp(at, word, strlen(word)))
			return true;
		at = stop + 1;
	}
	return false;
}

/* The packet is "version=1", a NUL and the negotiated features. */
static bool take_version(const struct pkt *pkt, struct push *push)
{
	static const char wanted[] = "version=1";
	size_t len = pkt->len, skip = sizeof(wanted) - 1;

	if (len && pkt->data[len - 1] == '\n')
		len--;
	if (len < skip || memcmp(pkt->data, wanted, skip) ||
	    (len > skip && pkt->data[skip] != '\0'))
		return false;
	if (len > skip) {
		const char *words = pkt->data + skip + 1;

		len -= skip + 1;
		push->atomic = has_word(words, len, "atomic");
		push->has_options = has_word(words, len, "push-options");
	}
	return true;
}

bool push_read_version(struct push_reader *in, struct push *push,
    const char **why)
{
	struct pkt pkt;

	if (!read_packet(in, &pkt, why))
		return false;
	if (pkt.kind != PKT_DATA || !take_version(&pkt, push)) {
		*why = "receive-pack speaks another version of the protocol";
		return false;
	}
	do {
		if (!read_packet(in, &pkt, why))
			return false;
	} while (pkt.kind == PKT_DATA);
	return true;
}

static bool is_reportable(const char *name, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		if ((unsigned char)name[i] <= ' ' || name[i] == 0x7f)
			return false;
	return len > 0;
}

static struct push_command *add_command(struct push *push, const char *name,
    size_t len)
{
	struct push_command *c;
	struct text copy = { 0 };

	push->commands = xroom(push->commands, push->nr, &push->size,
	    sizeof(*push->commands));
	c = &push->commands[push->nr++];
	memset(c, 0, sizeof(*c));
	text_add(&copy, name, len);
	c->name = copy.data;
	c->unreportable = !is_reportable(name, len);
	return c;
}

/* Does the packet begin with two ids of HEX digits, each with a blank? */
static bool has_ids_of(const struct pkt *pkt, size_t hex)
{
	return pkt->len >= 2 * hex + 2 && pkt->data[hex] == ' ' &&
	    pkt->data[2 * hex + 1] == ' ';
}

static bool take_command(const struct pkt *pkt, struct push *push)
{
	enum refd_object_format format = REFD_FORMAT_SHA256;
	size_t hex = refd_object_format_hex(format);
	struct push_command *c;

	if (!has_ids_of(pkt, hex)) {
		format = REFD_FORMAT_SHA1;
		hex = refd_object_format_hex(format);
	}
	if (!has_ids_of(pkt, hex) ||
	    (push->nr > 0 && push->commands[0].object_format != format))
		return false;
	c = add_command(push, pkt->data + 2 * hex + 2, pkt->len - 2 * hex - 2);
	c->object_format = format;
	return refd_oid_parse(pkt->data, format, &c->old_oid) == 0 &&
	    refd_oid_parse(pkt->data + hex + 1, format, &c->new_oid) == 0;
}

bool push_read_commands(struct push_reader *in, struct push *push,
    const char **why)
{
	struct pkt pkt;

	for (;;) {
		if (!read_packet(in, &pkt, why))
			return false;
		if (pkt.kind != PKT_DATA)
			return true;
		if (!take_command(&pkt, push)) {
			*why = "receive-pack sent a malformed command";
			return false;
		}
	}
}

bool push_read_options(struct push_reader *in, struct push *push,
    const char **why)
{
	static const char empty[] = "0004";
	struct pkt pkt;

	for (;;) {
		while (in->end - in->begin < strlen(empty))
			if (!fill(in)) {
				*why = "receive-pack hung up";
				return false;
			}
		/* "-o ''" comes as an empty packet, which is an error
		 * elsewhere. */
		if (!memcmp(in->data + in->begin, empty, strlen(empty))) {
			text_adds(&push->options, empty);
			in->begin += strlen(empty);
			continue;
		}
		if (!read_packet(in, &pkt, why))
			return false;
		if (pkt.kind != PKT_DATA)
			return true;
		text_addf(&push->options, "%04zx", pkt.len + 4);
		text_add(&push->options, pkt.data, pkt.len);
	}
}

void push_set_namespace(struct push *push, const char *path)
{
	struct text prefix = { 0 };
	size_t i, len;

	for (; path && *path; path += len + (path[len] == '/')) {
		len = strcspn(path, "/");
		if (len)
			text_addf(&prefix, "refs/namespaces/%.*s/", (int)len,
			    path);
	}
	text_adds(&prefix, "");
	for (i = 0; i < push->nr; i++)
		push->commands[i].ref =
		    xasprintf("%s%s", prefix.data, push->commands[i].name);
	text_done(&prefix);
}

void push_refuse(struct push *push, const char *why)
{
	size_t i;

	for (i = 0; i < push->nr; i++)
		if (!push->commands[i].ng)
			push->commands[i].ng = xstrdup(why);
}

/* ---- out ---- */

void push_put_version(bool with_options, struct pkt_buf *out)
{
	static const char version[] = "version=1\0push-options";

	pkt_put(out, version,
	    with_options ? sizeof(version) - 1 : strlen(version));
	pkt_flush(out);
}

/* A reason has one line, and fits a packet. */
static void put_ng(const struct push_command *c, struct pkt_buf *out)
{
	struct text line = { 0 };

	text_addf(&line, "ng %s ", c->name);
	text_add_visible(&line, c->ng);
	pkt_put(out, line.data, utf8_cut(line.data, REFD_PAYLOAD_MAX));
	text_done(&line);
}

static void put_said(const struct push_command *c, struct pkt_buf *out)
{
	struct pkt pkt;
	size_t at = 0;

	while (at < c->said.len) {
		at += (size_t)pkt_parse(c->said.data + at, c->said.len - at,
		    &pkt);
		pkt_put(out, pkt.data, pkt.len);
	}
}

void push_put_report(const struct push *push, struct pkt_buf *out)
{
	size_t i;

	for (i = 0; i < push->nr; i++) {
		const struct push_command *c = &push->commands[i];

		if (c->unreportable)
			continue;
		if (c->ng) {
			put_ng(c, out);
		} else if (c->said.len) {
			put_said(c, out);
		} else {
			pkt_putf(out, "ok %s", c->name);
			if (c->is_gits)
				pkt_putf(out, "option fall-through");
		}
	}
	pkt_flush(out);
}
