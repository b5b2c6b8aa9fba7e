#include "contest.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS_MAX 101
/* A run that has not ended by then never will. */
#define STUCK_SECONDS 100

struct contest_run {
    _Alignas(CONTEST_LINE) uint64_t next; /* what contest_chunk() gives out */
    _Alignas(CONTEST_LINE) uint64_t total;
    uint64_t chunk;
    uint64_t cut_ns; /* after this time nothing more is given out */
    pthread_barrier_t gate;
};

struct entry { /* one side in one work */
    const struct contest_side *side;
    void *self;
    uint64_t operations; /* that a run is to do */
    uint64_t done;       /* and that the last one did */
    double took_ns[ROUNDS_MAX];
};

struct options {
    int rounds;
    uint64_t run_ns;
    bool raw;
    char **works;
};

/* For the messages. */
static const struct contest_side *running_side;
static const struct contest_work *running_work;
static cpu_set_t allowed;
/* A run that is far slower than the first ones were is cut off here. */
static uint64_t cut_ns;

__attribute__((noreturn)) void contest_fail(const char *what)
{
    fprintf(stderr, "%s, %s: %s\n", running_side ? running_side->name : "-",
            running_work ? running_work->name : "-", what);
    exit(1);
}

static void stuck(int number)
{
    static const char text[] = ": the run does not end\n";

    (void)number;
    if (write(2, running_side->name, strlen(running_side->name)) < 0 ||
        write(2, " ", 1) < 0 ||
        write(2, running_work->name, strlen(running_work->name)) < 0 ||
        write(2, text, sizeof text - 1) < 0)
        _exit(2);
    _exit(1);
}

void *contest_alloc(size_t bytes)
{
    void *memory = NULL;

    if (posix_memalign(&memory, CONTEST_LINE, bytes) != 0)
        contest_fail("out of memory");
    return memset(memory, 0, bytes);
}

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

bool contest_chunk(struct contest_thread *thread, uint64_t *from,
                   uint64_t *count)
{
    struct contest_run *run = thread->run;

    /* The first chunk in any case: without it there is no figure. */
    if (thread->done > 0 && now_ns() - thread->start_ns >= run->cut_ns)
        return false;
    /* A count only: what the threads do, they order themselves. */
    uint64_t at = __atomic_fetch_add(&run->next, run->chunk, __ATOMIC_RELAXED);
    if (at >= run->total)
        return false;
    *from = at;
    *count = run->total - at < run->chunk ? run->total - at : run->chunk;
    thread->done += *count;
    return true;
}

/* As many threads as processors: one on each. More: as the system likes. */
static void pin(const struct contest_thread *thread)
{
    unsigned cpus = (unsigned)CPU_COUNT(&allowed);
    unsigned seen = 0;
    cpu_set_t one;

    if (thread->work->roam || thread->work->threads > cpus)
        return;
    CPU_ZERO(&one);
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &allowed) && seen++ == thread->index)
            CPU_SET(cpu, &one);
    pthread_setaffinity_np(pthread_self(), sizeof one, &one);
}

static void *thread_main(void *argument)
{
    struct contest_thread *thread = argument;

    pin(thread);
    if (running_side->enter != NULL)
        running_side->enter(thread);
    pthread_barrier_wait(&thread->run->gate);
    thread->start_ns = now_ns();
    running_side->run(thread);
    thread->end_ns = now_ns();
    if (running_side->check != NULL) {
        pthread_barrier_wait(&thread->run->gate);
        if (thread->index == 0)
            running_side->check(thread);
    }
    if (running_side->leave != NULL)
        running_side->leave(thread);
    return NULL;
}

/* One run; the nanoseconds that it took. */
static uint64_t run_once(struct entry *entry)
{
    static struct contest_thread threads[CONTEST_THREADS_MAX];
    static struct contest_run run;
    pthread_t ids[CONTEST_THREADS_MAX];
    unsigned count = running_work->threads;
    uint64_t start_ns = UINT64_MAX;
    uint64_t end_ns = 0;
    uint64_t put = 0;
    uint64_t taken = 0;
    uint64_t done = 0;

    run.next = 0;
    run.total = entry->operations;
    run.chunk = count > 2 ? CONTEST_CHUNK / 8 : CONTEST_CHUNK;
    run.cut_ns = running_work->exact ? UINT64_MAX : cut_ns;
    pthread_barrier_init(&run.gate, NULL, count);
    alarm(STUCK_SECONDS);
    for (unsigned i = 0; i < count; i++) {
        threads[i] = (struct contest_thread){
            .work = running_work,
            .run = &run,
            .self = entry->self,
            .index = i,
            .total = entry->operations,
            .random = 0x9e3779b97f4a7c15u * (i + 1),
        };
        if (pthread_create(&ids[i], NULL, thread_main, &threads[i]) != 0)
            contest_fail("no thread");
    }
    for (unsigned i = 0; i < count; i++) {
        pthread_join(ids[i], NULL);
        put += threads[i].put;
        taken += threads[i].taken;
        done += threads[i].done;
        if (threads[i].start_ns < start_ns)
            start_ns = threads[i].start_ns;
        if (threads[i].end_ns > end_ns)
            end_ns = threads[i].end_ns;
    }
    alarm(0);
    pthread_barrier_destroy(&run.gate);
    if (put != taken)
        contest_fail("what was taken is not what was put");
    /* Whoever does not ask for chunks does all. */
    entry->done = done ? done : entry->operations;
    return end_ns > start_ns ? end_ns - start_ns : 1;
}

static uint64_t measure(struct entry *entry)
{
    running_side = entry->side;
    if (running_work->fresh)
        entry->self = entry->side->open(running_work);
    uint64_t took_ns = run_once(entry);
    if (running_work->fresh)
        entry->side->close(entry->self);
    return took_ns;
}

/* Finds how many operations fill the time of a run; warms up on the way. */
static void calibrate(struct entry *entry, uint64_t run_ns)
{
    uint64_t most = running_work->most ? running_work->most : UINT64_MAX / 2;

    entry->operations = running_work->exact;
    if (running_work->exact != 0)
        return;
    entry->operations = running_work->threads * UINT64_C(64);
    for (;;) {
        if (entry->operations > most)
            entry->operations = most;
        uint64_t took_ns = measure(entry);
        if (entry->operations == most && took_ns < run_ns)
            return;
        if (took_ns >= run_ns / 8) {
            double scale = (double)run_ns / (double)took_ns;
            entry->operations = (uint64_t)((double)entry->done * scale) + 1;
            /* The loops may deal these out to all threads alike. */
            entry->operations +=
                CONTEST_THREADS_MAX - entry->operations % CONTEST_THREADS_MAX;
            if (entry->operations > most)
                entry->operations = most;
            return;
        }
        entry->operations *= 4;
    }
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

static void print_table(struct entry *entries, unsigned count, int rounds)
{
    double best_ns = 0;

    for (unsigned i = 0; i < count; i++) {
        qsort(entries[i].took_ns, (size_t)rounds, sizeof(double), compare);
        double middle_ns = entries[i].took_ns[rounds / 2];
        if (strncmp(entries[i].side->name, "ours", 4) != 0 &&
            (best_ns == 0 || middle_ns < best_ns))
            best_ns = middle_ns;
    }
    for (unsigned i = 0; i < count; i++) {
        const double *ns = entries[i].took_ns;
        printf("%-16s %-12s %10.2f ns  (%.2f-%.2f)", running_work->name,
               entries[i].side->name, ns[rounds / 2], ns[0], ns[rounds - 1]);
        if (best_ns > 0 && strncmp(entries[i].side->name, "ours", 4) == 0)
            printf("  %.2f of the best peer", ns[rounds / 2] / best_ns);
        printf("\n");
    }
}

static void contest(const struct contest_side *const *sides,
                    const struct options *options)
{
    static struct entry entries[CONTEST_SIDES_MAX];
    unsigned count = 0;

    for (unsigned i = 0; sides[i] != NULL && count < CONTEST_SIDES_MAX; i++) {
        struct entry *entry = &entries[count];
        running_side = entry->side = sides[i];
        entry->self = sides[i]->open(running_work);
        if (entry->self == NULL)
            continue;
        if (running_work->fresh)
            sides[i]->close(entry->self);
        calibrate(entry, options->run_ns);
        count++;
    }
    for (int round = 0; round < options->rounds; round++)
        for (unsigned i = 0; i < count; i++) {
            double took_ns = (double)measure(&entries[i]);
            entries[i].took_ns[round] = took_ns / (double)entries[i].done;
            if (options->raw)
                printf("%s %s_ns %.3f\n", entries[i].side->name,
                       running_work->name, entries[i].took_ns[round]);
        }
    for (unsigned i = 0; i < count && !running_work->fresh; i++) {
        running_side = entries[i].side;
        entries[i].side->close(entries[i].self);
    }
    if (!options->raw)
        print_table(entries, count, options->rounds);
    fflush(stdout);
}

static uint64_t number(const char *text, uint64_t max)
{
    char *end;

    errno = 0;
    unsigned long long value = text ? strtoull(text, &end, 10) : 0;
    if (text == NULL || errno != 0 || *end != '\0' || value < 1 || value > max)
        contest_fail("a number is missing, 0 or too large");
    return value;
}

static bool chosen(const char *name, char **works)
{
    if (*works == NULL)
        return true;
    for (; *works != NULL; works++)
        if (strcmp(*works, name) == 0)
            return true;
    return false;
}

int contest_main(int argc, char **argv, const struct contest_work *works,
                 const struct contest_side *const *sides)
{
    struct options options = {.rounds = 5, .run_ns = 150000000};
    int i = 1;

    for (; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
        if (strcmp(argv[i], "--raw") == 0)
            options.raw = true;
        else if (strcmp(argv[i], "--rounds") == 0)
            options.rounds = (int)number(argv[++i], ROUNDS_MAX);
        else if (strcmp(argv[i], "--ms") == 0)
            options.run_ns = number(argv[++i], 10000) * 1000000;
        else
            contest_fail("usage: [--rounds N] [--ms N] [--raw] [WORK...]");
    }
    options.works = argv + i;
    cut_ns = 4 * options.run_ns;
    signal(SIGALRM, stuck);
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        contest_fail("sched_getaffinity");
    for (; works->name != NULL; works++) {
        running_work = works;
        if (chosen(works->name, options.works))
            contest(sides, &options);
    }
    return 0;
}
