/* info.c - the figures told: INFO as lines of `name:value`, METRICS for
 * Prometheus. */
#include <math.h>
#include <strings.h>

#include "server/admin.h"
#include "server/answer.h"
#include "server/conn.h"
#include "server/figures.h"
#include "server/server.h"

struct info {
    struct server *server;
    struct reply *reply;
    struct hf_buf text;
};

/* A whole number has all its digits: `sequence` may have many. */
static void line(struct info *info, const char *name, const char *labels,
                 double number)
{
    bool whole = number == floor(number);

    if (hf_buf_format(&info->text, whole ? "%s%s:%.0f\r\n" : "%s%s:%.15g\r\n",
                      name, labels, number) != HF_OK)
        info->reply->failed = true;
}

/* How often, and how long all of them took. */
static void tell_sum(struct info *info, const char *name, const char *labels,
                     uint64_t count, double sum)
{
    char part[96];

    snprintf(part, sizeof part, "%s_count", name);
    line(info, part, labels, (double)count);
    snprintf(part, sizeof part, "%s_sum", name);
    line(info, part, labels, sum);
}

/* Percentiles are of the last minute, count and sum since the start. */
static void tell_window(struct info *info, const char *name, double scale,
                        struct hf_window *window)
{
    struct hf_window_view view = {0};
    struct hf_window_stats stats;

    hf_window_stats(window, &stats);
    (void)hf_window_view(window, hf_clock_now_ns(info->server->clock), &view);
    line(info, name, "{quantile=\"0.5\"}", (double)view.p50 * scale);
    line(info, name, "{quantile=\"0.95\"}", (double)view.p95 * scale);
    line(info, name, "{quantile=\"0.99\"}", (double)view.p99 * scale);
    line(info, name, "{quantile=\"1\"}", (double)view.max * scale);
    tell_sum(info, name, "", stats.count, (double)stats.sum * scale);
}

static void tell_series(struct info *info, const struct figure *figure,
                        const char *name, const char *labels, size_t index)
{
    char *at = (char *)info->server + figure->at + index * figure->size;
    struct hf_histogram_stats stats;

    if (figure->kind == FIGURE_HISTOGRAM) {
        hf_histogram_stats(*(struct hf_histogram **)at, &stats);
        tell_sum(info, name, labels, stats.count,
                 (double)stats.sum * figure->scale);
    } else if (figure->kind == FIGURE_WINDOW) {
        tell_window(info, name, figure->scale, *(struct hf_window **)at);
    } else {
        double number = figure_read(figure, info->server, index);
        bool whole = figure->redis != NULL || figure->help == NULL;
        line(info, name, labels, whole ? floor(number) : number);
    }
}

static void tell(struct info *info, const struct figure *figure)
{
    const char *name = figure->name;
    char labels[96] = "";

    if (figure->kind == FIGURE_TEXT) {
        if (hf_buf_format(&info->text, "%s:%s\r\n", name,
                          figure->text(info->server)) != HF_OK)
            info->reply->failed = true;
        return;
    }
    if (figure->redis != NULL)
        name = figure->redis;
    else if (strncmp(name, "holdfast_", 9) == 0)
        name += 9;
    for (size_t i = 0; i < (figure->series > 0 ? figure->series : 1); i++) {
        const char *value = figure->series > 0 ? figure->value(i) : "";
        if (value == NULL)
            continue;
        if (figure->series > 0)
            snprintf(labels, sizeof labels, "{%s=\"%s\"}", figure->label,
                     value);
        tell_series(info, figure, name, labels, i);
    }
}

/* True if a word of INFO means this section, or all. */
static bool is_meant(struct hf_bytes word, const char *section)
{
    return (word.len == strlen(section) &&
            strncasecmp(word.data, section, word.len) == 0) ||
           hf_bytes_is(word, "ALL") || hf_bytes_is(word, "EVERYTHING") ||
           hf_bytes_is(word, "DEFAULT");
}

void admin_info(const struct asked *asked)
{
    static const char *const sections[SECTION_COUNT] = {
        [SECTION_SERVER] = "Server",   [SECTION_CLIENTS] = "Clients",
        [SECTION_MEMORY] = "Memory",   [SECTION_PERSISTENCE] = "Persistence",
        [SECTION_LOG] = "Log",         [SECTION_STATS] = "Stats",
        [SECTION_LATENCY] = "Latency", [SECTION_EVENTS] = "Events",
        [SECTION_HOLDS] = "Holds",     [SECTION_ALERTS] = "Alerts",
    };
    struct info info = {.server = asked->server, .reply = asked->reply};

    answer_read_end(asked->server);
    for (size_t i = 0; i < SECTION_COUNT; i++) {
        if (asked->count > 0 && !is_meant(asked->args[0], sections[i]))
            continue;
        if (hf_buf_format(&info.text, "%s# %s\r\n", i > 0 ? "\r\n" : "",
                          sections[i]) != HF_OK)
            asked->reply->failed = true;
        for (size_t k = 0; k < figure_count(); k++)
            if (figure_at(k)->section == i)
                tell(&info, figure_at(k));
    }
    reply_put_bytes(asked->reply, hf_buf_bytes(&info.text));
    hf_buf_destroy(&info.text);
}

static enum hf_status put_text(void *context, const char *text, size_t len)
{
    reply_put_bytes(context, hf_bytes(text, len));
    return HF_OK;
}

void admin_metrics(const struct asked *asked)
{
    answer_read_end(asked->server);
    if (hf_meter_write(asked->server->metrics.meter, HF_METER_OBJECTS, put_text,
                       asked->reply) != HF_OK)
        asked->reply->failed = true;
}
