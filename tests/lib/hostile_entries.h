/*
 * Changes to the files of a repository, from any bytes: a list of entries. An
 * entry has a path from a table, an action, a time, and bytes.
 *
 *	entry = path (1), what and when (1), length (2, little-endian), bytes
 *
 * One thread. No file outside of the repository is changed, even through links
 * in the repository, and nothing blocks.
 */
#ifndef TESTS_LIB_HOSTILE_ENTRIES_H
#define TESTS_LIB_HOSTILE_ENTRIES_H

#include <stddef.h>
#include <stdint.h>

/* Rounds of a run: times for making entries. */
#define HOSTILE_ROUNDS 3

/* Objects of the repository and of the table of paths. */
#define HOSTILE_COMMIT "c29b3412b24ec135f9768f86f67e8fec1e3fa62e" /* loose */
#define HOSTILE_TAG    "b771479340f9bab3e291b7e3d31e9149a4aff975" /* loose */
#define HOSTILE_ABSENT "cccccccccccccccccccccccccccccccccccccccc"
#define HOSTILE_PACKED "da15bf890d6b8a175fd8312964d8b2a7526cce67"
#define HOSTILE_DELTA  "551b046aff2b2c87db34d9177ca9da10491fc650"
#define HOSTILE_PACK                                                           \
	"objects/pack/pack-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

/* Makes the entries of ROUND below REPO_FD. In the text of a link or a file, an
 * initial "@" stands for ROOT. */
void hostile_entries_make(int repo_fd, const char *root, unsigned round,
    const uint8_t *data, size_t size);

/* Changes one entry, or the number of entries, in DATA of SIZE, at most MAX;
 * returns the new size. BYTES changes an entry's bytes, as LLVMFuzzerMutate
 * does. */
size_t hostile_entries_mutate(uint8_t *data, size_t size, size_t max,
    unsigned seed, size_t (*bytes)(uint8_t *data, size_t size, size_t max));

#endif
