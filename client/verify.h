/*
 * "refd verify": refd-admin does it. What that restored is then confirmed
 * through the daemon, by a transaction that has the value as the old one and
 * the new one, so that history has it too; where none serves that is said.
 */
#ifndef CLIENT_VERIFY_H
#define CLIENT_VERIFY_H

int command_verify(int argc, char **argv);

#endif
