/* etl.c - extract, transform, load; and how backpressure travels.
 *
 *   etl [ROWS]
 *
 * Three stages with queues of 40. The last one writes slowly: its queue fills
 * up, then that of the stage before, and in the end it is the reader that
 * waits. Every tenth of the rows a line shows how full the queues are.
 */
#define _POSIX_C_SOURCE 200809L /* nanosleep: not in C11 */

#include <holdfast/pipeline.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define STAGES 3
#define DEPTH  40

struct row {
    unsigned number;
    unsigned price;
};

static unsigned long long total;
static unsigned loaded;

static int extract(void *context, void *item, void **out)
{
    (void)context;
    (void)out; /* the row goes on */
    struct row *row = item;
    row->price = row->number % 100;
    return 0;
}

static int transform(void *context, void *item, void **out)
{
    struct row *row = item;

    (void)context;
    if (row->price == 13) { /* nobody buys that */
        free(row);
        *out = NULL;
        return 0;
    }
    row->price += row->price / 5; /* tax */
    return 0;
}

static int load(void *context, void *item, void **out)
{
    struct timespec slow = {.tv_nsec = 50000};
    struct row *row = item;

    (void)context;
    nanosleep(&slow, NULL);
    total += row->price; /* one worker: no other writes it */
    loaded++;
    free(row);
    *out = NULL;
    return 0;
}

static void show(struct hf_pipeline *line, const uint32_t *stages, unsigned row)
{
    static const char *const names[STAGES] = {"extract", "transform", "load"};

    printf("row %6u ", row);
    for (int i = 0; i < STAGES; i++) {
        struct hf_stage_stats stats;
        char bar[DEPTH + 1];
        hf_pipeline_stage_stats(line, stages[i], &stats);
        for (unsigned j = 0; j < DEPTH; j++)
            bar[j] = j < stats.depth ? '#' : '.';
        bar[DEPTH] = '\0';
        printf(" %s [%s]", names[i], bar);
    }
    printf("\n");
}

int main(int argc, char **argv)
{
    unsigned rows = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 2000;
    struct hf_stage_opts opts[STAGES] = {
        {.name = "extract", .work = extract, .queue_max = DEPTH},
        {.name = "transform",
         .work = transform,
         .queue_max = DEPTH,
         .workers = 4,
         .ordered = true},
        {.name = "load", .work = load, .queue_max = DEPTH},
    };
    struct hf_pipeline *line;
    uint32_t stages[STAGES];

    if (hf_pipeline_open(&line, NULL))
        return 1;
    for (int i = 0; i < STAGES; i++) {
        if (hf_pipeline_stage(line, &opts[i], &stages[i]) ||
            (i > 0 && hf_pipeline_link(line, stages[i - 1], stages[i])))
            return 1;
    }
    if (hf_pipeline_start(line))
        return 1;
    for (unsigned i = 0; i < rows; i++) {
        struct row *row = malloc(sizeof *row);
        if (row == NULL)
            return 1;
        *row = (struct row){.number = i};
        if (hf_pipeline_put(line, stages[0], row, HF_FOREVER))
            return 1;
        if (i % (rows / 10 + 1) == 0)
            show(line, stages, i);
    }
    hf_pipeline_close(line); /* what is inside is finished first */
    printf("%u of %u rows loaded, total %llu\n", loaded, rows, total);
    return loaded == rows - rows / 100 - (rows % 100 > 13) ? 0 : 1;
}
