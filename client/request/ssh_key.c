#include "client/request/ssh_key.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "proto/lib/cli.h"
#include "proto/lib/sha.h"

static const char digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* Decodes LEN digits to BLOB, which has room. False if there are other
 * bytes. */
static bool decode(const char *text, size_t len, struct text *blob)
{
	uint32_t bits = 0;
	const char *digit;
	size_t i;

	while (len > 0 && text[len - 1] == '=')
		len--;
	for (i = 0; i < len; i++) {
		digit = text[i] ? strchr(digits, text[i]) : NULL;
		if (!digit)
			return false;
		bits = bits << 6 | (uint32_t)(digit - digits);
		if (i % 4 > 0)
			text_addc(blob, (char)(bits >> (6 - i % 4 * 2) & 0xff));
	}
	return true;
}

static void encode(const uint8_t *bytes, size_t len, char *text)
{
	uint32_t bits = 0;
	size_t i, have = 0;

	for (i = 0; i < len; i++) {
		bits = bits << 8 | bytes[i];
		for (have += 8; have >= 6; have -= 6)
			*text++ = digits[bits >> (have - 6) & 63];
	}
	if (have > 0)
		*text++ = digits[bits << (6 - have) & 63];
	*text = '\0';
}

/* A key begins with its own type: a length of four bytes, and the name. */
static bool is_of_type(const struct text *blob, const char *type, size_t len)
{
	return len < 256 && blob->len > len + 4 &&
	    !memcmp(blob->data, "\0\0\0", 3) &&
	    (unsigned char)blob->data[3] == len &&
	    !memcmp(blob->data + 4, type, len);
}

/* LINE is "<type> SP <digits>", and may go on after a further blank. */
static bool name_key(const char *line, char name[SSH_KEY_NAME_MAX + 1])
{
	const size_t type = strcspn(line, " \n");
	const char *text = line + type + 1;
	uint8_t sum[SHA256_BYTES];
	struct text blob = { 0 };
	struct sha sha;
	bool ok;

	if (line[type] != ' ')
		return false;
	ok = decode(text, strcspn(text, " \n"), &blob) &&
	    is_of_type(&blob, line, type) &&
	    !memmem(line, type, "-cert-", strlen("-cert-"));
	if (ok) {
		sha_init(&sha, REFD_FORMAT_SHA256);
		sha_add(&sha, blob.data, blob.len);
		sha_done(&sha, sum);
		encode(sum, sizeof(sum), stpcpy(name, "SHA256:"));
	}
	text_done(&blob);
	return ok;
}

bool ssh_key_name(const char *path, char name[SSH_KEY_NAME_MAX + 1])
{
	static const char method[] = "publickey ";
	struct text file = { 0 };
	const char *line = NULL;
	bool ok = false;

	if (text_read_regular(&file, path, SMALL_FILE_BYTES) == 0)
		line = file.data;
	while (line && !ok) {
		if (has_prefix(line, method))
			ok = name_key(line + strlen(method), name);
		line = strchr(line, '\n');
		if (line)
			line++;
	}
	text_done(&file);
	return ok;
}
