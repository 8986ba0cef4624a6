/*
 * Reads and writes reftables for tests/long/reftable.sh.
 *
 *	reftable_tool refs DIR		lines as git for-each-ref would print
 *	reftable_tool find DIR		the same for the names on standard input
 *	reftable_tool logs DIR		the lines of all reflogs
 *	reftable_tool check DIR		checks every table
 *	reftable_tool append DIR	a table from lines on standard input
 *	reftable_tool merge DIR		merges as git would, or all tables with
 *					the argument "all"
 *	reftable_tool time DIR		measures iteration, and look-ups of the
 *					names on standard input
 *
 * DIR is the directory reftable/. REFTABLE_FORMAT is sha1 (the default) or
 * sha256. A line for append: "<name> <id>", "<name> <id> <peeled>",
 * "<name> -> <target>" or "<name> deleted" for refs, then
 * "log <name> <from> <to> <message>" for logs.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/store/reftable/reftable_check.h"
#include "daemon/store/reftable/reftable_compact.h"
#include "daemon/store/reftable/reftable_merged.h"
#include "tests/lib/reftable_help.h"

static const struct sys *const sys = &sys_kernel;
static enum refd_object_format format;
static struct reftable_stack stack;
static struct reftable_fault fault;
static int dirfd;

static void need(int r, const char *what)
{
	char text[REFTABLE_FAULT_TEXT];

	if (r >= 0)
		return;
	fprintf(stderr, "%s: %s (%s)\n", what,
	    reftable_stack_fault_text(&fault, r, text), strerror(-r));
	exit(1);
}

static const char *hex_of(const struct refd_oid *oid)
{
	static char hex[2][REFD_OID_MAX_HEX + 1];
	static unsigned i;

	i = !i;
	return refd_oid_hex(oid, format, hex[i]);
}

static void print_ref(const struct reftable_record *rec)
{
	if (rec->ref.kind == REFTABLE_REF_SYMREF)
		printf("%s -> %.*s\n", rec->name, (int)rec->ref.target.len,
		    rec->ref.target.at);
	else if (rec->ref.kind == REFTABLE_REF_PEELED)
		printf("%s %s %s\n", rec->name, hex_of(&rec->ref.oid),
		    hex_of(&rec->ref.peeled));
	else
		printf("%s %s\n", rec->name, hex_of(&rec->ref.oid));
}

static bool is_marker(const struct reftable_log *log)
{
	return refd_oid_is_null(&log->from) && refd_oid_is_null(&log->to);
}

static void print_log(const struct reftable_record *rec)
{
	const struct reftable_log *log = &rec->log;

	if (is_marker(log))
		return;
	printf("%s %s %s %.*s <%.*s> %llu %+05d", rec->name, hex_of(&log->from),
	    hex_of(&log->to), (int)log->name.len, log->name.at,
	    (int)log->email.len, log->email.at, (unsigned long long)log->time_s,
	    log->zone);
	if (log->message.len > 1)
		printf("\t%.*s", (int)log->message.len, log->message.at);
	if (log->message.len <= 1 ||
	    log->message.at[log->message.len - 1] != '\n')
		putchar('\n');
}

static size_t each(enum reftable_section section, bool is_quiet)
{
	const struct reftable_record *rec;
	struct reftable_merged *merged;
	size_t nr = 0;
	int r;

	need(reftable_merged_open(stack.tables, stack.nr, section, "", false,
		 &merged, &fault),
	    "iteration");
	for (; (r = reftable_merged_next(merged, &rec, &fault)) > 0; nr++) {
		if (is_quiet)
			continue;
		if (section == REFTABLE_REFS)
			print_ref(rec);
		else
			print_log(rec);
	}
	need(r, "iteration");
	reftable_merged_free(merged);
	return nr;
}

static size_t find(bool is_quiet)
{
	static char line[REFD_PATH_MAX];
	struct reftable_iterator it = { 0 };
	size_t nr = 0;
	int r;

	for (; fgets(line, sizeof(line), stdin) != NULL; nr++) {
		line[strcspn(line, "\n")] = '\0';
		r = reftable_stack_find(&stack, line, &it, &fault);
		need(r, line);
		if (is_quiet)
			continue;
		if (r > 0)
			print_ref(&it.cursor.record);
		else
			printf("%s is absent\n", line);
	}
	reftable_iterator_done(&it);
	return nr;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void measure(void)
{
	double start = now(), end;
	size_t nr = each(REFTABLE_REFS, true);

	end = now();
	printf("iteration of %zu refs in %zu tables: %.1f ms\n", nr, stack.nr,
	    end - start);
	start = now();
	nr = find(true);
	end = now();
	printf("%zu look-ups: %.2f us each\n", nr,
	    (end - start) * 1000 / (double)(nr > 0 ? nr : 1));
}

static void parse_ref(char *line, struct reftable_record *rec, uint64_t index)
{
	char *value = strchr(line, ' '), *peeled;

	if (value == NULL)
		need(-EINVAL, line);
	*value++ = '\0';
	peeled = strchr(value, ' ');
	*rec = rh_ref(line, index, 0);
	if (strncmp(value, "-> ", 3) == 0) {
		*rec = rh_symref(line, index, value + 3);
	} else if (strcmp(value, "deleted") == 0) {
		*rec = rh_deleted(line, index);
	} else {
		need(refd_oid_parse(value, format, &rec->ref.oid), value);
		if (peeled != NULL) {
			rec->ref.kind = REFTABLE_REF_PEELED;
			need(refd_oid_parse(peeled + 1, format,
				 &rec->ref.peeled),
			    peeled);
		}
	}
}

static void parse_log(char *line, struct reftable_record *rec, uint64_t index)
{
	char *name = strtok(line, " "), *from = strtok(NULL, " ");
	char *to = strtok(NULL, " "), *message = strtok(NULL, "\n");

	if (message == NULL)
		need(-EINVAL, line);
	*rec = rh_log(name, index, 0, 0, message);
	need(refd_oid_parse(from, format, &rec->log.from), from);
	need(refd_oid_parse(to, format, &rec->log.to), to);
}

static void append(void)
{
	uint64_t index =
	    stack.nr > 0 ? stack.tables[stack.nr - 1].max_index + 1 : 1;
	struct rh_bytes bytes = { 0 };
	struct reftable_writer *w =
	    reftable_writer_new(format, index, index, rh_append, &bytes);
	struct reftable_record rec;
	static char line[2 * REFD_PATH_MAX];

	while (fgets(line, sizeof(line), stdin) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		if (strncmp(line, "log ", 4) == 0)
			parse_log(line + 4, &rec, index);
		else
			parse_ref(line, &rec, index);
		need(reftable_writer_add(w, &rec), line);
	}
	need(reftable_writer_finish(w), "the end");
	reftable_writer_free(w);
	rh_add(sys, dirfd, &bytes, index, index, (uint32_t)time(NULL));
	rh_free(&bytes);
}

static void write_list(size_t first, size_t end, const char *name)
{
	struct rh_bytes list = { 0 };
	const char *line;
	size_t i;

	for (i = 0; i < stack.nr; i++) {
		if (i > first && i < end)
			continue;
		line = i == first ? name : stack.tables[i].name;
		rh_append(&list, line, strlen(line));
		rh_append(&list, "\n", 1);
	}
	rh_put(sys, dirfd, REFTABLE_LIST, list.data, list.len);
	rh_free(&list);
}

static void merge(bool is_all)
{
	uint64_t sizes[REFTABLE_TABLES_MAX];
	char name[REFTABLE_WRITER_NAME];
	struct rh_bytes bytes = { 0 };
	size_t i, first = 0, end = stack.nr;

	for (i = 0; i < stack.nr; i++)
		sizes[i] = reftable_compact_size(&stack.tables[i]);
	if (!is_all && !reftable_compact_plan(sizes, stack.nr, &first, &end))
		return;
	need(reftable_compact_merge(&stack, first, end, rh_append, &bytes,
		 &fault),
	    "merge");
	reftable_writer_name(stack.tables[first].context.min_index,
	    stack.tables[end - 1].max_index, 0xfeed, name);
	rh_put(sys, dirfd, name, bytes.data, bytes.len);
	write_list(first, end, name);
	for (i = first; i < end; i++)
		SYS(sys, unlinkat, dirfd, stack.tables[i].name);
	rh_free(&bytes);
}

int main(int argc, char **argv)
{
	const char *hash = getenv("REFTABLE_FORMAT"), *verb = argv[1];
	size_t i;

	if (argc < 3)
		return 129;
	if (hash != NULL && refd_object_format_from_name(hash, &format) < 0)
		return 129;
	dirfd =
	    SYS(sys, openat, SYS_TRUSTED, argv[2], O_RDONLY | O_DIRECTORY, 0);
	need(dirfd, argv[2]);
	need(reftable_stack_open(sys, dirfd, format, NULL, &stack, &fault),
	    "open");
	if (strcmp(verb, "refs") == 0)
		each(REFTABLE_REFS, false);
	else if (strcmp(verb, "logs") == 0)
		each(REFTABLE_LOGS, false);
	else if (strcmp(verb, "find") == 0)
		find(false);
	else if (strcmp(verb, "time") == 0)
		measure();
	else if (strcmp(verb, "append") == 0)
		append();
	else if (strcmp(verb, "merge") == 0)
		merge(argc > 3);
	for (i = 0; strcmp(verb, "check") == 0 && i < stack.nr; i++)
		need(reftable_check(&stack.tables[i], &fault), "check");
	reftable_stack_close(&stack);
	return 0;
}
