#include "proto/verb.h"

const struct refd_verb_row refd_verbs[REFD_VERBS] = {
#define X(symbol, wire_name, class, who, when, answer, loss)                   \
	{ wire_name, REFD_CLASS_##class, REFD_WHO_##who, REFD_WHEN_##when,     \
		REFD_ANSWER_##answer, REFD_LOSS_##loss },
	REFD_VERB_TABLE(X)
#undef X
};

bool refd_verb_has_updates(enum refd_verb verb)
{
	return refd_verbs[verb].class == REFD_CLASS_UPDATES;
}
