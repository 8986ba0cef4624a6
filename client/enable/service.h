/*
 * A service for one account: refd@NAME of systemd, with the configuration
 * /etc/refd/NAME/config, the state /var/lib/refd-NAME and the socket
 * /run/refd-NAME/refd.sock. For root. Blocking; one thread. What was done is
 * said on standard output; failures are said, and returned as false.
 */
#ifndef CLIENT_ENABLE_SERVICE_H
#define CLIENT_ENABLE_SERVICE_H

#include <stdbool.h>
#include <stddef.h>

/* ACCOUNT: a name or a uid. ROOTS, absolute, are what it serves; needed only
 * where there is no configuration yet, and one that is there is kept. */
bool service_enable(const char *account, const char *const *roots,
    size_t nr_roots);
/* Removes what enable wrote and nobody changed. State is kept. */
bool service_disable(const char *account);

#endif
