/* breaker_window.c - sums over the last calls. */
#include "flow/breaker_window.h"

#include <assert.h>
#include <string.h>

#define FAILED 1u
#define SLOW   2u

void hf_breaker_window_clear(struct window *window)
{
    window->all = (struct window_sums){0};
    memset(window->parts, 0, sizeof window->parts);
    window->next = 0;
}

static void add(struct window_sums *sums, bool failed, bool slow)
{
    /* A window of time may see more calls than fit: it then stays full. */
    if (sums->calls == UINT32_MAX)
        return;
    sums->calls++;
    sums->failed += failed;
    sums->slow += slow;
}

static void subtract(struct window_sums *from, const struct window_sums *sums)
{
    from->calls -= sums->calls;
    from->failed -= sums->failed;
    from->slow -= sums->slow;
}

/* Forgets what is too old; an older now_ns than before forgets nothing. */
static void age(struct window *window, uint64_t now_ns)
{
    if (window->part_ns == 0)
        return;
    uint64_t index = now_ns / window->part_ns;
    if (index <= window->index)
        return;
    uint64_t steps = index - window->index;
    if (steps > WINDOW_PARTS)
        steps = WINDOW_PARTS;
    for (uint64_t i = 0; i < steps; i++) {
        struct window_sums *part = &window->parts[(index - i) % WINDOW_PARTS];
        subtract(&window->all, part);
        *part = (struct window_sums){0};
    }
    window->index = index;
}

static void add_to_circle(struct window *window, bool failed, bool slow)
{
    uint8_t *place = &window->circle[window->next];

    assert(window->next < window->size);
    if (window->all.calls == window->size) {
        window->all.calls--;
        window->all.failed -= (*place & FAILED) != 0;
        window->all.slow -= (*place & SLOW) != 0;
    }
    *place = (uint8_t)((failed ? FAILED : 0) | (slow ? SLOW : 0));
    window->next = window->next + 1 == window->size ? 0 : window->next + 1;
    add(&window->all, failed, slow);
}

void hf_breaker_window_add(struct window *window, bool failed, bool slow,
                           uint64_t now_ns)
{
    if (window->part_ns == 0) {
        add_to_circle(window, failed, slow);
        return;
    }
    age(window, now_ns);
    if (window->all.calls == UINT32_MAX)
        return;
    add(&window->parts[window->index % WINDOW_PARTS], failed, slow);
    add(&window->all, failed, slow);
}
