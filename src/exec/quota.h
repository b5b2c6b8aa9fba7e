/* quota.h - how many processors this process may really use.
 *
 * A container may be allowed half a processor on a machine with 64: threads
 * beyond the quota only wait for each other.
 */
#ifndef EXEC_QUOTA_H
#define EXEC_QUOTA_H

#include <stdint.h>

/* Processors, or fewer if the cgroup has a quota (rounded up); at least 1. */
uint32_t hf_cpu_share(void);
/* The same, with the files looked for below `root` ("" in earnest). */
uint32_t hf_cpu_share_at(const char *root);

#endif
