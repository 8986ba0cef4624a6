#include "daemon/group/service/damage.h"

#include <stdlib.h>
#include <string.h>

char *damage_path(const char *path)
{
	struct text text = { 0 };

	text_adds(&text, "");
	for (; *path; path++)
		text_addf(&text,
		    *path >= ' ' && *path < 0x7f && *path != '%' ? "%c" :
								   "%%%02x",
		    (unsigned char)*path);
	return text.data;
}

void damage_add_absent(struct text *list, const char *hex, const char *path)
{
	char *printed = damage_path(path);

	text_addf(list, "%s%s %s\n", list->len ? "" : "\n", hex, printed);
	free(printed);
}

bool damage_is_list(const char *damage)
{
	return *damage == '\n';
}

void damage_drop_absent(char *list, const char *hex)
{
	char *begin = xasprintf("\n%s ", hex), *at = strstr(list, begin);
	const char *rest = at ? strchrnul(at + 1, '\n') : NULL;

	if (at)
		memmove(at, rest, strlen(rest) + 1);
	if (!strchr(list, ' '))
		*list = '\0';
	free(begin);
}

char *damage_next_absent(const char *list, size_t *at,
    char hex[FETCH_ID_HEX + 1])
{
	const char *line = list + *at + strspn(list + *at, "\n");
	const char *end = strchrnul(line, '\n'), *path = strchr(line, ' ');

	*at = (size_t)(end - list);
	if (!path || path > end)
		return NULL;
	snprintf(hex, FETCH_ID_HEX + 1, "%.*s", FETCH_ID_HEX, line);
	return xasprintf("%.*s", (int)(end - path - 1), path + 1);
}
