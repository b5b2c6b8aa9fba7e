/* breaker_window.h - how the last calls went: by number or by time.
 *
 * By number: a circle of the last `size` outcomes, one byte each. By time: ten
 * parts of the window, each with its sums; a part that is a whole window old is
 * cleared when its place is needed.
 *
 *   now          |
 *   part  .. 17 18 19 | 20        index = now / part_ns
 *   place     7  8  9    0        index % 10
 *
 * Threads: the caller locks. Memory: the caller's.
 */
#ifndef FLOW_BREAKER_WINDOW_H
#define FLOW_BREAKER_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WINDOW_PARTS 10u

struct window_sums {
    uint32_t calls;
    uint32_t failed;
    uint32_t slow;
};

struct window {
    struct window_sums all; /* of the whole window */
    uint64_t part_ns;       /* 0: by number */
    uint64_t index;         /* of the newest part */
    struct window_sums parts[WINDOW_PARTS];
    uint32_t size; /* outcomes in the circle at most */
    uint32_t next; /* where the next one goes */
    uint8_t *circle;
};

void hf_breaker_window_clear(struct window *window);
void hf_breaker_window_add(struct window *window, bool failed, bool slow,
                           uint64_t now_ns);

#endif
