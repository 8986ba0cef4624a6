/*
 * "refd doctor": finds errors in the installation, on the machine and in
 * repositories, and makes repairs without a risk.
 *
 * Blocks; one thread. The checks fill a list of findings. Only doctor.c prints.
 */
#ifndef CLIENT_DOCTOR_DOCTOR_H
#define CLIENT_DOCTOR_DOCTOR_H

#include "proto/lib/command.h"

extern const struct command doctor_command;

#endif
