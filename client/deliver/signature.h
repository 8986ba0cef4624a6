/*
 * The signature of a delivery, as GitHub's X-Hub-Signature-256: the HMAC
 * (RFC 2104) of the body with SHA-256. Pure; any thread.
 */
#ifndef CLIENT_DELIVER_SIGNATURE_H
#define CLIENT_DELIVER_SIGNATURE_H

#include <stddef.h>

#include "proto/lib/sha256.h"

#define SIGNATURE_LEN (sizeof("sha256=") - 1 + 2 * SHA256_BYTES)

/* "sha256=<hex digits>". Returns TEXT. */
char *signature_text(const void *key, size_t key_len, const void *body,
    size_t len, char text[SIGNATURE_LEN + 1]);

#endif
