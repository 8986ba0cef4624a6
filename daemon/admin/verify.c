/*
 * refd verify: are the refs of a repository in order?
 *
 * Exit: 0 nothing is wrong, or nothing any more; 1 something is; 128 a
 * repository could not be looked at.
 */
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/admin/account.h"
#include "daemon/admin/admin.h"
#include "daemon/admin/verify.h"

#define PATIENCE_NS INT64_C(500000000)
/* Some 50 MB. */
#define LEDGER_MAX 200000

static const char *const severity_words[] = {
#define X(symbol, word) word,
	VERIFY_SEVERITY_TABLE(X)
#undef X
};

#define NR_SEVERITIES (sizeof(severity_words) / sizeof(severity_words[0]))

struct verify_tally {
	bool json, begun;
	int restored_fd; /* tells who runs this what was; -1: nobody */
	unsigned long counts[NR_SEVERITIES], repaired;
	unsigned long standing; /* and no mere notes */
};

static void usage(FILE *to)
{
	fprintf(to,
	    "usage: refd verify [--state DIR] [--repair] [--json] "
	    "<repository>...\n");
}

static int parse(int argc, char **argv, struct verify_options *opt,
    struct verify_tally *tally)
{
	static const struct option longs[] = {
		{ "state", required_argument, NULL, 's' },
		{ "repair", no_argument, NULL, 'r' },
		{ "json", no_argument, NULL, 'j' },
		{ "restored-fd", required_argument, NULL, 'f' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	opt->state = getenv("REFD_STATE");
	if (opt->state == NULL)
		opt->state = "/var/lib/refd";
	while ((c = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
		if (c == 's')
			opt->state = optarg;
		else if (c == 'r')
			opt->repair = true;
		else if (c == 'j')
			tally->json = true;
		else if (c == 'f')
			tally->restored_fd = atoi(optarg);
		else
			return c == 'h' ? 1 : -1;
	}
	return optind < argc ? 0 : -1;
}

/* ---- the report ---- */

static void print_string(const char *key, const char *text)
{
	printf("\"%s\": \"", key);
	for (; *text != '\0'; text++) {
		if (*text == '"' || *text == '\\')
			printf("\\%c", *text);
		else if ((unsigned char)*text < 0x20)
			printf("\\u%04x", (unsigned)*text);
		else
			putchar(*text);
	}
	putchar('"');
}

static void print_json(struct verify_tally *tally,
    const struct verify_finding *f)
{
	const struct {
		const char *key, *text;
	} members[] = {
		{ "id", f->word },
		{ "severity", severity_words[f->severity] },
		{ "repo", f->repo },
		{ "ref", f->ref },
		{ "file", f->file },
		{ "text", f->text },
		{ "remedy", f->remedy },
		{ "repair", f->repair != NULL ? f->repair : "" },
	};
	size_t i;

	printf("%s\n  {", tally->begun ? "," : "");
	for (i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		print_string(members[i].key, members[i].text);
		printf(", ");
	}
	printf("\"repaired\": %s}", f->is_repaired ? "true" : "false");
	tally->begun = true;
}

/* What is in a ref's file, or in its name, is not the terminal's. */
static void print_text(const char *text)
{
	const unsigned char *s = (const unsigned char *)text;

	for (; *s != '\0'; s++) {
		/* U+0080 to U+009F, as UTF-8. */
		if (s[0] == 0xc2 && s[1] >= 0x80 && s[1] < 0xa0)
			s++;
		else if (*s >= 0x20 && *s != 0x7f) {
			putchar(*s);
			continue;
		}
		putchar('?');
	}
}

static void print_for_people(const struct verify_finding *f)
{
	const char *subject = f->ref[0] != '\0' ? f->ref : f->file;

	printf("%s: %s: ", severity_words[f->severity], f->word);
	print_text(f->repo);
	if (subject[0] != '\0') {
		putchar(' ');
		print_text(subject);
	}
	printf(": ");
	print_text(f->text);
	printf("\n    %s: ", f->is_repaired ? "repaired" : "what helps");
	print_text(f->is_repaired ? f->repair : f->remedy);
	if (f->repair != NULL && !f->is_repaired) {
		printf("\n    ");
		print_text(f->repair);
	}
	putchar('\n');
}

static void found(void *arg, const struct verify_finding *f)
{
	struct verify_tally *tally = arg;

	tally->counts[f->severity]++;
	tally->repaired += f->is_repaired;
	tally->standing += f->severity != VERIFY_NOTE && !f->is_repaired;
	if (tally->json)
		print_json(tally, f);
	else
		print_for_people(f);
	if (tally->restored_fd >= 0 && f->value != NULL)
		dprintf(tally->restored_fd, "%s%c%s%c%s%c%s%c", f->repo, 0,
		    f->ref, 0, f->value, 0, f->from, 0);
}

static const char *plural(unsigned long nr)
{
	return nr == 1 ? "" : "s";
}

static void sum_up(const struct verify_tally *tally, int looked_at)
{
	const unsigned long *n = tally->counts;

	if (tally->json)
		printf("\n ], \"repositories\": %d, \"errors\": %lu, "
		       "\"warnings\": %lu, \"notes\": %lu, "
		       "\"repaired\": %lu}\n",
		    looked_at, n[VERIFY_ERROR], n[VERIFY_WARNING],
		    n[VERIFY_NOTE], tally->repaired);
	else
		printf("%d %s: %lu error%s, %lu warning%s, %lu note%s; "
		       "%lu repaired\n",
		    looked_at, looked_at == 1 ? "repository" : "repositories",
		    n[VERIFY_ERROR], plural(n[VERIFY_ERROR]), n[VERIFY_WARNING],
		    plural(n[VERIFY_WARNING]), n[VERIFY_NOTE],
		    plural(n[VERIFY_NOTE]), tally->repaired);
}

int admin_verify(int argc, char **argv)
{
	struct verify_tally tally = { .restored_fd = -1 };
	struct verify_options opt = { .sys = &sys_kernel,
		.patience_ns = PATIENCE_NS,
		.ledger_max = LEDGER_MAX,
		.found = found,
		.arg = &tally };
	int i, r, looked_at = 0;
	char *why;

	r = parse(argc, argv, &opt, &tally);
	if (r != 0) {
		usage(r < 0 ? stderr : stdout);
		return r < 0 ? 129 : 0;
	}
	if (!account_become_owner_of(argv[optind]))
		return 128;
	umask(0);
	if (tally.json)
		printf("{\"findings\": [");
	for (i = optind; i < argc; i++) {
		if (verify_repo(&opt, argv[i], &why) == 0) {
			looked_at++;
			continue;
		}
		fflush(stdout);
		fprintf(stderr, "refd: %s\n",
		    why != NULL ? why : "out of memory");
		free(why);
	}
	sum_up(&tally, looked_at);
	if (looked_at < argc - optind)
		return 128;
	return tally.standing > 0 ? 1 : 0;
}
