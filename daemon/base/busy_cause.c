#include "daemon/base/busy_cause.h"

#include <stdatomic.h>
#include <stddef.h>

static const struct {
	const char *name, *text;
} causes[] = {
#define X(symbol, name, text) { name, text },
	BUSY_TABLE(X)
#undef X
};

static _Atomic uint64_t counted[BUSY_CAUSES];

enum refd_status busy_cause_count(enum busy_cause cause)
{
	atomic_fetch_add_explicit(&counted[cause], 1, memory_order_relaxed);
	return REFD_BUSY;
}

const char *busy_cause_text(enum busy_cause cause)
{
	return causes[cause].text;
}

const char *busy_cause_name(enum busy_cause cause)
{
	return causes[cause].name;
}

void busy_cause_counts(uint64_t counts[BUSY_CAUSES])
{
	size_t i;

	for (i = 0; i < BUSY_CAUSES; i++)
		counts[i] =
		    atomic_load_explicit(&counted[i], memory_order_relaxed);
}
