/*
 * The allocator of a program whose allocations may fail: malloc(3), calloc(3)
 * and realloc(3) ask may_allocate(), which the program defines if
 * CAN_FAIL, and call the C library, or fail with ENOMEM. Any thread.
 *
 * The sanitizers have an allocator of their own. With a sanitizer, CAN_FAIL is
 * false, and nothing fails.
 */
#ifndef TESTS_LIB_FAILING_MALLOC_H
#define TESTS_LIB_FAILING_MALLOC_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CAN_FAIL false
#else
#define CAN_FAIL true

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

static bool may_allocate(void);

/* The function of the C library. The search allocates nothing. */
static void *libc_function(const char *name)
{
	void *function = dlsym(RTLD_NEXT, name);

	if (function == NULL)
		abort();
	return function;
}

static void *no_memory(void)
{
	errno = ENOMEM;
	return NULL;
}

void *malloc(size_t size)
{
	static void *(*next)(size_t);

	if (next == NULL)
		*(void **)&next = libc_function("malloc");
	return may_allocate() ? next(size) : no_memory();
}

void *calloc(size_t nr, size_t size)
{
	static void *(*next)(size_t, size_t);

	if (next == NULL)
		*(void **)&next = libc_function("calloc");
	return may_allocate() ? next(nr, size) : no_memory();
}

void *realloc(void *p, size_t size)
{
	static void *(*next)(void *, size_t);

	if (next == NULL)
		*(void **)&next = libc_function("realloc");
	return may_allocate() ? next(p, size) : no_memory();
}

#endif
#endif
