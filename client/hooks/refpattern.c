#include "client/hooks/refpattern.h"

#include <string.h>

void refpattern_parse(struct refpattern *p, const char *value)
{
	const char *colon = strchr(value, ':');
	const char *at;

	p->adds = p->deletes = p->modifies = !colon;
	p->is_negative = false;
	for (at = value; colon && at < colon; at++) {
		p->adds |= *at == 'a';
		p->deletes |= *at == 'd';
		p->modifies |= *at == 'm';
		p->is_negative |= *at == '!';
	}
	p->prefix = colon ? colon + 1 : value;
	p->len = strlen(p->prefix);
	while (p->len && p->prefix[p->len - 1] == '/')
		p->len--;
}

static bool has_pattern_prefix(const struct refpattern *p, const char *name)
{
	return !strncmp(name, p->prefix, p->len) &&
	    (!name[p->len] || name[p->len] == '/');
}

bool refpattern_matches(const struct refpattern *p, const char *name,
    bool from_nothing, bool to_nothing)
{
	if ((from_nothing && !p->adds) || (to_nothing && !p->deletes) ||
	    (!from_nothing && !to_nothing && !p->modifies))
		return false;
	return has_pattern_prefix(p, name) != p->is_negative;
}
