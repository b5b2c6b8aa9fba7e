/* server.c - the whole server, simulated, seed after seed.
 *
 *   build/test/sim/server [--seed N] [--seeds COUNT] [--commands N]
 *                         [--set FAULT=off,...] [--story] [--shrink]
 *                         [--first] [--history FILE]
 *
 * A seed is one run: see test/sim/README.md.
 */
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "sim/server/run.h"
#include "sim/server/shrink.h"

#define SEEDS         1000u
#define SEEDS_SLOW    40u /* with a sanitizer */
#define COMMANDS      2000u
#define TWICE         5u /* seeds that are run twice, to be compared */
#define FAILURES_TOLD 25

struct job {
    struct run_opts opts;
    uint64_t seeds;
    bool shrink;
    bool first; /* a failure is the end */
};

static struct job job;
static char folder[256];

static int remove_one(const char *path, const struct stat *info, int flag,
                      struct FTW *place)
{
    (void)info, (void)flag, (void)place;
    return remove(path);
}

static void remove_folder(void)
{
    (void)nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* In memory if there is a place for that. All paths are relative to it, so
 * that no run sees a name that another does not. */
static void make_folder(void)
{
    bool memory = access("/dev/shm", W_OK) == 0;
    const char *base = memory ? "/dev/shm" : getenv("TMPDIR");

    snprintf(folder, sizeof folder, "%s/holdfast-sim-XXXXXX",
             base != NULL ? base : "/tmp");
    if (mkdtemp(folder) == NULL || chdir(folder) != 0) {
        perror(folder);
        exit(2);
    }
    job.opts.dir = "data";
    atexit(remove_folder);
}

static void usage(void)
{
    fprintf(stderr, "usage: server [--seed N] [--seeds COUNT] [--commands N]\n"
                    "              [--set FAULT=off,...] [--story] [--shrink]\n"
                    "              [--first] [--history FILE]\nfaults:");
    for (int i = 0; i < FAULT_KINDS; i++)
        fprintf(stderr, " %s", fault_names[i]);
    fprintf(stderr, " all\n");
    exit(2);
}

/* "kill=off,stall=off" */
static uint32_t parse_faults(const char *text)
{
    uint32_t off = 0;

    while (*text != '\0') {
        size_t len = strcspn(text, "=,");
        bool found = len == 3 && memcmp(text, "all", 3) == 0;
        if (found)
            off = UINT32_MAX;
        for (int i = 0; i < FAULT_KINDS; i++) {
            if (strlen(fault_names[i]) == len &&
                memcmp(fault_names[i], text, len) == 0) {
                off |= 1u << i;
                found = true;
            }
        }
        if (!found || strncmp(text + len, "=off", 4) != 0)
            usage();
        text += len + 4;
        text += *text == ',';
    }
    return off;
}

static void parse(int argc, char **argv)
{
    bool slow = getenv("HOLDFAST_SAN") != NULL && *getenv("HOLDFAST_SAN");

    job.opts.seed = 1;
    job.opts.commands = COMMANDS;
    job.seeds = slow ? SEEDS_SLOW : SEEDS;
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i];
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(name, "--story") == 0) {
            job.opts.story = true;
            continue;
        }
        if (strcmp(name, "--shrink") == 0) {
            job.shrink = true;
            continue;
        }
        if (strcmp(name, "--first") == 0) {
            job.first = true;
            continue;
        }
        if (value == NULL)
            usage();
        i++;
        if (strcmp(name, "--seed") == 0) {
            job.opts.seed = strtoull(value, NULL, 10);
            job.seeds = 1;
        } else if (strcmp(name, "--seeds") == 0) {
            job.seeds = strtoull(value, NULL, 10);
        } else if (strcmp(name, "--commands") == 0) {
            job.opts.commands = strtoull(value, NULL, 10);
        } else if (strcmp(name, "--set") == 0) {
            job.opts.faults_off = parse_faults(value);
        } else if (strcmp(name, "--history") == 0) {
            job.opts.history = value;
        } else {
            usage();
        }
    }
}

static void print_replay(FILE *out)
{
    fprintf(out, "replay: build/test/sim/server --seed %llu --commands %llu",
            (unsigned long long)job.opts.seed,
            (unsigned long long)job.opts.commands);
    const char *before = " --set ";
    for (int i = 0; i < FAULT_KINDS; i++) {
        if ((job.opts.faults_off >> i & 1) == 0)
            continue;
        fprintf(out, "%s%s=off", before, fault_names[i]);
        before = ",";
    }
    fprintf(out, "\n");
}

/* An assertion of the server's, a crash, or a run without end where a limit of
 * processor time is set. */
static void on_death(int number)
{
    if (!shrink_is_trying()) {
        printf("FAIL seed %llu dies of signal %d\n",
               (unsigned long long)job.opts.seed, number);
        print_replay(stdout);
        if (job.seeds == 1)
            run_story(&(struct run_result){0}, stdout);
        fflush(stdout);
        remove_folder();
    }
    signal(number, SIG_DFL);
    raise(number);
}

static void tell_failure(const struct run_result *result)
{
    printf("FAIL seed %llu: %s: %s (#%llu, #%llu)\n",
           (unsigned long long)job.opts.seed, result->rule, result->text,
           (unsigned long long)result->id, (unsigned long long)result->other);
    print_replay(stdout);
    if (job.shrink)
        shrink(&job.opts, result, stdout);
    else if (job.seeds == 1 && !job.opts.story)
        run_story(result, stdout);
    fflush(stdout);
}

static bool is_same(const struct run_result *first)
{
    struct run_result second;

    run_seed(&job.opts, &second);
    if (second.digest == first->digest)
        return true;
    printf("FAIL seed %llu: two runs differ\n",
           (unsigned long long)job.opts.seed);
    return false;
}

static void add_up(struct run_result *sum, const struct run_result *result)
{
    sum->sent += result->sent;
    sum->answers += result->answers;
    sum->grants += result->grants;
    sum->reads += result->reads;
    sum->reservations += result->reservations;
    sum->turns += result->turns;
    sum->starts += result->starts;
    sum->crashes += result->crashes;
    sum->stops += result->stops;
    sum->simulated_us += result->simulated_us;
}

int main(int argc, char **argv)
{
    struct run_result result;
    struct run_result sum = {0};
    uint64_t passed = 0;
    uint64_t failed = 0;

    parse(argc, argv);
    make_folder();
    signal(SIGABRT, on_death);
    signal(SIGSEGV, on_death);
    signal(SIGXCPU, on_death);
    if (job.shrink && shrink_dies(&job.opts)) {
        result = (struct run_result){
            .rule = "dies", .clients = CLIENTS_MAX, .faults = FAULTS_MAX};
        for (size_t i = 0; i < CLIENTS_MAX; i++)
            result.client_turns[i] = job.opts.commands;
        shrink(&job.opts, &result, stdout);
    }
    uint64_t first = job.opts.seed;
    clock_t begun = clock();
    for (; job.opts.seed < first + job.seeds; job.opts.seed++) {
        run_seed(&job.opts, &result);
        add_up(&sum, &result);
        if (job.opts.story) {
            run_describe(&job.opts, stdout);
            run_story(&(struct run_result){0}, stdout);
        }
        bool good = !result.failed;
        if (!good && failed < FAILURES_TOLD)
            tell_failure(&result);
        if (good && job.seeds > 1 && job.opts.seed < first + TWICE)
            good = is_same(&result);
        passed += good;
        failed += !good;
        if (job.first && failed > 0)
            break;
    }
    double took = (double)(clock() - begun) / CLOCKS_PER_SEC;
    printf("%llu requests, %llu answers, %llu grants, %llu reads, %llu "
           "reservations; %llu starts, %llu crashes, %llu clean stops; %.0f s "
           "simulated in %.1f s\n",
           (unsigned long long)sum.sent, (unsigned long long)sum.answers,
           (unsigned long long)sum.grants, (unsigned long long)sum.reads,
           (unsigned long long)sum.reservations, (unsigned long long)sum.starts,
           (unsigned long long)sum.crashes, (unsigned long long)sum.stops,
           (double)sum.simulated_us / 1e6, took);
    printf("server: %llu passed, %llu failed\n", (unsigned long long)passed,
           (unsigned long long)failed);
    return failed == 0 ? 0 : 1;
}
