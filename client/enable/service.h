/*
 * A service for one account: refd@NAME of systemd, with the configuration
 * /etc/refd/NAME/config, the state /var/lib/refd-NAME and the socket
 * /run/refd-NAME/refd.sock. For root. Blocking; one thread. Actions are printed
 * on standard output. Failures are printed as errors, and returned as false.
 */
#ifndef CLIENT_ENABLE_SERVICE_H
#define CLIENT_ENABLE_SERVICE_H

#include <stdbool.h>
#include <stddef.h>

/* ACCOUNT: a name or a uid. ROOTS, absolute, are the directories to serve.
 * ROOTS are needed only if no configuration exists; an existing configuration
 * is kept. */
bool service_enable(const char *account, const char *const *roots,
    size_t nr_roots);
/* Removes unchanged files written by enable. State is kept. */
bool service_disable(const char *account);

#endif
