/* starve.h - the engine under test without memory. */
#ifndef TEST_SUPPORT_STARVE_H
#define TEST_SUPPORT_STARVE_H

#include "base/memory.h"
#include "support/engine.h"

/* With no memory at all. */
static inline const struct hold_out *apply_starved(const struct hold_command *c)
{
    static char record[HOLD_RECORD_MAX];
    size_t len = hold_encode(c, record);

    hf_memory_fail_after(0);
    const struct hold_out *out = hold_apply(engine, hf_bytes(record, len));
    hf_memory_fail_never();
    CHECK(out != NULL);
    return out;
}

/* Lets each allocation of preparing the command fail in turn; then applies it
 * with no memory at all. */
static inline const struct hold_out *starve(const struct hold_command *c)
{
    uint64_t before = hold_digest(engine);
    enum hf_status status = HF_NOMEM;

    for (uint64_t allowed = 0; status != HF_OK; allowed++) {
        hf_memory_fail_after(allowed);
        status = hold_prepare(engine, c);
        hf_memory_fail_never();
        CHECK(status == HF_OK || status == HF_NOMEM);
        CHECK(hold_digest(engine) == before);
        CHECK(allowed < 1000);
        if (status == HF_OK)
            break;
        hf_memory_fail_once(allowed); /* the others succeed */
        status = hold_prepare(engine, c);
        hf_memory_fail_never();
        CHECK(status == HF_OK || status == HF_NOMEM);
        if (status == HF_OK) /* it could do without */
            hold_forget(engine, c);
        status = HF_NOMEM;
        CHECK(hold_digest(engine) == before);
    }
    return apply_starved(c);
}

static inline size_t memory_bytes(void)
{
    struct hold_counts found;

    hold_count(engine, &found);
    return found.memory_bytes;
}

#endif
