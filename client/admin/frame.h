/* What refd top shows, from one answer. Pure; one thread. */
#ifndef CLIENT_ADMIN_FRAME_H
#define CLIENT_ADMIN_FRAME_H

#include "client/base/cli.h"
#include "proto/message.h"

/* Lines of at most COLUMNS, at most LINES of them; 0 LINES: all. */
void frame_render(const struct refd_answer *ans, size_t lines, size_t columns,
    struct text *t);

#endif
