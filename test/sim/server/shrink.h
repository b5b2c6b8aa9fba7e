/* shrink.h - a smaller run that fails in the same way. */
#ifndef SIM_SERVER_SHRINK_H
#define SIM_SERVER_SHRINK_H

#include "sim/server/run.h"

/* Leaves out faults, clients and turns while the run still fails by the same
 * rule; prints what is left and its story. */
void shrink(const struct run_opts *opts, const struct run_result *found,
            FILE *out);
/* Does the run die of an assertion or the like? */
bool shrink_dies(const struct run_opts *opts);
/* True in a run that only tries. */
bool shrink_is_trying(void);

#endif
