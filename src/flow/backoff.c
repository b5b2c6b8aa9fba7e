/* backoff.c - waits that double, with jitter. */
#include "holdfast/backoff.h"

#include <stddef.h>
#include <string.h>

#include "base/random.h"

#define BASE_DEFAULT_NS UINT64_C(10000000)
#define CAP_DEFAULT_NS  UINT64_C(30000000000)

_Static_assert(sizeof(struct hf_random) ==
                   sizeof(((struct hf_backoff *)NULL)->random),
               "the public struct has room for the generator");

/* Time and place tell objects apart, also those of processes that started at
 * one instant: addresses differ between them. */
static uint64_t seed_of(const struct hf_backoff *backoff, uint64_t seed)
{
    if (seed != 0)
        return seed;
    return hf_clock_now_ns(hf_clock_system()) ^ (uint64_t)(uintptr_t)backoff
                                                    << 20;
}

enum hf_status hf_backoff_init(struct hf_backoff *backoff,
                               const struct hf_backoff_opts *opts)
{
    struct hf_backoff_opts o = {0};
    struct hf_random random;

    if (backoff == NULL)
        return HF_INVALID;
    if (opts != NULL)
        o = *opts;
    if ((unsigned)o.jitter > HF_JITTER_DECORRELATED)
        return HF_INVALID;
    if (o.base_ns == 0)
        o.base_ns = o.cap_ns != 0 && o.cap_ns < BASE_DEFAULT_NS
                        ? o.cap_ns
                        : BASE_DEFAULT_NS;
    if (o.cap_ns == 0)
        o.cap_ns = o.base_ns > CAP_DEFAULT_NS ? o.base_ns : CAP_DEFAULT_NS;
    if (o.base_ns > o.cap_ns)
        return HF_INVALID;
    *backoff = (struct hf_backoff){.base_ns = o.base_ns,
                                   .cap_ns = o.cap_ns,
                                   .attempts_max = o.attempts_max,
                                   .jitter = o.jitter};
    hf_random_init(&random, seed_of(backoff, o.seed));
    memcpy(backoff->random, random.state, sizeof backoff->random);
    return HF_OK;
}

uint64_t hf_backoff_ceiling_ns(uint64_t base_ns, uint64_t cap_ns,
                               uint32_t attempt)
{
    if (base_ns == 0)
        return 0;
    if (attempt > 63 || base_ns > cap_ns >> attempt)
        return cap_ns;
    return base_ns << attempt;
}

/* Uniform in [low, high]. */
static uint64_t draw(struct hf_backoff *backoff, uint64_t low, uint64_t high)
{
    struct hf_random random;
    uint64_t width = high - low;
    uint64_t drawn;

    memcpy(random.state, backoff->random, sizeof random.state);
    drawn = width == UINT64_MAX ? hf_random_next(&random)
                                : hf_random_below(&random, width + 1);
    memcpy(backoff->random, random.state, sizeof random.state);
    return low + drawn;
}

static uint64_t next_delay(struct hf_backoff *backoff)
{
    uint64_t ceiling = hf_backoff_ceiling_ns(backoff->base_ns, backoff->cap_ns,
                                             backoff->attempts);
    uint64_t cap = backoff->cap_ns;
    uint64_t last = backoff->last_ns == 0 ? backoff->base_ns : backoff->last_ns;

    switch (backoff->jitter) {
    case HF_JITTER_NONE:
        return ceiling;
    case HF_JITTER_EQUAL:
        return draw(backoff, ceiling - ceiling / 2, ceiling);
    case HF_JITTER_DECORRELATED:
        return draw(backoff, backoff->base_ns, last > cap / 3 ? cap : last * 3);
    case HF_JITTER_FULL:
        break;
    }
    return draw(backoff, 0, ceiling);
}

enum hf_status hf_backoff_next(struct hf_backoff *backoff, uint64_t now_ns,
                               uint64_t deadline_ns, uint64_t *delay_ns)
{
    struct hf_backoff tried;
    uint64_t delay;

    if (backoff == NULL || delay_ns == NULL)
        return HF_INVALID;
    if (backoff->attempts_max != 0 &&
        backoff->attempts >= backoff->attempts_max)
        return HF_FULL;
    tried = *backoff;
    delay = next_delay(&tried);
    if (deadline_ns != HF_FOREVER &&
        (now_ns >= deadline_ns || delay > deadline_ns - now_ns))
        return HF_TIMEOUT;
    if (tried.attempts < UINT32_MAX)
        tried.attempts++;
    tried.last_ns = delay;
    *backoff = tried;
    *delay_ns = delay;
    return HF_OK;
}

void hf_backoff_reset(struct hf_backoff *backoff)
{
    if (backoff == NULL)
        return;
    backoff->attempts = 0;
    backoff->last_ns = 0;
}
