/* Shared by gen_message.c and gen_history.c. */
#ifndef TESTS_LIB_GEN_MESSAGE_INTERNAL_H
#define TESTS_LIB_GEN_MESSAGE_INTERNAL_H

#include "tests/lib/gen_message.h"

bool gen_bool(struct gen *g);
/* Of any size; small numbers are as frequent as large numbers. */
uint64_t gen_number(struct gen *g);
uint32_t gen_u32(struct gen *g);
void gen_bytes(struct gen *g, uint8_t *bytes, size_t nr);
struct refd_oid gen_oid(struct gen *g, enum refd_object_format format);
bool oid_eq(const struct refd_oid *a, const struct refd_oid *b);
/* MIN to MAX bytes, usually few, with many separators. */
const char *gen_string(struct gen *g, struct refd_arena *arena, size_t min,
    size_t max);
/* For people, or a detail. */
const char *gen_text(struct gen *g, struct refd_arena *arena);
bool string_eq(const char *a, const char *b);

/* gen_history.c. Identities are in ascending order of names. */
size_t gen_identities(struct gen *g, struct refd_arena *arena,
    struct refd_identity *list);
void gen_selection(struct gen *g, struct refd_request *req);
void gen_records(struct gen *g, struct refd_answer *ans);
bool identities_eq(const struct refd_identity *a, size_t nr_a,
    const struct refd_identity *b, size_t nr_b);
bool selection_eq(const struct refd_selection *a,
    const struct refd_selection *b);
bool history_eq(const struct refd_answer *a, const struct refd_answer *b);

#endif
