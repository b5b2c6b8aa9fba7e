/* lock_manager.c - three threads need the same three locks, and four ways not
 * to deadlock.
 *
 *   lock_manager
 *
 *   thread 1   Database, then FileSystem
 *   thread 2   FileSystem, then Network
 *   thread 3   Network, then Database
 *
 * Each takes its first lock and waits until all have theirs: from there the
 * plain way ends in a deadlock every time. The ways out:
 *
 *   ordering        all take their locks in the order of the names
 *   time-out        who waits too long gives back and tries again
 *   all-or-nothing  both locks at once, or none
 *   detection       the manager refuses the request that would close the
 *                   cycle, and tells the cycle; who is refused begins again
 */
#define _POSIX_C_SOURCE 200809L
#include <holdfast/barrier.h>
#include <holdfast/locks.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define THREADS 3

static const char *const names[] = {"Database", "FileSystem", "Network"};

struct job {
    struct hf_locks *locks;
    struct hf_barrier *meeting; /* all have their first lock */
    const char *way;
    char owner[16];
    const char *first;
    const char *second;
    int refused; /* how often it had to begin again */
    int finished;
};

static enum hf_status take(struct job *job, const char *name,
                           uint64_t deadline_ns, struct hf_locks_answer *answer)
{
    struct hf_locks_request request = {.owner = job->owner, .note = job->way};

    return hf_locks_acquire(job->locks, name, &request, deadline_ns, answer);
}

static void meet(struct job *job)
{
    if (job->refused == 0) /* once; later each goes its own way */
        (void)hf_barrier_wait(job->meeting, HF_FOREVER, NULL);
}

/* Holds the first lock and wants the second: true if it got it. */
static int go_on(struct job *job, const struct hf_locks_answer *first,
                 uint64_t deadline_ns)
{
    struct hf_locks_answer second;
    enum hf_status status = take(job, job->second, deadline_ns, &second);

    if (status == HF_OK) {
        job->finished = 1; /* the work, with both locks */
        (void)hf_locks_release(job->locks, job->second, second.token);
    } else {
        job->refused++;
    }
    if (status == HF_DEADLOCK) {
        printf("detection: %s is refused: ", job->owner);
        for (uint32_t i = 0; i < second.link_count; i++)
            printf("%s waits for %s, which %s holds%s", second.links[i].owner,
                   second.links[i].name,
                   second.links[(i + 1) % second.link_count].owner,
                   i + 1 < second.link_count ? "; " : "\n");
        hf_locks_answer_free(&second);
    }
    (void)hf_locks_release(job->locks, job->first, first->token);
    return status == HF_OK;
}

/* One after the other, until it has both. */
static void one_by_one(struct job *job, uint64_t patience_ms)
{
    struct hf_locks_answer first;
    struct hf_backoff backoff;
    uint64_t pause_ns;

    if (hf_backoff_init(&backoff, NULL) != HF_OK)
        return;
    while (take(job, job->first, HF_FOREVER, &first) == HF_OK) {
        if (strcmp(job->way, "ordering") != 0)
            meet(job);
        uint64_t deadline_ns = patience_ms == 0
                                   ? HF_FOREVER
                                   : hf_clock_after_ms(NULL, patience_ms);
        if (go_on(job, &first, deadline_ns) ||
            hf_backoff_next(&backoff, hf_clock_now_ns(NULL), HF_FOREVER,
                            &pause_ns) != HF_OK)
            return;
        struct timespec pause = {.tv_nsec = (long)(pause_ns % 1000000000)};
        (void)nanosleep(&pause, NULL);
    }
}

static void in_order(struct job *job)
{
    if (strcmp(job->first, job->second) > 0) {
        const char *name = job->first;
        job->first = job->second;
        job->second = name;
    }
    one_by_one(job, 0);
}

static void both_at_once(struct job *job)
{
    const struct hf_locks_item items[] = {{.name = job->first},
                                          {.name = job->second}};
    struct hf_locks_request request = {.owner = job->owner, .note = job->way};
    struct hf_locks_answer set;

    meet(job);
    if (hf_locks_acquire_set(job->locks, items, 2, &request, HF_FOREVER,
                             &set) != HF_OK)
        return;
    job->finished = 1;
    (void)hf_locks_release_set(job->locks, set.token);
}

static void *run(void *argument)
{
    struct job *job = argument;

    if (strcmp(job->way, "ordering") == 0)
        in_order(job);
    else if (strcmp(job->way, "time-out") == 0)
        one_by_one(job, 20);
    else if (strcmp(job->way, "all-or-nothing") == 0)
        both_at_once(job);
    else
        one_by_one(job, 0);
    return NULL;
}

/* Returns how many finished. */
static int try_way(const char *way)
{
    struct hf_locks_opts opts = {.name = way,
                                 .policy = strcmp(way, "detection") == 0
                                               ? HF_LOCKS_DETECT
                                               : HF_LOCKS_NONE};
    struct hf_barrier_opts all = {.parties = THREADS};
    struct job jobs[THREADS];
    pthread_t threads[THREADS];
    struct hf_barrier meeting;
    struct hf_locks *locks;
    int finished = 0;
    int refused = 0;

    if (hf_locks_open(&locks, &opts) || hf_barrier_init(&meeting, &all))
        return 0;
    for (int i = 0; i < THREADS; i++) {
        jobs[i] = (struct job){.locks = locks,
                               .meeting = &meeting,
                               .way = way,
                               .first = names[i],
                               .second = names[(i + 1) % THREADS]};
        snprintf(jobs[i].owner, sizeof jobs[i].owner, "thread %d", i + 1);
        if (pthread_create(&threads[i], NULL, run, &jobs[i]))
            return 0;
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        finished += jobs[i].finished;
        refused += jobs[i].refused;
    }
    printf("%s: finished %d of %d, begun again %d times\n", way, finished,
           THREADS, refused);
    hf_barrier_destroy(&meeting);
    hf_locks_close(locks);
    return finished;
}

int main(void)
{
    int finished = try_way("ordering") + try_way("time-out") +
                   try_way("all-or-nothing") + try_way("detection");

    return finished == 4 * THREADS ? 0 : 1;
}
