/*
 * Any bytes as the content of a loose ref, read twice: by loose_parse and by a
 * plain and slow implementation of git's rules. The allocation has the exact
 * size, so the sanitizer detects a read past the end.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/files/format/loose.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool ok)
{
	if (!ok)
		abort();
}

/* strbuf_rtrim() and skipping of blanks, as in files_read_raw_ref(). TEXT has a
 * NUL behind it. Returns the target, inside TEXT. */
static char *slow_target(char *text, size_t len)
{
	char *target = text + 4;

	while (len > 4 && strchr(" \t\r\n", text[len - 1]) != NULL &&
	    text[len - 1] != '\0')
		text[--len] = '\0';
	return target + strspn(target, " \t\r\n");
}

static void check(char *text, size_t len, const struct loose_value *value)
{
	char hex[REFD_OID_MAX_HEX + 1];
	size_t i, digits = strspn(text, "0123456789abcdefABCDEF");

	if (strncmp(text, "ref:", 4) == 0) {
		expect(value->kind == LOOSE_SYMREF);
		expect(strcmp(value->target, slow_target(text, len)) == 0);
		return;
	}
	expect(value->target == NULL);
	if (digits != REFD_SHA1_HEX ||
	    strchr(" \t\r\n", text[REFD_SHA1_HEX]) == NULL) {
		expect(value->kind == LOOSE_BROKEN);
		return;
	}
	expect(value->kind == LOOSE_OID);
	refd_oid_hex(&value->oid, REFD_FORMAT_SHA1, hex);
	for (i = 0; i < REFD_SHA1_HEX; i++)
		expect(hex[i] == text[i] || hex[i] == (text[i] | 0x20));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct loose_value value;
	char *exact, *text;

	exact = malloc(size > 0 ? size : 1);
	text = malloc(size + 1);
	if (exact != NULL && text != NULL) {
		if (size > 0) {
			memcpy(exact, data, size);
			memcpy(text, data, size);
		}
		text[size] = '\0';
		if (loose_parse(exact, size, REFD_FORMAT_SHA1, &value) == 0) {
			check(text, size, &value);
			loose_value_done(&value);
		}
	}
	free(text);
	free(exact);
	return 0;
}
