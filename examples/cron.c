/* cron.c - runs commands at their times, as cron does.
 *
 *   cron SECONDS 'EVERY-MS COMMAND' ...
 *
 * Each argument is a period in milliseconds and a command for the shell. Runs
 * for so many seconds, then tells how often each command ran and how late it
 * was. A command that takes longer than its period is not started twice at a
 * time; the times that it missed are left out.
 */
#include <holdfast/latch.h>
#include <holdfast/pool.h>
#include <holdfast/scheduler.h>
#include <stdio.h>
#include <stdlib.h>

#define JOBS_MAX 64

struct job {
    const char *command;
    unsigned long runs;
    uint64_t id;
};

static int run(void *arg)
{
    struct job *job = arg;

    job->runs++; /* the runs of one job do not overlap */
    return system(job->command);
}

static int stop(void *arg)
{
    return hf_latch_count_down(arg, 1) != HF_OK;
}

static int fail(const char *why)
{
    fprintf(stderr, "cron: %s\n", why);
    return 2;
}

int main(int argc, char **argv)
{
    static struct job jobs[JOBS_MAX];
    struct hf_scheduler *scheduler;
    struct hf_scheduler_stats stats;
    struct hf_pool *pool;
    struct hf_latch over;

    if (argc < 3 || argc - 2 > JOBS_MAX)
        return fail("usage: cron SECONDS 'EVERY-MS COMMAND' ...");
    if (hf_pool_open(&pool, &(struct hf_pool_opts){.kind = HF_POOL_CACHED,
                                                   .max_threads = JOBS_MAX}) ||
        hf_scheduler_open(&scheduler,
                          &(struct hf_scheduler_opts){.pool = pool}))
        return fail("out of memory");
    for (int i = 2; i < argc; i++) {
        char *command;
        unsigned long ms = strtoul(argv[i], &command, 10);
        struct hf_every every = {.period_ns = ms * 1000000u};
        if (ms == 0 || *command != ' ')
            return fail("a job is a number of milliseconds and a command");
        jobs[i - 2].command = command + 1;
        if (hf_scheduler_every(scheduler, &every, run, &jobs[i - 2],
                               &jobs[i - 2].id))
            return fail("a job was refused");
    }
    uint64_t end_ns =
        hf_clock_after_ms(hf_clock_system(), strtoul(argv[1], NULL, 10) * 1000);
    if (hf_latch_init(&over, 1, NULL) ||
        hf_scheduler_at(scheduler, end_ns, 0, stop, &over, NULL))
        return fail("the end was refused");
    hf_latch_wait(&over, HF_FOREVER);
    hf_scheduler_shutdown_now(scheduler, NULL, NULL);
    hf_scheduler_await(scheduler, HF_FOREVER); /* for what is running */
    for (int i = 0; i < argc - 2; i++)
        printf("%lu x %s\n", jobs[i].runs, jobs[i].command);
    hf_scheduler_stats(scheduler, &stats);
    printf("99 of 100 started within %.3f ms of their time\n",
           (double)stats.late_p99_ns / 1e6);
    hf_scheduler_close(scheduler);
    hf_pool_close(pool);
    return 0;
}
