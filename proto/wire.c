#include "proto/wire.h"

#include <stdio.h>
#include <string.h>

#include "proto/arena.h"
#include "proto/detail.h"
#include "proto/hex.h"

const struct refd_refusal refd_refusal_no_memory = { REFD_BUSY,
	"out of memory" };

bool refd_slice_is(struct refd_slice s, const char *word)
{
	return s.len == strlen(word) && memcmp(s.data, word, s.len) == 0;
}

bool refd_slice_has_nul(struct refd_slice s)
{
	return memchr(s.data, '\0', s.len) != NULL;
}

bool refd_slice_cut(struct refd_slice *s, char separator,
    struct refd_slice *field)
{
	const char *at;

	if (s->data == NULL)
		return false;
	*field = *s;
	at = memchr(s->data, separator, s->len);
	if (at == NULL) {
		s->data = NULL;
		s->len = 0;
		return true;
	}
	field->len = (size_t)(at - s->data);
	s->data = at + 1;
	s->len -= field->len + 1;
	return true;
}

bool refd_slice_word(struct refd_slice s, char *word, size_t size)
{
	if (s.len >= size || refd_slice_has_nul(s))
		return false;
	memcpy(word, s.data, s.len);
	word[s.len] = '\0';
	return true;
}

bool refd_slice_u64(struct refd_slice s, uint64_t *number)
{
	uint64_t n = 0;
	unsigned digit;
	size_t i;

	if (s.len == 0 || (s.len > 1 && s.data[0] == '0'))
		return false;
	for (i = 0; i < s.len; i++) {
		if (s.data[i] < '0' || s.data[i] > '9')
			return false;
		digit = (unsigned)(s.data[i] - '0');
		if (n > (UINT64_MAX - digit) / 10)
			return false;
		n = n * 10 + digit;
	}
	*number = n;
	return true;
}

bool refd_slice_u32(struct refd_slice s, uint32_t *number)
{
	uint64_t n;

	if (!refd_slice_u64(s, &n) || n > UINT32_MAX)
		return false;
	*number = (uint32_t)n;
	return true;
}

static bool is_lower_hex(struct refd_slice s)
{
	size_t i;

	for (i = 0; i < s.len; i++) {
		if (!(s.data[i] >= '0' && s.data[i] <= '9') &&
		    !(s.data[i] >= 'a' && s.data[i] <= 'f'))
			return false;
	}
	return true;
}

bool refd_slice_oid(struct refd_slice s, enum refd_object_format format,
    struct refd_oid *oid)
{
	return s.len == 2 * refd_object_format_bytes(format) &&
	    is_lower_hex(s) && refd_oid_parse(s.data, format, oid) == 0;
}

bool refd_slice_any_oid(struct refd_slice s, bool *has_format,
    enum refd_object_format *format, struct refd_oid *oid)
{
	if (!*has_format)
		*format = s.len == REFD_OID_MAX_HEX ? REFD_FORMAT_SHA256 :
						      REFD_FORMAT_SHA1;
	*has_format = true;
	return refd_slice_oid(s, *format, oid);
}

bool refd_slice_txid(struct refd_slice s, struct refd_txid *id)
{
	char hex[REFD_TXID_HEX + 1];

	return s.len == REFD_TXID_HEX && is_lower_hex(s) &&
	    refd_slice_word(s, hex, sizeof(hex)) &&
	    refd_txid_parse(hex, id) == 0;
}

bool refd_slice_position(struct refd_slice s, struct refd_position *position)
{
	struct refd_slice lsn;

	position->nr = 0;
	return refd_slice_cut(&s, ' ', &lsn) &&
	    refd_slice_u64(lsn, &position->lsn) &&
	    (s.data == NULL ||
		(refd_slice_u32(s, &position->nr) && position->nr != 0));
}

void refd_position_put(struct pkt_buf *out, const char *key,
    const struct refd_position *position)
{
	if (position->nr == 0)
		pkt_putf(out, "%s %llu", key,
		    (unsigned long long)position->lsn);
	else
		pkt_putf(out, "%s %llu %u", key,
		    (unsigned long long)position->lsn, (unsigned)position->nr);
}

bool refd_slice_journal(struct refd_slice s, uint8_t id[REFD_JOURNAL_ID_BYTES])
{
	return s.len == 2 * REFD_JOURNAL_ID_BYTES && is_lower_hex(s) &&
	    refd_hex_parse(s.data, id, REFD_JOURNAL_ID_BYTES) == 0;
}

void refd_wire_put_journal(struct pkt_buf *out,
    const uint8_t id[REFD_JOURNAL_ID_BYTES])
{
	char hex[2 * REFD_JOURNAL_ID_BYTES + 1];

	pkt_putf(out, "journal %s",
	    refd_hex_put(id, REFD_JOURNAL_ID_BYTES, hex));
}

bool refd_slice_token(struct refd_slice s, uint8_t id[REFD_JOURNAL_ID_BYTES],
    uint64_t *lsn)
{
	struct refd_slice journal;

	refd_slice_cut(&s, ':', &journal);
	return refd_slice_journal(journal, id) && s.data != NULL &&
	    refd_slice_u64(s, lsn) && *lsn != 0;
}

char *refd_token_text(const uint8_t journal[REFD_JOURNAL_ID_BYTES],
    uint64_t lsn, char text[REFD_TOKEN_MAX + 1])
{
	char hex[2 * REFD_JOURNAL_ID_BYTES + 1];

	snprintf(text, REFD_TOKEN_MAX + 1, "%s:%llu",
	    refd_hex_put(journal, REFD_JOURNAL_ID_BYTES, hex),
	    (unsigned long long)lsn);
	return text;
}

/* The marks of a detail are NUL, and the first mark follows an empty text. */
static bool is_detail(struct refd_slice s)
{
	return s.len > 1 && s.data[0] == '\0' && s.data[1] != '\0' &&
	    memchr(s.data, REFD_DETAIL_MARK, s.len) == NULL;
}

const char *refd_slice_text(struct refd_slice s, struct refd_arena *arena,
    const char **copy)
{
	bool is_text = !refd_slice_has_nul(s);
	char *text;
	size_t i;

	if (s.len == 0)
		return NULL;
	if (is_text ? s.data[0] == REFD_DETAIL_MARK : !is_detail(s))
		return "malformed text";
	text = refd_arena_string(arena, s.data, s.len);
	if (text == NULL)
		return "out of memory";
	for (i = 0; i < s.len && !is_text; i++)
		if (text[i] == '\0')
			text[i] = REFD_DETAIL_MARK;
	*copy = text;
	return NULL;
}

void refd_wire_put_text(struct pkt_buf *out, const char *text)
{
	size_t len = strlen(text);
	char *at;

	if (*text != REFD_DETAIL_MARK || pkt_buf_failed(out))
		return;
	if (len > REFD_MESSAGE_MAX)
		len = REFD_MESSAGE_MAX;
	for (at = out->data + out->len - len; len > 0; len--, at++)
		if (*at == REFD_DETAIL_MARK)
			*at = '\0';
}

bool refd_txid_is_null(const struct refd_txid *id)
{
	static const struct refd_txid none;

	return refd_txid_eq(id, &none);
}

static const char *const kinds[] = {
	[REFD_ANSWER_RESULTS] = "results",
	[REFD_ANSWER_PREPARED] = "prepared",
	[REFD_ANSWER_PENDING] = "pending",
	[REFD_ANSWER_NEVER_SEEN] = "never-seen",
	[REFD_ANSWER_EXPIRED] = "expired",
	[REFD_ANSWER_REFUSED] = "refused",
	[REFD_ANSWER_PONG] = "pong",
	[REFD_ANSWER_PAIRS] = "pairs",
	[REFD_ANSWER_RECORDS] = "records",
};

#define NR_KINDS (sizeof(kinds) / sizeof(kinds[0]))

const char *refd_answer_kind_name(enum refd_answer_kind kind)
{
	return kinds[kind];
}

bool refd_slice_answer_kind(struct refd_slice s, enum refd_answer_kind *kind)
{
	size_t i;

	for (i = 0; i < NR_KINDS; i++) {
		if (refd_slice_is(s, kinds[i])) {
			*kind = (enum refd_answer_kind)i;
			return true;
		}
	}
	return false;
}
