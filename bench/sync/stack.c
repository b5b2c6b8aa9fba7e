/* stack.c - hf_stack beside ck_stack and boost::lockfree::stack. */
#include "holdfast/stack.h"
#include "fifo.h"

extern const struct contest_side stack_ck;
extern const struct contest_side stack_boost;

/* How far a stream's producer could get ahead. */
#define STREAM_MOST 4000000

static const struct contest_work works[] = {
    {.name = "pairs-1", .threads = 1, .shape = FIFO_PAIRS},
    {.name = "stream-1p1c",
     .threads = 2,
     .shape = FIFO_STREAM,
     .most = STREAM_MOST},
    {.name = "pairs-2", .threads = 2, .shape = FIFO_PAIRS},
    {.name = "bursts-8", .threads = 8, .shape = FIFO_BURSTS},
    {.name = NULL},
};

CONTEST_INLINE bool ours_put(struct contest_thread *thread, void *item)
{
    return hf_stack_push(thread->self, item) == HF_OK;
}

CONTEST_INLINE bool ours_take(struct contest_thread *thread, void **item)
{
    return hf_stack_pop(thread->self, item) == HF_OK;
}

static void *open_kind(const struct contest_work *work, enum hf_stack_kind kind)
{
    struct hf_stack *stack;

    if (hf_stack_open(
            &stack, &(struct hf_stack_opts){.name = work->name, .kind = kind}))
        contest_fail("hf_stack_open");
    return stack;
}

static void *ours_open(const struct contest_work *work)
{
    return open_kind(work, HF_STACK_LOCK_FREE);
}

static void *locked_open(const struct contest_work *work)
{
    return open_kind(work, HF_STACK_LOCKED);
}

static void ours_close(void *self)
{
    hf_stack_close(self);
}

static void ours_run(struct contest_thread *thread)
{
    fifo_run(thread, ours_put, ours_take);
}

static const struct contest_side ours = {
    .name = "ours",
    .open = ours_open,
    .close = ours_close,
    .run = ours_run,
};

/* The twin under a lock. */
static const struct contest_side ours_locked = {
    .name = "ours-locked",
    .open = locked_open,
    .close = ours_close,
    .run = ours_run,
};
static const struct contest_side *const sides[] = {
    &ours, &ours_locked, &stack_ck, &stack_boost, NULL,
};

int main(int argc, char **argv)
{
    return contest_main(argc, argv, works, sides);
}
