/*
 * Sends a message to the service manager (sd_notify(3)): one datagram to
 * NOTIFY_SOCKET. Without that variable, or without a listener there, nothing
 * happens. Any thread; does not block.
 */
#ifndef SERVICE_NOTIFY_H
#define SERVICE_NOTIFY_H

/* STATE: lines of NAME=VALUE, such as "READY=1". */
void notify_manager(const char *state);

#endif
