/*
 * The user's pager, as in git: $GIT_PAGER, $PAGER or less. One thread. The
 * pager runs as the user.
 */
#ifndef CLIENT_BASE_PAGER_H
#define CLIENT_BASE_PAGER_H

/*
 * Sends all further output to the pager, and messages if they would go to a
 * terminal. Standard output must be a terminal. Nothing happens if the user
 * wants no pager, or if the pager cannot be started. Colour stays as it was.
 * The end of the program waits for the pager.
 */
void pager_start(void);

#endif
