/* exec.h - what stands in for threads, clocks and the system's randomness.
 *
 * The server and its journal give work to pools, a scheduler and a log. Here
 * these names are defined once more, without threads: works of a pool are
 * fibers of the world, one at a time for a pool of one thread, each begun a
 * moment after it was handed over. Linked before the library, so that its own
 * files of that name are not taken from the archive.
 */
#ifndef SIM_SERVER_EXEC_H
#define SIM_SERVER_EXEC_H

#include <stdint.h>

/* A new server is about to be opened. */
/* What a step of the engine takes, in simulated time. */
void exec_costs(uint64_t ns);
void exec_begin(uint64_t run);
/* The world has come to its end. */
void exec_end(void);
/* Every line that the server logs; may be NULL. */
extern void (*exec_log)(const char *line);

#endif
