/*
 * refd bench: what a daemon does on this machine, on a file system that is
 * named. Gets its own name as argv[0] and returns the exit status.
 */
#ifndef CLIENT_BENCH_BENCH_H
#define CLIENT_BENCH_BENCH_H

int command_bench(int argc, char **argv);

#endif
