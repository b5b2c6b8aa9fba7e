/* locks.c - locks that are found by name. */
#include "holdfast/locks.h"

#include <stdlib.h>

#include "bench/sync/locks.h"

extern const struct contest_side locks_pthread_mutex;
extern const struct contest_side locks_pthread_rwlocks;
extern const struct contest_side locks_tbb;

#define WORK(text, count, names, how)                               \
    {                                                               \
        .name = text, .threads = count, .size = names, .shape = how \
    }

static const struct contest_work works[] = {
    WORK("one-1", 1, 1, LOCKS_EXCLUSIVE),
    WORK("names-1", 1, LOCKS_NAMES, LOCKS_EXCLUSIVE),
    WORK("names-2", 2, LOCKS_NAMES, LOCKS_EXCLUSIVE),
    WORK("shared-2", 2, 3, LOCKS_SHARED),
    WORK("three-8", 8, 3, LOCKS_EXCLUSIVE),
    {.name = NULL},
};

struct ours {
    struct locks locks; /* first */
    struct hf_locks *manager;
};

static void *ours_open(const struct contest_work *work)
{
    struct ours *ours = contest_alloc(sizeof *ours);

    (void)work;
    locks_open(&ours->locks);
    if (hf_locks_open(&ours->manager, NULL))
        contest_fail("hf_locks_open");
    return ours;
}

static void ours_close(void *self)
{
    struct ours *ours = self;

    hf_locks_close(ours->manager);
    free(ours);
}

CONTEST_INLINE uint64_t ours_acquire(struct locks *locks, uint64_t name,
                                     int shape)
{
    static const struct hf_locks_request read = {.mode = HF_LOCKS_SHARED};
    struct hf_locks_answer answer;

    if (hf_locks_acquire(((struct ours *)locks)->manager, locks->names[name],
                         shape == LOCKS_SHARED ? &read : NULL, HF_FOREVER,
                         &answer))
        contest_fail("hf_locks_acquire");
    return answer.token;
}

CONTEST_INLINE void ours_release(struct locks *locks, uint64_t name,
                                 uint64_t token)
{
    if (hf_locks_release(((struct ours *)locks)->manager, locks->names[name],
                         token))
        contest_fail("hf_locks_release");
}

static void ours_run(struct contest_thread *thread)
{
    locks_run(thread, ours_acquire, ours_release);
}

static const struct contest_side ours = {
    .name = "ours",
    .open = ours_open,
    .close = ours_close,
    .run = ours_run,
    .check = locks_check,
};

static const struct contest_side *const sides[] = {
    &ours, &locks_pthread_mutex, &locks_pthread_rwlocks, &locks_tbb, NULL,
};

int main(int argc, char **argv)
{
    return contest_main(argc, argv, works, sides);
}
