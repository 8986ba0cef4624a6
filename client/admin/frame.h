/* Renders an answer as the screen of refd top. Pure; one thread. */
#ifndef CLIENT_ADMIN_FRAME_H
#define CLIENT_ADMIN_FRAME_H

#include "proto/lib/cli.h"
#include "proto/message.h"

/* Renders at most LINES lines (0: all) of at most COLUMNS columns. */
void frame_render(const struct refd_answer *ans, size_t lines, size_t columns,
    struct text *t);

#endif
