/*
 * Messages to the service manager (sd_notify(3)): a datagram each, to
 * NOTIFY_SOCKET. Without that variable, or without a listener there, nothing
 * happens.
 *
 * A confined daemon can connect to no socket, so the connection is made before,
 * and is kept. The connection is lost if another service manager takes the
 * place of the first at the same path. systemd keeps its own socket when it
 * executes itself anew, so the connection stays.
 */
#ifndef SERVICE_NOTIFY_H
#define SERVICE_NOTIFY_H

/* Before the second thread. */
void notify_connect(void);
void notify_disconnect(void);
/* STATE: lines of NAME=VALUE, such as "READY=1". Any thread; does not block. */
void notify_manager(const char *state);

#endif
