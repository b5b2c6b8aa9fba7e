/* crawler.c - visits a tree of pages, each once, many at a time.
 *
 *   crawler FOLDER PAGE [THREADS]
 *
 * Pages are files of the folder; <a href="other.html"> leads from one to
 * another. A set of names tells new pages from seen ones, a pool visits them, a
 * rate keeps us from asking for more than 2,000 pages a second, and the last
 * page that is done opens the latch on which main() waits.
 */
#define _POSIX_C_SOURCE 200809L /* strndup, nanosleep: not in C11 */

#include <holdfast/adder.h>
#include <holdfast/latch.h>
#include <holdfast/map.h>
#include <holdfast/pool.h>
#include <holdfast/rate.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BURST   100    /* pages at once */
#define PAGE_NS 500000 /* then one in so long */

static const char *folder;
static struct hf_pool *pool;
static struct hf_map *seen;
static struct hf_rate rate;
static struct hf_adder pages, links, missing;
static atomic_size_t pending; /* pages that were found and are not done */
static struct hf_latch all_done;

static int visit(void *page);

/* Visits the page unless somebody has seen it before. */
static void follow(const char *name, size_t len)
{
    if (hf_map_add(seen, name, len) != HF_OK) /* HF_EXISTS: seen */
        return;
    char *page = strndup(name, len);
    atomic_fetch_add(&pending, 1);
    if (page == NULL ||
        hf_pool_submit(pool, visit, page, NULL, NULL) != HF_OK) {
        fprintf(stderr, "crawler: cannot visit %.*s\n", (int)len, name);
        exit(1);
    }
}

static void wait_for_our_turn(void)
{
    uint64_t wait_ns;

    while ((wait_ns = hf_rate_take(&rate, 1,
                                   hf_clock_now_ns(hf_clock_system()))) != 0) {
        struct timespec pause = {.tv_sec = (time_t)(wait_ns / 1000000000),
                                 .tv_nsec = (long)(wait_ns % 1000000000)};
        nanosleep(&pause, NULL);
    }
}

static void read_page(FILE *file)
{
    static const char mark[] = "href=\"";
    char line[4096];

    while (fgets(line, sizeof line, file) != NULL) {
        for (char *at = line; (at = strstr(at, mark)) != NULL;) {
            at += sizeof mark - 1;
            size_t len = strcspn(at, "\"#?");
            hf_adder_add(&links, 1);
            if (len > 0 && memchr(at, ':', len) == NULL) /* not elsewhere */
                follow(at, len);
        }
    }
}

static int visit(void *page)
{
    char path[4096];

    wait_for_our_turn();
    snprintf(path, sizeof path, "%s/%s", folder, (const char *)page);
    FILE *file = fopen(path, "r");
    if (file != NULL) {
        hf_adder_add(&pages, 1);
        read_page(file);
        fclose(file);
    } else {
        hf_adder_add(&missing, 1);
    }
    free(page);
    if (atomic_fetch_sub(&pending, 1) == 1)
        hf_latch_count_down(&all_done, 1);
    return file == NULL; /* a missing page is a failed task */
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: crawler FOLDER PAGE [THREADS]\n");
        return 2;
    }
    folder = argv[1];
    struct hf_pool_opts opts = {
        .name = "crawler",
        .kind = HF_POOL_FIXED,
        .max_threads = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 4,
        .queue_max = HF_POOL_QUEUE_UNBOUNDED};
    if (hf_pool_open(&pool, &opts) || hf_map_open(&seen, NULL) ||
        hf_adder_init(&pages) || hf_adder_init(&links) ||
        hf_adder_init(&missing) || hf_latch_init(&all_done, 1, NULL) ||
        hf_rate_init(&rate, BURST, PAGE_NS)) {
        fprintf(stderr, "crawler: out of memory, or a bad number\n");
        return 1;
    }
    follow(argv[2], strlen(argv[2]));
    hf_latch_wait(&all_done, HF_FOREVER);
    hf_pool_close(pool);
    int found_nothing = hf_adder_sum(&pages) == 0;
    printf("%lld pages, %lld links, %lld missing\n",
           (long long)hf_adder_sum(&pages), (long long)hf_adder_sum(&links),
           (long long)hf_adder_sum(&missing));
    hf_map_close(seen);
    hf_adder_destroy(&pages);
    hf_adder_destroy(&links);
    hf_adder_destroy(&missing);
    return found_nothing;
}
