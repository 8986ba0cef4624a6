#include "client/librefd/sessions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int refd_sessions_add(struct sessions *s, const struct refd_txid *id)
{
	struct refd_txid *grown;

	if (s->nr == s->size) {
		grown = realloc(s->ids, (s->size + 8) * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		s->ids = grown;
		s->size += 8;
	}
	s->ids[s->nr++] = *id;
	return 0;
}

bool refd_sessions_take(struct sessions *s, const struct refd_txid *id)
{
	size_t i;

	for (i = 0; i < s->nr; i++) {
		if (!refd_txid_eq(&s->ids[i], id))
			continue;
		s->ids[i] = s->ids[--s->nr];
		return true;
	}
	return false;
}

void refd_sessions_clear(struct sessions *s)
{
	s->nr = 0;
}

void refd_sessions_done(struct sessions *s)
{
	free(s->ids);
	memset(s, 0, sizeof(*s));
}
