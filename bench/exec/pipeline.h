/* pipeline.h - the loop for pipelines: a thread puts items into a stage that
 * two workers share, and one worker of the next stage gets the results in the
 * order of the items. At the end of a run all have come out.
 *
 * A stage does nothing (mode 0), or counts to `mode`. One operation is one
 * item through both stages.
 */
#ifndef BENCH_EXEC_PIPELINE_H
#define BENCH_EXEC_PIPELINE_H

#include "../sync/contest.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PIPELINE_WORKERS 2
#define PIPELINE_ROOM    256

CONTEST_INLINE uintptr_t pipeline_work(uintptr_t item, int rounds)
{
    uint64_t x = item;

    for (int i = 0; i < rounds; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        __asm__ volatile("" : "+r"(x));
    }
    return item;
}

#ifdef __cplusplus
}
#endif

#endif
