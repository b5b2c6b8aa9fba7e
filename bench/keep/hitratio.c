/* hitratio.c - how much of what is asked for is there: hf_cache with each
 * policy, the same policies written plainly, and the best that can be.
 *
 *   hitratio [--raw] [--count N] [--room N] [--write FOLDER] [TRACE...]
 *
 * prints per cent of hits for each stream of test/support/traces.h. --write
 * leaves each stream in a file of FOLDER, 32-bit numbers, and has Caffeine
 * (peers/CacheCaffeine.java) read it. --raw prints lines `SIDE TRACE_percent
 * VALUE`; `published` is the best of the three as they were published.
 */
#include <stdio.h>

#include "holdfast/cache.h"
#include "test/support/policies.h"

static const char *const names[] = {
    "zipf-0.7", "zipf-0.8", "zipf-0.9", "zipf-1.0", "zipf-1.1", "zipf-1.2",
    "scan",     "loop-1.1", "loop-2",   "shift",    "recent",   "mix",
};
#define NAMES (sizeof names / sizeof names[0])

static uint64_t run_ours(const struct trace *trace, enum hf_cache_policy policy)
{
    struct hf_cache_opts opts = {
        .max_count = trace->room, .policy = policy, .seed = {1, 2}};
    struct hf_cache *cache;
    struct hf_cache_stats stats;
    static char value;

    if (hf_cache_open(&cache, &opts) != HF_OK)
        abort();
    for (uint32_t i = 0; i < trace->count; i++) {
        const void *key = &trace->keys[i];
        if (hf_cache_get(cache, key, sizeof(uint32_t), NULL) != HF_OK &&
            hf_cache_put(cache, key, sizeof(uint32_t), &value, 0) != HF_OK)
            abort();
    }
    hf_cache_stats(cache, &stats);
    hf_cache_close(cache);
    return stats.hits;
}

static void write_trace(const struct trace *trace, const char *folder,
                        const char *name)
{
    char path[4096];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    if (file == NULL) {
        perror(path);
        exit(1);
    }
    if (fwrite(trace->keys, sizeof *trace->keys, trace->count, file) !=
            trace->count ||
        fclose(file) != 0) {
        perror(path);
        exit(1);
    }
}

#define SIDES 8
static const char *const sides[SIDES + 1] = {
    "ours-tinylfu",   "ours-lru", "ours-s3fifo", "lru",     "tinylfu",
    "tinylfu-climbs", "s3fifo",   "optimum",     "caffeine"};

static void measure(const struct trace *trace, double *percent)
{
    uint64_t hits[SIDES] = {
        run_ours(trace, HF_CACHE_TINYLFU),
        run_ours(trace, HF_CACHE_LRU),
        run_ours(trace, HF_CACHE_S3FIFO),
        policy_lru(trace),
        policy_tinylfu(trace, false),
        policy_tinylfu(trace, true),
        policy_s3fifo(trace),
        policy_best(trace),
    };

    for (int i = 0; i < SIDES; i++)
        percent[i] = 100.0 * (double)hits[i] / trace->count;
}

/* Per cent of hits, or -1 if it cannot be run. */
static double run_caffeine(const struct trace *trace, const char *folder,
                           const char *name)
{
    char command[8192];
    double percent = -1;

    write_trace(trace, folder, name);
    snprintf(command, sizeof command,
             "java -cp /usr/share/java/caffeine.jar "
             "bench/keep/peers/CacheCaffeine.java %u %u '%s/%s' ratio",
             trace->room, trace->names, folder, name);
    FILE *pipe = popen(command, "r");
    if (pipe == NULL || fscanf(pipe, "%lf", &percent) != 1)
        percent = -1;
    if (pipe != NULL)
        pclose(pipe);
    return percent;
}

static bool chosen(const char *name, int count, char **chosen_names)
{
    for (int i = 0; i < count; i++)
        if (strcmp(chosen_names[i], name) == 0)
            return true;
    return count == 0;
}

int main(int argc, char **argv)
{
    uint32_t count = 1000000;
    uint32_t room = 1000;
    const char *folder = NULL;
    bool raw = false;
    int i = 1;

    for (; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
        if (strcmp(argv[i], "--raw") == 0)
            raw = true;
        else if (strcmp(argv[i], "--count") == 0 && i + 1 < argc)
            count = (uint32_t)strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--room") == 0 && i + 1 < argc)
            room = (uint32_t)strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--write") == 0 && i + 1 < argc)
            folder = argv[++i];
    }
    if (!raw)
        printf("%-10s %8s %8s %8s | %8s %8s %8s %8s | %8s | %8s\n",
               "ours:", "tinylfu", "lru", "s3fifo", "lru", "tinylfu", "climbs",
               "s3fifo", "best", "caffeine");
    for (size_t n = 0; n < NAMES; n++) {
        struct trace trace;
        double percent[SIDES + 1] = {0};
        if (!chosen(names[n], argc - i, argv + i))
            continue;
        trace_make(&trace, names[n], count, room, 1);
        measure(&trace, percent);
        if (folder != NULL)
            percent[SIDES] = run_caffeine(&trace, folder, names[n]);
        if (raw)
            printf("published %s_percent %.2f\n", names[n],
                   fmax(fmax(percent[3], percent[4]), percent[6]));
        if (raw)
            for (int side = 0; side < SIDES + (folder != NULL); side++)
                printf("%s %s_percent %.2f\n", sides[side], names[n],
                       percent[side]);
        else
            printf("%-10s %8.2f %8.2f %8.2f | %8.2f %8.2f %8.2f %8.2f | %8.2f "
                   "| %8.2f\n",
                   names[n], percent[0], percent[1], percent[2], percent[3],
                   percent[4], percent[5], percent[6], percent[7], percent[8]);
        fflush(stdout);
        trace_free(&trace);
    }
    return 0;
}
