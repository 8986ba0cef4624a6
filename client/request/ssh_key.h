/*
 * The key by which sshd admitted the user. All users of a shared account have
 * the same account, so only the key tells them apart.
 *
 * With `ExposeAuthInfo yes`, sshd writes the keys into a file of the session,
 * and SSH_USER_AUTH names the file. A process of the account can name any other
 * file: the content counts for nothing unless it has the form of a key.
 *
 * Any thread. Blocks on disk I/O, never on a fifo or a device.
 */
#ifndef CLIENT_REQUEST_SSH_KEY_H
#define CLIENT_REQUEST_SSH_KEY_H

#include <stdbool.h>

/* "SHA256:", and 43 digits to the base 64. */
#define SSH_KEY_NAME_MAX 50

/* Writes the fingerprint of the first key in the file PATH to NAME, as
 * `ssh-keygen -l` prints it. False: there is no such file, or no key in the
 * file. A certificate does not count as a key, because its fingerprint is that
 * of the key within. */
bool ssh_key_name(const char *path, char name[SSH_KEY_NAME_MAX + 1]);

#endif
