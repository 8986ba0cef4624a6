/*
 * "refd doctor": looks for what is set up wrongly, on the machine and in
 * repositories, and mends what can be mended without a risk.
 *
 * Blocking; one thread. What is found goes into a list; nothing but the
 * command line (doctor.c) speaks.
 */
#ifndef CLIENT_DOCTOR_DOCTOR_H
#define CLIENT_DOCTOR_DOCTOR_H

int command_doctor(int argc, char **argv);

#endif
