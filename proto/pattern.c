#include "proto/pattern.h"

#include <stdint.h>
#include <string.h>

#include "proto/limits.h"

/* A ref of a linked worktree has the longest name: "worktrees/<id>/<name>". */
#define REFD_PATTERN_WORDS (2 * (REFD_REFNAME_MAX + 64) / 64)

size_t refd_pattern_literal(const char *pattern)
{
	return strcspn(pattern, "*?");
}

static bool is_beginning(const char *pattern, size_t len)
{
	return len > 0 && pattern[len - 1] == '/' &&
	    refd_pattern_literal(pattern) == len;
}

bool refd_pattern_is_name(const char *pattern)
{
	size_t len = strlen(pattern);

	return refd_pattern_literal(pattern) == len &&
	    !is_beginning(pattern, len);
}

/*
 * Set of places in the name where the pattern read so far can end: bit i stands
 * for the place in front of byte i. The pattern is read once, so the time is
 * the length of the pattern times nr_words, for any number of stars.
 */
struct places {
	size_t nr_words;
	uint64_t reached[REFD_PATTERN_WORDS];
};

static void set_bit(uint64_t *words, size_t i)
{
	words[i / 64] |= UINT64_C(1) << i % 64;
}

/* Moves all places forward by one byte of the name. AT is the set of places of
 * the bytes that are allowed; NULL allows any byte. Returns false if no place
 * is left. */
static bool step(struct places *p, const uint64_t *at)
{
	uint64_t carry = 0, word, any = 0;
	size_t i;

	for (i = 0; i < p->nr_words; i++) {
		word = at != NULL ? p->reached[i] & at[i] : p->reached[i];
		p->reached[i] = word << 1 | carry;
		carry = word >> 63;
		any |= p->reached[i];
	}
	return any != 0;
}

/* Adds all places behind the first. */
static void fill(struct places *p)
{
	size_t i = 0;

	while (p->reached[i] == 0)
		i++;
	p->reached[i] |= -p->reached[i];
	while (++i < p->nr_words)
		p->reached[i] = UINT64_MAX;
}

static bool glob_matches(const char *pattern, const char *name, size_t len)
{
	uint64_t at[256 * REFD_PATTERN_WORDS];
	struct places p = { .nr_words = len / 64 + 1, .reached = { 1 } };
	bool any = true;
	size_t i;

	memset(at, 0, 256 * p.nr_words * sizeof(*at));
	for (i = 0; i < len; i++)
		set_bit(at + (unsigned char)name[i] * p.nr_words, i);
	for (; *pattern != '\0' && any; pattern++)
		if (*pattern == '*')
			fill(&p);
		else
			any = step(&p,
			    *pattern == '?' ?
				NULL :
				at + (unsigned char)*pattern * p.nr_words);
	return any && (p.reached[len / 64] >> len % 64 & 1) != 0;
}

bool refd_pattern_matches(const char *pattern, const char *name)
{
	size_t literal = refd_pattern_literal(pattern), len;

	if (strncmp(name, pattern, literal) != 0)
		return false;
	if (pattern[literal] == '\0')
		return name[literal] == '\0' || is_beginning(pattern, literal);
	name += literal;
	len = strlen(name);
	return len < REFD_PATTERN_WORDS * 64 &&
	    glob_matches(pattern + literal, name, len);
}
