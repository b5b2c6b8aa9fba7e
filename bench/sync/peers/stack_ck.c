/* stack_ck.c - Concurrency Kit's ck_stack, with its counted head against ABA.
 * Its items bring their own nodes. */
#include <ck_stack.h>

#include "bench/sync/nodes.h"

struct stack {
    struct nodes_arena arena; /* first */
    struct ck_stack head __attribute__((aligned(CONTEST_LINE)));
};

_Static_assert(sizeof(struct ck_stack_entry) == sizeof(void *), "one pointer");

static void *stack_open(const struct contest_work *work)
{
    struct stack *stack = contest_alloc(sizeof *stack);

    nodes_open(&stack->arena, work);
    ck_stack_init(&stack->head);
    return stack;
}

static void stack_close(void *self)
{
    struct stack *stack = self;

    nodes_close(&stack->arena);
    free(stack);
}

CONTEST_INLINE bool stack_put(struct contest_thread *thread, void *item)
{
    struct stack *stack = thread->self;

    ck_stack_push_mpmc(&stack->head,
                       (struct ck_stack_entry *)nodes_get(thread, item));
    return true;
}

CONTEST_INLINE bool stack_take(struct contest_thread *thread, void **item)
{
    struct stack *stack = thread->self;
    struct ck_stack_entry *link = ck_stack_pop_mpmc(&stack->head);

    if (link == NULL)
        return false;
    *item = nodes_keep(thread, (struct nodes_node *)link);
    return true;
}

static void stack_run(struct contest_thread *thread)
{
    fifo_run(thread, stack_put, stack_take);
}

const struct contest_side stack_ck = {
    .name = "ck",
    .open = stack_open,
    .close = stack_close,
    .run = stack_run,
    .enter = nodes_enter,
    .leave = nodes_leave,
};
