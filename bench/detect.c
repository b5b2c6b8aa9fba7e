/* detect.c - what the search for a deadlock costs when very many wait.
 *
 *   detect [MAX]
 *
 * An engine in which 2,000, 4,000, ... MAX (10,000) wait, all but the last, is
 * asked whether that one may. Prints "shape waiters steps nanoseconds" per
 * line: the steps that the engine counts, and the time of the best of several
 * tries.
 *
 *   queue    all wait for one lock
 *   chain    each holds a lock that the next one waits for; the request closes
 *            the circle, which is as long as the chain
 *   star     all hold the lock that is asked for, shared, and wait for another
 *            lock each
 *   sets-8   all wait for the same 8 names at once; so does the request
 *   sets-64  the same with 64 names
 *
 * Beyond HOLD_DETECT_MAX steps a request is refused. The time is then that of
 * a search that is given up.
 */
#include "drive.h"

#define MAX       10000u
#define POINTS    5u
#define TRIES     5u
#define TRY_STEPS 2000000u

static struct hold_engine *engine;
static struct hold_command command;

static uint64_t now_ns(void)
{
    return hf_clock_now_ns(hf_clock_system());
}

/* LOCK of a name by an owner, into `command`, to hold it or to wait. */
static void lock(uint64_t name, uint64_t owner, uint64_t flags)
{
    static char names[2][DRIVE_NAME_BYTES];
    command.item_count = 0;
    drive_lock(&command, drive_name(names[0], 'l', name),
               drive_name(names[1], 'o', owner));
    command.flags = flags;
}

/* LOCKSET of the first so many names. */
static void lockset(uint64_t width, uint64_t owner, uint64_t flags)
{
    static char names[HOLD_SET_MAX][DRIVE_NAME_BYTES];
    lock(0, owner, flags);
    command.kind = HOLD_LOCKSET;
    command.name = hf_bytes(NULL, 0);
    for (uint64_t i = 0; i < width; i++)
        if (hold_add_name(&command, drive_name(names[i], 'l', i), false))
            drive_fail("set", "a name does not fit");
}

static void put(void)
{
    drive_write(engine, &command);
}

#define DETECTED   HOLD_FOREVER
#define UNDETECTED (HOLD_FOREVER | (uint64_t)POLICY_NONE << HOLD_POLICY_SHIFT)

/* Each makes `count` waiters and leaves the request in `command`. */
static void make_queue(uint64_t count)
{
    lock(0, 0, 0);
    put();
    for (uint64_t i = 1; i <= count; i++) {
        lock(0, i, UNDETECTED);
        put();
    }
    lock(0, count + 1, DETECTED);
}

static void make_chain(uint64_t count)
{
    for (uint64_t i = 0; i <= count; i++) {
        lock(i, i, 0);
        put();
    }
    for (uint64_t i = 1; i <= count; i++) {
        lock(i - 1, i, UNDETECTED);
        put();
    }
    lock(count, 0, DETECTED);
}

static void make_star(uint64_t count)
{
    struct hold_command bound = {
        .kind = HOLD_BOUNDS,
        .now_us = command.now_us,
        .item_count = 1,
        .items = {{hf_bytes_text("holders_max"), HOLD_QUEUE_MAX}}};
    drive_write(engine, &bound);
    for (uint64_t i = 1; i <= count; i++) {
        lock(0, i, HOLD_SHARED);
        put();
        lock(i, 0, 0);
        put();
        lock(i, i, UNDETECTED);
        put();
    }
    lock(0, count + 1, DETECTED);
}

static void make_sets(uint64_t count, uint64_t width)
{
    for (uint64_t i = 0; i < width; i++) {
        lock(i, 0, 0);
        put();
    }
    for (uint64_t i = 1; i <= count; i++) {
        lockset(width, i, UNDETECTED);
        put();
    }
    lockset(width, count + 1, DETECTED);
}

static void make_sets_8(uint64_t count)
{
    make_sets(count, 8);
}

static void make_sets_64(uint64_t count)
{
    make_sets(count, 64);
}

/* Asks over and over; nothing changes by it. */
static void measure(const char *shape, uint64_t count)
{
    double best = 0;
    (void)hold_answer_now(engine, &command);
    uint64_t steps = hold_work(engine);
    uint64_t times = TRY_STEPS / (steps + 100) + 1;
    for (unsigned i = 0; i < TRIES; i++) {
        uint64_t start = now_ns();
        for (uint64_t k = 0; k < times; k++)
            (void)hold_answer_now(engine, &command);
        double each = (double)(now_ns() - start) / (double)times;
        if (i == 0 || each < best)
            best = each;
    }
    printf("%s %llu %llu %.1f\n", shape, (unsigned long long)count,
           (unsigned long long)steps, best);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*make)(uint64_t count);
    } shapes[] = {{"queue", make_queue},
                  {"chain", make_chain},
                  {"star", make_star},
                  {"sets-8", make_sets_8},
                  {"sets-64", make_sets_64}};
    uint64_t max = argc > 1 ? drive_number(argv[1]) : MAX;
    if (max > HOLD_QUEUE_MAX)
        drive_fail("usage", "detect [MAX], at most 10000");
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        for (uint64_t k = 1; k <= POINTS; k++) {
            engine = drive_new(&command);
            shapes[i].make(max * k / POINTS - 1);
            measure(shapes[i].name, max * k / POINTS);
            hold_free(engine);
        }
    }
    return 0;
}
