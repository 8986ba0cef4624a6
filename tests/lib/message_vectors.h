/*
 * Messages of the protocol, packet by packet, as the source of
 * proto/vectors.json. "|" stands for NUL, "--" for a delimiter; the flush at
 * the end is implied.
 */
#ifndef TESTS_LIB_MESSAGE_VECTORS_H
#define TESTS_LIB_MESSAGE_VECTORS_H

#include <stddef.h>

#define MESSAGE_PACKETS_MAX 32

enum message_what { MESSAGE_HELLO, MESSAGE_REQUEST, MESSAGE_ANSWER };

struct message_vector {
	enum message_what what;
	const char *name;
	const char *packets[MESSAGE_PACKETS_MAX];
};

extern const struct message_vector message_vectors[];
extern const size_t nr_message_vectors;

#endif
