/* watch.c - the room on the disk, as a periodic task. */
#include "server/watch.h"

#include <sys/statvfs.h>

#define LOOK_NS     (10 * HF_NS_PER_S)
#define REPEAT_NS   (3600 * HF_NS_PER_S)
#define FIELD_COUNT 3

static void tell(struct watch *watch, enum hf_log_level level,
                 const char *message, uint64_t free_bytes, uint64_t warn_bytes)
{
    struct hf_log_field fields[FIELD_COUNT] = {
        hf_log_text("dir", watch->dir), hf_log_number("free_bytes", free_bytes),
        hf_log_number("warn_bytes", warn_bytes)};

    hf_log_event(watch->log, level, message, fields, FIELD_COUNT);
}

/* Well again with an eighth more than what is warned of, so that a disk at the
 * mark is not told of in turns. */
void watch_judge(struct watch *watch, uint64_t free_bytes)
{
    uint64_t warn = hf_u64_load(&watch->warn_bytes, __ATOMIC_RELAXED);
    uint64_t now_ns = hf_clock_now_ns(watch->clock);

    hf_u64_store(&watch->free_bytes, free_bytes, __ATOMIC_RELAXED); /* figure */
    if (free_bytes < warn) {
        if (!watch->low)
            (void)hf_rate_init(&watch->again, 1, REPEAT_NS);
        if (hf_rate_take(&watch->again, 1, now_ns) == 0)
            tell(watch, HF_LOG_WARN, "little room on the disk", free_bytes,
                 warn);
        watch->low = true;
    } else if (watch->low && free_bytes - warn >= warn / 8) {
        watch->low = false;
        tell(watch, HF_LOG_INFO, "room on the disk again", free_bytes, warn);
    }
}

static int look(void *context)
{
    struct watch *watch = context;
    struct statvfs room;

    if (statvfs(watch->dir, &room) != 0)
        return -1;
    watch_judge(watch, (uint64_t)room.f_bavail * room.f_frsize);
    return 0;
}

enum hf_status watch_open(struct watch *watch, struct hf_log *log,
                          const char *dir, uint64_t warn_bytes,
                          const struct hf_clock *clock)
{
    struct hf_every every = {.first_ns = hf_clock_now_ns(clock),
                             .period_ns = LOOK_NS};

    *watch = (struct watch){.log = log, .dir = dir, .clock = clock};
    hf_u64_store(&watch->warn_bytes, warn_bytes, __ATOMIC_RELAXED); /* ours */
    hf_u64_store(&watch->free_bytes, WATCH_UNKNOWN, __ATOMIC_RELAXED);
    enum hf_status status = hf_scheduler_open(
        &watch->scheduler,
        &(struct hf_scheduler_opts){.name = "server", .clock = clock});
    if (status != HF_OK)
        return status;
    /* From the end of a look to the next: a slow disk is not asked twice. */
    status =
        hf_scheduler_every_after(watch->scheduler, &every, look, watch, NULL);
    if (status != HF_OK)
        watch_close(watch);
    return status;
}

void watch_close(struct watch *watch)
{
    if (watch->scheduler != NULL)
        hf_scheduler_close(watch->scheduler);
    watch->scheduler = NULL;
}

void watch_set(struct watch *watch, uint64_t warn_bytes)
{
    hf_u64_store(&watch->warn_bytes, warn_bytes, __ATOMIC_RELAXED); /* switch */
}

uint64_t watch_free_bytes(const struct watch *watch)
{
    return hf_u64_load(&watch->free_bytes, __ATOMIC_RELAXED); /* a figure */
}
