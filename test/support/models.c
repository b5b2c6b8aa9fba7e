/* models.c - sequential models of the common structures. */
#include "support/models.h"

#include "holdfast/status.h"
#include "support/test.h"

static bool told(const struct call *call, uint64_t value)
{
    return call->value == MODEL_ANY || call->value == value;
}

/* List. */

struct item {
    uint64_t value;
    uint64_t taken_from; /* ticket when its take began, see list_prepare */
};

struct list {
    uint64_t count;
    struct item items[];
};

static size_t list_used(const void *state, void *context)
{
    const struct list *list = state;

    (void)context;
    return sizeof *list + list->count * sizeof list->items[0];
}

/* A queue gives out in the order of its puts. So if b's take ended before a's
 * take began, b cannot be put while a is inside: without this the search would
 * find out only when both are taken, and try every order of what is between. */
static bool too_early(const struct list *list, const struct call *call)
{
    for (uint64_t i = 0; i < list->count; i++) {
        if (call->hint[1] != 0 && list->items[i].taken_from > call->hint[1])
            return true;
    }
    return false;
}

static bool list_put(struct list *list, const struct call *call,
                     const struct model_list *shape)
{
    if (list->count == shape->room && shape->bounded)
        return false;
    CHECK(list->count < shape->room); /* else say how much comes together */
    if (too_early(list, call))
        return false;
    list->items[list->count++] = (struct item){call->argument, call->hint[0]};
    return true;
}

/* Takes the item at `index`, which is the one that was told. */
static bool list_take(struct list *list, uint64_t index)
{
    list->count--;
    memmove(&list->items[index], &list->items[index + 1],
            (list->count - index) * sizeof list->items[0]);
    return true;
}

static bool list_apply(void *state, const struct call *call, void *context)
{
    const struct model_list *shape = context;
    struct list *list = state;
    uint64_t index = call->op == MODEL_TAKE_LAST ? list->count - 1 : 0;

    if (call->op == MODEL_SIZE)
        return told(call, list->count);
    if (call->result == HF_FULL)
        return shape->bounded && list->count == shape->room;
    if (call->result == HF_EMPTY)
        return list->count == 0;
    if (call->result != HF_OK)
        return true;
    if (call->op == MODEL_PUT)
        return list_put(list, call, shape);
    return list->count > 0 && told(call, list->items[index].value) &&
           list_take(list, index);
}

static bool list_apply_pending(void *state, const struct call *call,
                               void *context)
{
    struct list *list = state;

    if (call->op == MODEL_PUT)
        return list_put(list, call, context);
    if (call->op == MODEL_SIZE || list->count == 0)
        return false;
    return list_take(list, call->op == MODEL_TAKE_LAST ? list->count - 1 : 0);
}

static bool list_reads_only(const struct call *call, void *context)
{
    (void)context;
    return call->op == MODEL_SIZE || call->result != HF_OK;
}

static bool is_put(const struct call *call)
{
    return call->op == MODEL_PUT &&
           (call->returned_at == CALLS_PENDING || call->result == HF_OK);
}

/* When the put's item was taken; false if another put has the same value, for
 * then it is not known whose it was. */
static bool find_take(const struct call *calls, size_t count, struct call *put)
{
    put->hint[0] = UINT64_MAX; /* never */
    put->hint[1] = UINT64_MAX;
    for (size_t i = 0; i < count; i++) {
        const struct call *call = &calls[i];

        if (is_put(call) && call != put && call->argument == put->argument)
            return false;
        if (call->op == MODEL_TAKE_FIRST && call->result == HF_OK &&
            call->returned_at != CALLS_PENDING &&
            call->value == put->argument) {
            put->hint[0] = call->called_at;
            put->hint[1] = call->returned_at;
        }
    }
    return true;
}

/* Two that went in one after the other must not come out the other way round.
 * The search would see that too, but only after every order of what overlaps
 * before. */
static bool in_order(const struct call *calls, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t j = i + 1; j < count; j++) {
            if (is_put(&calls[i]) && is_put(&calls[j]) &&
                calls[i].returned_at < calls[j].called_at &&
                calls[j].hint[1] < calls[i].hint[0])
                return false;
        }
    }
    return true;
}

/* Notes in every put when its item was taken: hint[0] when that take began,
 * hint[1] when it ended. Only for queues in which that is known; else both
 * stay 0, which refuses nothing. */
static bool list_prepare(struct call *calls, size_t count, void *context)
{
    bool known = true;

    (void)context;
    for (size_t i = 0; i < count && known; i++) {
        const struct call *call = &calls[i];

        if (call->op == MODEL_TAKE_LAST)
            known = false;
        if (call->op == MODEL_TAKE_FIRST)
            known = call->returned_at != CALLS_PENDING &&
                    (call->result != HF_OK || call->value != MODEL_ANY);
        if (known && is_put(call))
            known = find_take(calls, count, &calls[i]);
    }
    if (known)
        return in_order(calls, count);
    for (size_t i = 0; i < count; i++)
        memset(calls[i].hint, 0, sizeof calls[i].hint);
    return true;
}

struct linear_model model_list(const struct model_list *list)
{
    static const char *const names[] = {
        [MODEL_PUT] = "put",
        [MODEL_TAKE_FIRST] = "take first",
        [MODEL_TAKE_LAST] = "take last",
        [MODEL_SIZE] = "size",
    };
    struct linear_model model = {
        .state_bytes = sizeof(struct list) + list->room * sizeof(struct item),
        .apply = list_apply,
        .apply_pending = list_apply_pending,
        .state_used = list_used,
        .reads_only = list_reads_only,
        .prepare = list_prepare,
        .context = (void *)(uintptr_t)list,
        .op_names = names,
    };
    return model;
}

/* Map: one key. */

struct slot {
    uint64_t present;
    uint64_t value; /* 0 if not present: equal states are equal bytes */
};

static bool slot_write(struct slot *slot, uint64_t value)
{
    *slot = (struct slot){1, value};
    return true;
}

static bool slot_remove(struct slot *slot)
{
    *slot = (struct slot){0, 0};
    return true;
}

/* What the call must answer in this state. */
static enum hf_status slot_answer(const struct slot *slot,
                                  const struct call *call)
{
    switch (call->op) {
    case MODEL_SET:
    case MODEL_ADD:
        return HF_OK;
    case MODEL_SET_IF_ABSENT:
        return slot->present ? HF_EXISTS : HF_OK;
    case MODEL_REPLACE_IF_EQUAL:
    case MODEL_REMOVE_IF_EQUAL:
        if (slot->present && slot->value != call->argument)
            return HF_EXISTS;
        break;
    default:
        break;
    }
    return slot->present ? HF_OK : HF_NOTFOUND;
}

/* Does what the call does in this state. */
static void slot_change(struct slot *slot, const struct call *call)
{
    enum hf_status answer = slot_answer(slot, call);

    if (call->op == MODEL_SWAP)
        slot_write(slot, call->argument);
    if (answer != HF_OK)
        return;
    switch (call->op) {
    case MODEL_SET:
    case MODEL_SET_IF_ABSENT:
    case MODEL_SET_IF_PRESENT:
        slot_write(slot, call->argument);
        break;
    case MODEL_REPLACE_IF_EQUAL:
        slot_write(slot, call->argument2);
        break;
    case MODEL_REMOVE:
    case MODEL_REMOVE_IF_EQUAL:
        slot_remove(slot);
        break;
    case MODEL_ADD:
        slot_write(slot, slot->value + call->argument);
        break;
    default: /* get changes nothing, swap is done */
        break;
    }
}

/* Is the value that came out the right one? */
static bool slot_value_fits(const struct slot *before, const struct slot *after,
                            const struct call *call)
{
    switch (call->op) {
    case MODEL_SET:
        return true;
    case MODEL_ADD:
        return told(call, after->value);
    case MODEL_SET_IF_ABSENT:
    case MODEL_REPLACE_IF_EQUAL:
    case MODEL_REMOVE_IF_EQUAL:
        return call->result == HF_OK || call->result == HF_NOTFOUND ||
               told(call, before->value);
    default:
        return !before->present || told(call, before->value);
    }
}

static bool map_apply(void *state, const struct call *call, void *context)
{
    struct slot *slot = state;
    struct slot before = *slot;

    (void)context;
    if (call->result != slot_answer(slot, call))
        return false;
    slot_change(slot, call);
    return slot_value_fits(&before, slot, call);
}

static bool map_apply_pending(void *state, const struct call *call,
                              void *context)
{
    struct slot *slot = state;
    struct slot before = *slot;

    (void)context;
    slot_change(slot, call);
    return slot->present != before.present || slot->value != before.value;
}

static bool map_reads_only(const struct call *call, void *context)
{
    (void)context;
    return call->op == MODEL_GET ||
           (call->result != HF_OK && call->op != MODEL_SWAP);
}

struct linear_model model_map(void)
{
    static const char *const names[] = {
        [MODEL_GET] = "get",
        [MODEL_SET] = "set",
        [MODEL_SWAP] = "swap",
        [MODEL_SET_IF_ABSENT] = "set if absent",
        [MODEL_SET_IF_PRESENT] = "set if present",
        [MODEL_REPLACE_IF_EQUAL] = "replace if equal",
        [MODEL_REMOVE] = "remove",
        [MODEL_REMOVE_IF_EQUAL] = "remove if equal",
        [MODEL_ADD] = "add",
    };
    struct linear_model model = {
        .state_bytes = sizeof(struct slot),
        .apply = map_apply,
        .apply_pending = map_apply_pending,
        .reads_only = map_reads_only,
        .op_names = names,
        .by_key = true,
    };
    return model;
}

/* Counter. */

static void counter_init(void *state, void *context)
{
    if (context != NULL)
        *(uint64_t *)state = *(const uint64_t *)context;
}

static bool counter_change(uint64_t *count, const struct call *call)
{
    switch (call->op) {
    case MODEL_COUNT_ADD:
        *count += call->argument;
        return true;
    case MODEL_COUNT_TAKE:
        if (*count < call->argument)
            return false;
        *count -= call->argument;
        return true;
    case MODEL_COUNT_RESET:
        *count = 0;
        return true;
    default:
        return true;
    }
}

static bool counter_apply(void *state, const struct call *call, void *context)
{
    uint64_t before = *(uint64_t *)state;
    bool done = counter_change(state, call);

    (void)context;
    return call->result == (done ? HF_OK : HF_EMPTY) && told(call, before);
}

static bool counter_apply_pending(void *state, const struct call *call,
                                  void *context)
{
    (void)context;
    return counter_change(state, call);
}

static bool counter_reads_only(const struct call *call, void *context)
{
    (void)context;
    return call->op == MODEL_COUNT_READ || call->result != HF_OK;
}

struct linear_model model_counter(const uint64_t *start)
{
    static const char *const names[] = {
        [MODEL_COUNT_ADD] = "add",
        [MODEL_COUNT_TAKE] = "take",
        [MODEL_COUNT_READ] = "read",
        [MODEL_COUNT_RESET] = "reset",
    };
    struct linear_model model = {
        .state_bytes = sizeof(uint64_t),
        .init = counter_init,
        .apply = counter_apply,
        .apply_pending = counter_apply_pending,
        .reads_only = counter_reads_only,
        .context = (void *)(uintptr_t)start,
        .op_names = names,
    };
    return model;
}
