/*
 * All limits of the wire and of one transaction. A request beyond a limit is
 * answered with a status (proto/status.h), so nothing is cut silently. Sizes
 * are in bytes, and the name of a time ends with its unit.
 */
#ifndef PROTO_LIMITS_H
#define PROTO_LIMITS_H

/* The wire. A pkt-line has at most 65520 bytes with its four length digits, as
 * in git (LARGE_PACKET_MAX, pkt-line.h). */
#define REFD_PROTOCOL_VERSION 2
#define REFD_PACKET_MAX       65520
#define REFD_PAYLOAD_MAX      (REFD_PACKET_MAX - 4)
#define REFD_REQUESTS_MAX     256 /* in flight on one connection */
#define REFD_HEADERS_MAX      64  /* header packets of one request */

/* Messages of the daemon, with the length digits of their packets. A broken
 * server would otherwise fill the memory of a client, so a client hangs up on a
 * server that sends more. Results have further bytes for each update of the
 * request. All other answers are far below, because the daemon limits locks,
 * pages of history and texts. */
#define REFD_HELLO_BYTES_MAX  (64 * 1024)
#define REFD_ANSWER_BYTES     (8 * 1024 * 1024)
#define REFD_RESULT_BYTES     (10 * 1024)
#define REFD_ANSWER_BYTES_MAX (256 * 1024 * 1024)

/* One transaction. */
#define REFD_UPDATES_MAX   100000
#define REFD_TXN_BYTES_MAX (64 * 1024 * 1024)
/* A refname must fit a path, and "<component>.lock" a directory entry. */
#define REFD_REFNAME_MAX       1024
#define REFD_COMPONENT_MAX     (255 - 5)
#define REFD_PATH_MAX          4096
#define REFD_MESSAGE_MAX       8192
#define REFD_IDENT_MAX         1024
#define REFD_IDENTITIES_MAX    8 /* variables that identify a user */
#define REFD_IDENTITY_NAME_MAX 64
#define REFD_LEVEL_NODES_MAX   64 /* counted by a level */

/* One request for history. */
#define REFD_PATTERNS_MAX 16
#define REFD_CHANGES_MAX  1000 /* in an answer; the client asks again */

/* Where clients look for the daemon, unless they are told. */
#define REFD_SYSTEM_SOCKET "/run/refd/refd.sock"
/* The administrators' socket has the path of the clients' socket and this
 * suffix. */
#define REFD_ADMIN_SUFFIX ".admin"

/* Times a client may ask for. */
#define REFD_DEADLINE_MAX_MS    (3600 * 1000)
#define REFD_UPDATE_DEADLINE_MS (30 * 1000) /* refd update's default */
#define REFD_HOOK_DEADLINE_MS   (60 * 1000) /* the hook's default */
#define REFD_WATCH_MS           (30 * 1000) /* default of a watch */

#endif
