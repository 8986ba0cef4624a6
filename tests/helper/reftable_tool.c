/*
 * Reads and writes reftables for tests/long/reftable.sh.
 *
 *	reftable_tool refs DIR		lines as git for-each-ref would print
 *	reftable_tool find DIR		the same for the names on standard input
 *	reftable_tool logs DIR		the lines of all reflogs
 *	reftable_tool check DIR		checks every table
 *	reftable_tool append DIR	a batch of refd from lines on standard
 *					input, which may fold small tables
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

#include "daemon/store/tables/format/reftable_check.h"
#include "daemon/store/tables/format/reftable_merged.h"
#include "daemon/store/tables/stack/stack_sweep.h"
#include "daemon/store/tables/stack/stack_update.h"
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

	need(reftable_merged_open(&stack, section, "", false, rh_budget(),
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
	struct reftable_iterator it = { .budget = rh_budget() };
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

/* The lines of standard input. */
static struct reftable_record *records;
static size_t nr_records;

static void read_records(void)
{
	static char line[2 * REFD_PATH_MAX];
	struct reftable_record *rec;
	char *copy;

	while (fgets(line, sizeof(line), stdin) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		/* The records borrow the line until the end. */
		copy = strdup(line);
		records = realloc(records, (nr_records + 1) * sizeof(*records));
		if (copy == NULL || records == NULL)
			need(-ENOMEM, "memory");
		rec = &records[nr_records++];
		if (strncmp(copy, "log ", 4) == 0)
			parse_log(copy + 4, rec, 0);
		else
			parse_ref(copy, rec, 0);
	}
}

/* stack_record_of_fn */
static void record_of(void *arg, size_t i, struct reftable_record *record)
{
	const uint64_t index = record->update_index;

	(void)arg;
	*record = records[i];
	record->update_index = index;
}

/* One batch of refd, in the git-dir of reftable/. */
static void append(const char *path)
{
	char stage[REFD_PATH_MAX];
	struct stack_update u;
	struct token token;
	struct stack *s;
	int git_fd, stage_fd;

	read_records();
	snprintf(stage, sizeof(stage), "%s/..", path);
	git_fd =
	    SYS(sys, openat, SYS_TRUSTED, stage, O_RDONLY | O_DIRECTORY, 0);
	need(git_fd, stage);
	SYS(sys, mkdirat, git_fd, "refd-stage", 0777);
	stage_fd =
	    SYS(sys, openat, git_fd, "refd-stage", O_RDONLY | O_DIRECTORY, 0);
	need(stage_fd, "refd-stage");
	need(stack_open(sys, git_fd, &format, &s), "stack_open");
	need(token_init(&token, sys, stage_fd, 1), "token_init");
	stack_update_init(&u, s, git_fd, &token, 0);
	need(stack_update_begin(&u), "begin");
	u.may_fold = true;
	need(stack_table_make(&u, nr_records, record_of, NULL), "table");
	need(stack_update_lock(&u), "lock");
	need(stack_base_check(&u), "check");
	need(stack_update_list(&u), "list");
	need(stack_sync_base(&u, INT64_MIN, false), "sync_base");
	stack_sync_begin(&u, NULL, false);
	need(stack_sync_end(&u), "sync");
	need(stack_update_place(&u), "place");
	need(stack_update_unlock(&u), "unlock");
	need(stack_update_end(&u), "end");
	need(token_done(&token), "token_done");
	if (stack_tidy_begin(s))
		stack_tidy_end(s, 1, 1);
	stack_put(s);
	SYS(sys, close, stage_fd);
	SYS(sys, close, git_fd);
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
		sizes[i] = reftable_merge_size(&stack.tables[i]);
	if (!is_all && !reftable_merge_plan(sizes, stack.nr, &first, &end))
		return;
	need(rh_merge(&stack, first, end, &bytes, &fault), "merge");
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
		append(argv[2]);
	else if (strcmp(verb, "merge") == 0)
		merge(argc > 3);
	for (i = 0; strcmp(verb, "check") == 0 && i < stack.nr; i++)
		need(reftable_check(&stack.tables[i], rh_budget(), &fault),
		    "check");
	reftable_stack_close(&stack);
	return 0;
}
