/*
 * Hello, the first message of the server. A client ignores a line of hello that
 * begins with an unknown word, so hello can be extended without a new version,
 * and no other message can.
 */
#include "proto/wire.h"

#include <string.h>

#include "proto/verb.h"

static const char *const states[] = {
	[REFD_RECOVERING] = "recovering",
	[REFD_SERVING] = "serving",
	[REFD_DRAINING] = "draining",
};

#define NR_STATES (sizeof(states) / sizeof(states[0]))

const char *refd_server_state_name(enum refd_server_state state)
{
	return states[state];
}

void refd_hello_encode(const struct refd_hello *hello, struct pkt_buf *out)
{
	const struct refd_verb_row *verb;

	pkt_putf(out, "refd version=%u", (unsigned)hello->version);
	pkt_putf(out, "software %s", hello->software);
	pkt_putf(out, "state %s", refd_server_state_name(hello->state));
	pkt_putf(out, "horizon %llu", (unsigned long long)hello->horizon_ms);
	pkt_putf(out, "pid %llu", (unsigned long long)hello->pid);
	pkt_putf(out, "limit updates=%u bytes=%u", (unsigned)hello->max_updates,
	    (unsigned)hello->max_bytes);
	if (hello->total > 0)
		pkt_putf(out, "progress done=%llu total=%llu",
		    (unsigned long long)hello->done,
		    (unsigned long long)hello->total);
	for (verb = refd_verbs; verb < refd_verbs + REFD_VERBS; verb++)
		if (verb->who != REFD_WHO_ADMIN &&
		    verb->class != REFD_CLASS_END)
			pkt_putf(out, "capability %s", verb->word);
	/* Headers, which have no verb of their own. */
	pkt_putf(out, "capability gate");
	pkt_putf(out, "capability origin");
	pkt_flush(out);
}

static bool read_software(struct refd_hello *hello, struct refd_slice value)
{
	return refd_slice_word(value, hello->software, sizeof(hello->software));
}

static bool read_state(struct refd_hello *hello, struct refd_slice value)
{
	size_t i;

	for (i = 0; i < NR_STATES; i++) {
		if (refd_slice_is(value, states[i])) {
			hello->state = (enum refd_server_state)i;
			return true;
		}
	}
	return false;
}

static bool read_horizon(struct refd_hello *hello, struct refd_slice value)
{
	return refd_slice_u64(value, &hello->horizon_ms);
}

static bool read_pid(struct refd_hello *hello, struct refd_slice value)
{
	return refd_slice_u64(value, &hello->pid);
}

/* "name=number", and a space if another field follows. */
static bool read_long(struct refd_slice *rest, const char *name,
    uint64_t *number)
{
	struct refd_slice field, key;

	if (!refd_slice_cut(rest, ' ', &field))
		return false;
	refd_slice_cut(&field, '=', &key);
	return refd_slice_is(key, name) && field.data != NULL &&
	    refd_slice_u64(field, number);
}

static bool read_named(struct refd_slice *rest, const char *name,
    uint32_t *number)
{
	uint64_t wide;

	if (!read_long(rest, name, &wide) || wide > UINT32_MAX)
		return false;
	*number = (uint32_t)wide;
	return true;
}

/* The owner of a repository can run its daemon, so hello can be hostile to the
 * client of another user. A limit of zero would let this client make batches
 * without end. */
static bool read_limit(struct refd_hello *hello, struct refd_slice value)
{
	return read_named(&value, "updates", &hello->max_updates) &&
	    read_named(&value, "bytes", &hello->max_bytes) &&
	    value.data == NULL && hello->max_updates > 0 &&
	    hello->max_bytes > 0;
}

static bool read_progress(struct refd_hello *hello, struct refd_slice value)
{
	return read_long(&value, "done", &hello->done) &&
	    read_long(&value, "total", &hello->total) && value.data == NULL;
}

/* All lines must come exactly once, except the last line, which is optional. */
static const struct {
	const char *key;
	bool (*read)(struct refd_hello *hello, struct refd_slice value);
} lines[] = {
	{ "software", read_software },
	{ "state", read_state },
	{ "horizon", read_horizon },
	{ "pid", read_pid },
	{ "limit", read_limit },
	{ "progress", read_progress },
};

#define NR_LINES (sizeof(lines) / sizeof(lines[0]))
#define PROGRESS (1u << (NR_LINES - 1))
#define ALL_SEEN (PROGRESS - 1)

static bool read_version(struct refd_slice rest, struct refd_hello *hello)
{
	struct refd_slice word;

	refd_slice_cut(&rest, ' ', &word);
	return refd_slice_is(word, "refd") &&
	    read_named(&rest, "version", &hello->version) &&
	    rest.data == NULL && hello->version > 0;
}

static enum refd_decoded read_line(struct refd_hello_decoder *dec,
    struct refd_slice rest, struct refd_hello *hello, const char **why)
{
	struct refd_slice key;
	size_t i;

	if (!dec->begun) {
		memset(hello, 0, sizeof(*hello));
		dec->begun = true;
		if (read_version(rest, hello))
			return REFD_DECODE_MORE;
		*why = "not a refd";
		return REFD_DECODE_FATAL;
	}
	refd_slice_cut(&rest, ' ', &key);
	for (i = 0; i < NR_LINES; i++) {
		if (!refd_slice_is(key, lines[i].key))
			continue;
		if ((dec->seen & 1u << i) != 0 || rest.data == NULL ||
		    !lines[i].read(hello, rest))
			break;
		dec->seen |= 1u << i;
		return REFD_DECODE_MORE;
	}
	if (i == NR_LINES)
		return REFD_DECODE_MORE;
	*why = "malformed hello";
	return REFD_DECODE_FATAL;
}

enum refd_decoded refd_hello_decode(struct refd_hello_decoder *dec,
    const struct pkt *pkt, struct refd_hello *hello, const char **why)
{
	struct refd_slice packet = { pkt->data, pkt->len };

	dec->bytes += PKT_DIGITS + pkt->len;
	if (dec->bytes > REFD_HELLO_BYTES_MAX) {
		*why = "hello is too long";
		return REFD_DECODE_FATAL;
	}
	switch (pkt->kind) {
	case PKT_DATA:
		return read_line(dec, packet, hello, why);
	case PKT_DELIM:
		break;
	case PKT_FLUSH:
		if ((dec->seen & ALL_SEEN) != ALL_SEEN)
			break;
		memset(dec, 0, sizeof(*dec));
		return REFD_DECODE_DONE;
	}
	*why = "malformed hello";
	return REFD_DECODE_FATAL;
}
