#include "proto/detail.h"

#include <stdlib.h>
#include <string.h>

#define X(symbol, word) word,
static const char *const words[] = { REFD_DETAIL_TABLE(X) };
#undef X

#define NR_WORDS (sizeof(words) / sizeof(words[0]))

static char *append(char *at, const char *s)
{
	*at++ = REFD_DETAIL_MARK;
	for (; *s != '\0'; s++)
		*at++ = *s == REFD_DETAIL_MARK ? '?' : *s;
	return at;
}

char *refd_detail_make(enum refd_detail_kind kind,
    const char *const args[REFD_DETAIL_ARGS])
{
	size_t i, size = strlen(words[kind]) + 2;
	char *text, *at;

	for (i = 0; i < REFD_DETAIL_ARGS && args[i] != NULL; i++)
		size += strlen(args[i]) + 1;
	text = malloc(size);
	if (text == NULL)
		return NULL;
	at = append(text, words[kind]);
	for (i = 0; i < REFD_DETAIL_ARGS && args[i] != NULL; i++)
		at = append(at, args[i]);
	*at = '\0';
	return text;
}

/* Returns the part of *TEXT behind its mark, and moves *TEXT behind this
 * part. */
static struct refd_detail_arg cut(const char **text)
{
	struct refd_detail_arg part = { *text, 0 };

	if (**text == '\0')
		return part;
	part.data++;
	while (part.data[part.len] != '\0' &&
	    part.data[part.len] != REFD_DETAIL_MARK)
		part.len++;
	*text = part.data + part.len;
	return part;
}

static enum refd_detail_kind kind_of(struct refd_detail_arg word)
{
	size_t i = 0;

	while (i < NR_WORDS &&
	    (strlen(words[i]) != word.len ||
		memcmp(words[i], word.data, word.len) != 0))
		i++;
	return (enum refd_detail_kind)i;
}

bool refd_detail_read(const char *text, struct refd_detail *detail)
{
	size_t i;

	if (text == NULL || *text != REFD_DETAIL_MARK)
		return false;
	detail->kind = kind_of(cut(&text));
	for (i = 0; i < REFD_DETAIL_ARGS; i++)
		detail->args[i] = cut(&text);
	return true;
}
