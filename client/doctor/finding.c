#include "client/doctor/finding.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/request/output.h"

static const struct {
	const char *name;
	enum severity severity;
	enum mend mend;
	const char *remedy;
} kinds[] = {
#define X(symbol, id, severity, mend, remedy) { id, severity, mend, remedy },
	FINDING_TABLE(X)
#undef X
};

static const char *const severities[] = {
#define X(symbol, word) word,
	SEVERITY_TABLE(X)
#undef X
};

void found(struct findings *f, enum finding_id id, const char *where,
    const char *fmt, ...)
{
	struct finding *new;
	va_list ap;

	f->list = xrealloc(f->list, (f->nr + 1) * sizeof(*f->list));
	new = &f->list[f->nr++];
	new->id = id;
	new->where = xstrdup(where);
	va_start(ap, fmt);
	if (vasprintf(&new->what, fmt, ap) < 0)
		die("out of memory");
	va_end(ap);
}

void findings_done(struct findings *f)
{
	size_t i;

	for (i = 0; i < f->nr; i++) {
		free(f->list[i].where);
		free(f->list[i].what);
	}
	free(f->list);
	memset(f, 0, sizeof(*f));
}

bool findings_have(const struct findings *f, enum finding_id id,
    const char *where)
{
	size_t i;

	for (i = 0; i < f->nr; i++)
		if (f->list[i].id == id && !strcmp(f->list[i].where, where))
			return true;
	return false;
}

enum mend finding_mend(enum finding_id id)
{
	return kinds[id].mend;
}

enum severity finding_severity(enum finding_id id)
{
	return kinds[id].severity;
}

/* ---- said ---- */

static void put_remedy(struct text *t, const struct finding *f)
{
	const char *at = kinds[f->id].remedy, *hole;

	for (; (hole = strstr(at, "{}")); at = hole + 2) {
		text_add(t, at, (size_t)(hole - at));
		text_adds(t, f->where);
	}
	text_adds(t, at);
}

void finding_print(const struct finding *f, bool is_mended)
{
	struct text t = { 0 };

	text_addf(&t, "%s: %s: %s: %s",
	    is_mended ? "mended" : severities[kinds[f->id].severity],
	    kinds[f->id].name, f->where, f->what);
	output_visible(t.data);
	putchar('\n');
	text_clear(&t);
	if (!is_mended) {
		put_remedy(&t, f);
		printf("    ");
		output_visible(t.data);
		putchar('\n');
	}
	text_done(&t);
}

void finding_print_json(const struct finding *f, bool is_mended)
{
	struct text remedy = { 0 };

	put_remedy(&remedy, f);
	printf("{\"id\":\"%s\",\"severity\":\"%s\",\"where\":",
	    kinds[f->id].name, severities[kinds[f->id].severity]);
	output_json_string(f->where);
	fputs(",\"what\":", stdout);
	output_json_string(f->what);
	fputs(",\"remedy\":", stdout);
	output_json_string(remedy.data);
	printf(",\"can_fix\":%s,\"fixed\":%s}",
	    kinds[f->id].mend == MEND_NOT ? "false" : "true",
	    is_mended ? "true" : "false");
	text_done(&remedy);
}
