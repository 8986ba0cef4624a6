/* What tells a program that it is refd, and which, without running it. */
#ifndef CLIENT_PROGRAM_H
#define CLIENT_PROGRAM_H

/* Stands in the file, with the version and a zero byte behind it. */
#define PROGRAM_MARK "\\@(#)refd version "

#endif
