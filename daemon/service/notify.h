/*
 * Tells the service manager how the daemon is (sd_notify(3)): one datagram
 * to NOTIFY_SOCKET. Where there is none, or it does not listen, nothing
 * happens. Any thread; does not block.
 */
#ifndef SERVICE_NOTIFY_H
#define SERVICE_NOTIFY_H

/* STATE is lines of NAME=VALUE, such as "READY=1". */
void notify_manager(const char *state);

#endif
