/* verify_history.c - `holdfast verify --history FILE`: what clients were told,
 * checked without a server. */
#include "cli/args.h"
#include "cli/json.h"
#include "cli/verify.h"
#include "history/history.h"

static void print_text(const char *path, const struct history *history,
                       const struct history_report *r)
{
    printf("%s: %llu calls, %llu answered\n", path,
           (unsigned long long)r->calls, (unsigned long long)r->answers);
    printf("checked: %llu grants of locks, %llu reservations, %llu reads\n",
           (unsigned long long)r->grants, (unsigned long long)r->reservations,
           (unsigned long long)r->reads);
    if (r->violations == 0) {
        printf("no violation: a server that keeps its promises can have "
               "answered so\n");
        return;
    }
    for (size_t i = 0; i < r->count; i++) {
        printf("\n%s: %s\n", r->found[i].rule, r->found[i].text);
        history_story(history, r, i, stdout);
    }
    printf("\n%llu violations%s\n", (unsigned long long)r->violations,
           r->count < r->violations ? ", the first of them above" : "");
}

static void print_json(const char *path, const struct history_report *r)
{
    printf("{\"ok\": %s, \"history\": ", r->violations == 0 ? "true" : "false");
    json_print(path);
    printf(", \"calls\": %llu, \"answers\": %llu, \"grants\": %llu, "
           "\"reservations\": %llu, \"reads\": %llu, \"violations\": %llu, "
           "\"found\": [",
           (unsigned long long)r->calls, (unsigned long long)r->answers,
           (unsigned long long)r->grants, (unsigned long long)r->reservations,
           (unsigned long long)r->reads, (unsigned long long)r->violations);
    for (size_t i = 0; i < r->count; i++) {
        printf("%s{\"rule\": \"%s\", \"text\": ", i > 0 ? ", " : "",
               r->found[i].rule);
        json_print(r->found[i].text);
        printf(", \"call\": %llu, \"other\": %llu}",
               (unsigned long long)r->found[i].id,
               (unsigned long long)r->found[i].other);
    }
    printf("]}\n");
}

int verify_history(const char *path, const struct history_opts *opts, bool json)
{
    static struct history_report report;
    char error[HISTORY_ERROR_MAX];
    struct history *history;

    if (history_load(&history, path, error) != HF_OK)
        return verify_failed(NULL, error, json);
    enum hf_status status = history_check(history, opts, &report);
    if (status == HF_OK && report.calls == 0) {
        snprintf(error, sizeof error, "%s: there is no call in it", path);
        status = HF_EMPTY;
    } else if (status != HF_OK) {
        snprintf(error, sizeof error, "%s: %s", path, hf_status_text(status));
    }
    if (status == HF_OK && json)
        print_json(path, &report);
    else if (status == HF_OK)
        print_text(path, history, &report);
    history_free(history);
    if (status != HF_OK)
        return verify_failed(NULL, error, json);
    return report.violations == 0 ? CLI_DONE : CLI_FAILED;
}
