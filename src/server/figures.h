/* figures.h - the one list of what the server tells of itself.
 *
 *   list --> METRICS, as the registry has them (metrics.c)
 *        --> INFO, section by section (info.c)
 *
 * A figure has one name. INFO leaves out `holdfast_`, and calls those that
 * Redis has, too, as Redis calls them, for its tools. What the engine, the
 * journal, the log and the limiter count is asked of them when it is read.
 *
 * Threads: the loop's.
 */
#ifndef SERVER_FIGURES_H
#define SERVER_FIGURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct server;

enum figure_section { /* in the order of INFO */
                      SECTION_SERVER,
                      SECTION_CLIENTS,
                      SECTION_MEMORY,
                      SECTION_PERSISTENCE,
                      SECTION_LOG,
                      SECTION_STATS,
                      SECTION_LATENCY,
                      SECTION_EVENTS,
                      SECTION_HOLDS,
                      SECTION_ALERTS,
                      SECTION_COUNT,
                      SECTION_NONE = SECTION_COUNT, /* METRICS only */
};

enum figure_kind {
    FIGURE_GAUGE,
    FIGURE_COUNTER,
    FIGURE_HISTOGRAM, /* at `at`: struct hf_histogram * */
    FIGURE_WINDOW,    /* at `at`: struct hf_window * */
    FIGURE_TEXT,
};

struct figure {
    enum figure_section section;
    const char *name;
    const char *help; /* NULL: INFO only, as a whole number */
    enum figure_kind kind;
    const char *redis; /* its name in INFO, as a whole number */
    /* A number of `size` bytes at `at` of what `gather` fills, NULL: of the
     * server; */
    void (*gather)(const struct server *server, void *out);
    size_t at;
    size_t size;
    bool real;    /* a double */
    double scale; /* told is the number times this; 0: 1 */
    /* or worked out; */
    double (*read)(const struct server *server);
    const char *(*text)(const struct server *server);
    /* with a label: a series for each index whose value is not NULL. */
    const char *label;
    const char *(*value)(size_t index);
    size_t series;          /* 0: one, without a label */
    const uint64_t *bounds; /* of histograms */
    size_t bound_count;
};

size_t figure_count(void);
const struct figure *figure_at(size_t index);
/* The number of a gauge or counter. */
double figure_read(const struct figure *figure, const struct server *server,
                   size_t index);

#endif
