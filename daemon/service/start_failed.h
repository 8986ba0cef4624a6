/*
 * A daemon that cannot start answers the clients that wait at the sockets of
 * the service manager. The service manager goes on listening, so without an
 * answer each client would wait until its own timeout.
 *
 * Before there are threads; nothing blocks.
 */
#ifndef SERVICE_START_FAILED_H
#define SERVICE_START_FAILED_H

/*
 * Accepts each connection that waits at the listening socket FD, sends hello
 * and a refusal, and hangs up. Root and the daemon's account read WHY; other
 * users read only that the start failed, because WHY quotes the configuration.
 * FD -1: there is no such socket. FD stays open.
 */
void start_failed_tell(int fd, const char *why);

#endif
