/*
 * "refd hook reference-transaction": the gate. Blocking; one thread.
 */
#ifndef CLIENT_GATE_GATE_H
#define CLIENT_GATE_GATE_H

/* PATH: the hook as git named it, or NULL. Returns the exit status. */
int gate_run(const char *path, const char *phase);

#endif
