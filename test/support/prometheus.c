/* prometheus.c - line by line, with what was said before kept. */
#include "support/prometheus.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool wrong(struct prometheus *told, const char *what, const char *where)
{
    if (told->wrong[0] == '\0')
        snprintf(told->wrong, sizeof told->wrong, "%s: %.180s", what, where);
    return false;
}

static char *copy(const char *text, size_t len)
{
    char *made = malloc(len + 1);

    if (made == NULL)
        abort();
    memcpy(made, text, len);
    made[len] = '\0';
    return made;
}

/* The length of a name at `text`; 0: there is none. */
static size_t name_len(const char *text, bool colons)
{
    size_t len = 0;

    while (isalpha((unsigned char)text[len]) || text[len] == '_' ||
           (colons && text[len] == ':') ||
           (len > 0 && isdigit((unsigned char)text[len])))
        len++;
    return len;
}

static struct prometheus_family *find_family(struct prometheus *told,
                                             const char *name, size_t len)
{
    for (size_t i = 0; i < told->family_count; i++)
        if (strlen(told->families[i].name) == len &&
            !memcmp(told->families[i].name, name, len))
            return &told->families[i];
    return NULL;
}

static struct prometheus_family *add_family(struct prometheus *told,
                                            const char *name, size_t len)
{
    size_t bytes = (told->family_count + 1) * sizeof *told->families;
    struct prometheus_family *all = realloc(told->families, bytes);

    if (all == NULL)
        abort();
    told->families = all;
    struct prometheus_family *family = &all[told->family_count++];
    *family = (struct prometheus_family){.name = copy(name, len)};
    snprintf(family->kind, sizeof family->kind, "untyped");
    return family;
}

static bool read_comment(struct prometheus *told, const char *line)
{
    bool is_help = strncmp(line, "# HELP ", 7) == 0;

    if (!is_help && strncmp(line, "# TYPE ", 7) != 0)
        return true;
    const char *name = line + 7;
    size_t len = name_len(name, true);
    if (len == 0 || (name[len] != ' ' && !(is_help && name[len] == '\0')))
        return wrong(told, "no name", line);
    struct prometheus_family *family = find_family(told, name, len);
    if (family != NULL && family != &told->families[told->family_count - 1])
        return wrong(told, "family in two pieces", line);
    if (family == NULL)
        family = add_family(told, name, len);
    if (family->has_samples)
        return wrong(told, "after its samples", line);
    bool *flag = is_help ? &family->has_help : &family->has_type;
    if (*flag)
        return wrong(told, "said twice", line);
    *flag = true;
    const char *rest = name[len] == '\0' ? "" : name + len + 1;
    if (is_help) {
        for (; *rest != '\0'; rest++)
            if (*rest == '\\' && *++rest != '\\' && *rest != 'n')
                return wrong(told, "escape in help", line);
        return true;
    }
    static const char *const kinds[] = {"counter", "gauge", "histogram",
                                        "summary", "untyped"};
    for (size_t i = 0; i < 5; i++)
        if (strcmp(rest, kinds[i]) == 0) {
            snprintf(family->kind, sizeof family->kind, "%s", rest);
            return true;
        }
    return wrong(told, "unknown type", line);
}

static bool read_number(const char *text, double *value)
{
    char *end;

    if (strcmp(text, "NaN") == 0)
        *value = NAN;
    else if (strcmp(text, "+Inf") == 0)
        *value = INFINITY;
    else if (strcmp(text, "-Inf") == 0)
        *value = -INFINITY;
    else if (*text != '-' && *text != '.' && !isdigit((unsigned char)*text))
        return false;
    else {
        *value = strtod(text, &end);
        return *end == '\0' && !strpbrk(text, "xXnN");
    }
    return true;
}

/* What stands between the braces. `*le` is that label's value; `bare` gets the
 * labels without it. Returns the length with both braces; 0: it is wrong. */
static size_t read_labels(const char *text, char *bare, char *le, size_t le_cap)
{
    char names[16][64];
    size_t count = 0;
    size_t at = 1;

    bare[0] = '\0';
    while (text[at] != '}') {
        size_t start = at;
        size_t len = name_len(text + at, false);
        if (len == 0 || len >= sizeof names[0] || count == 16)
            return 0;
        for (size_t i = 0; i < count; i++)
            if (strlen(names[i]) == len && !memcmp(names[i], text + at, len))
                return 0;
        memcpy(names[count], text + at, len);
        names[count][len] = '\0';
        at += len;
        if (text[at] != '=' || text[at + 1] != '"')
            return 0;
        size_t value = at += 2;
        for (; text[at] != '"'; at++) {
            if (text[at] == '\0')
                return 0;
            if (text[at] == '\\' && text[++at] != '"' && text[at] != '\\' &&
                text[at] != 'n')
                return 0;
        }
        if (strcmp(names[count], "le") == 0)
            snprintf(le, le_cap, "%.*s", (int)(at - value), text + value);
        else
            snprintf(bare + strlen(bare), PROMETHEUS_KEY_MAX - strlen(bare),
                     "%.*s,", (int)(at + 1 - start), text + start);
        count++;
        at++;
        if (text[at] == ',' && text[at + 1] != '}')
            at++;
        else if (text[at] != '}')
            return 0;
    }
    return at + 1;
}

static bool ends_family(const struct prometheus_family *family,
                        const char *name)
{
    static const char *const ends[] = {"", "_sum", "_count", "_bucket"};
    size_t len = strlen(family->name);
    bool histogram = strcmp(family->kind, "histogram") == 0;
    bool summary = strcmp(family->kind, "summary") == 0;

    if (strncmp(family->name, name, len) != 0)
        return false;
    for (size_t i = 0; i < 4; i++)
        if (strcmp(name + len, ends[i]) == 0)
            return i == 0   ? !histogram
                   : i == 3 ? histogram
                            : histogram || summary;
    return false;
}

static bool read_sample(struct prometheus *told, const char *line)
{
    static char bare[PROMETHEUS_KEY_MAX];
    char le[64] = "";
    double value;
    double bound = NAN;
    size_t len = name_len(line, true);
    size_t labels = 0;

    bare[0] = '\0';
    if (len == 0)
        return wrong(told, "no name", line);
    if (line[len] == '{') {
        labels = read_labels(line + len, bare, le, sizeof le);
        if (labels == 0)
            return wrong(told, "labels", line);
    }
    if (line[len + labels] != ' ' ||
        !read_number(line + len + labels + 1, &value))
        return wrong(told, "no number", line);
    char *name = copy(line, len);
    struct prometheus_family *family =
        told->family_count == 0 ? NULL
                                : &told->families[told->family_count - 1];
    bool ours = family != NULL && family->has_type && ends_family(family, name);
    bool bucket = ours && strcmp(family->kind, "histogram") == 0 &&
                  strcmp(name + strlen(family->name), "_bucket") == 0;
    if (!ours || bucket != (le[0] != '\0') ||
        (bucket && !read_number(le, &bound)) ||
        (!strcmp(family->kind, "counter") && !(value >= 0))) {
        free(name);
        return wrong(told, "does not belong here", line);
    }
    family->has_samples = true;
    size_t bytes = (told->sample_count + 1) * sizeof *told->samples;
    struct prometheus_sample *all = realloc(told->samples, bytes);
    if (all == NULL)
        abort();
    told->samples = all;
    char key[PROMETHEUS_KEY_MAX];
    snprintf(key, sizeof key, "%s{%s", family->name, bare);
    all[told->sample_count++] = (struct prometheus_sample){
        .key = copy(line, len + labels),
        .name = name,
        .bare = copy(key, strlen(key)),
        .value = value,
        .le = bound,
        .family = (int)told->family_count - 1,
    };
    return true;
}

static bool ends_with(const char *text, const char *end)
{
    size_t len = strlen(text);
    size_t more = strlen(end);

    return len >= more && strcmp(text + len - more, end) == 0;
}

/* The sample of one series of a histogram or summary with that end. */
static const struct prometheus_sample *
sibling(const struct prometheus *told, const struct prometheus_sample *of,
        const char *end)
{
    for (size_t i = 0; i < told->sample_count; i++)
        if (told->samples[i].family == of->family &&
            isnan(told->samples[i].le) &&
            !strcmp(told->samples[i].bare, of->bare) &&
            ends_with(told->samples[i].name, end))
            return &told->samples[i];
    return NULL;
}

/* Buckets of a series stand one after the other and grow. */
static bool check_bucket(struct prometheus *told, size_t index)
{
    const struct prometheus_sample *at = &told->samples[index];
    const struct prometheus_sample *next =
        index + 1 < told->sample_count ? at + 1 : NULL;
    const struct prometheus_sample *count = sibling(told, at, "_count");

    if (count == NULL || sibling(told, at, "_sum") == NULL)
        return wrong(told, "no _count or _sum", at->key);
    if (isinf(at->le))
        return at->value == count->value
                   ? true
                   : wrong(told, "+Inf is not _count", at->key);
    if (next == NULL || isnan(next->le) || strcmp(next->bare, at->bare) != 0)
        return wrong(told, "no +Inf", at->key);
    if (!(next->le > at->le) || next->value < at->value)
        return wrong(told, "buckets do not grow", at->key);
    return true;
}

static bool check_all(struct prometheus *told)
{
    for (size_t i = 0; i < told->sample_count; i++) {
        for (size_t j = 0; j < i; j++)
            if (strcmp(told->samples[i].key, told->samples[j].key) == 0)
                return wrong(told, "told twice", told->samples[i].key);
        if (!isnan(told->samples[i].le) && !check_bucket(told, i))
            return false;
    }
    return true;
}

bool prometheus_read(struct prometheus *told, const char *text, size_t len)
{
    const char *end = text + len;

    *told = (struct prometheus){0};
    if (len > 0 && end[-1] != '\n')
        return wrong(told, "no line end", "at the end");
    if (memchr(text, '\0', len) != NULL)
        return wrong(told, "a zero", "somewhere");
    while (text < end) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        char *line = copy(text, (size_t)(stop - text));
        bool good = line[0] == '\0'  ? true
                    : line[0] == '#' ? read_comment(told, line)
                                     : read_sample(told, line);
        free(line);
        if (!good)
            return false;
        text = stop + 1;
    }
    return check_all(told);
}

void prometheus_release(struct prometheus *told)
{
    for (size_t i = 0; i < told->sample_count; i++) {
        free(told->samples[i].key);
        free(told->samples[i].name);
        free(told->samples[i].bare);
    }
    for (size_t i = 0; i < told->family_count; i++)
        free(told->families[i].name);
    free(told->samples);
    free(told->families);
    *told = (struct prometheus){0};
}

double prometheus_value(const struct prometheus *told, const char *key)
{
    for (size_t i = 0; i < told->sample_count; i++)
        if (strcmp(told->samples[i].key, key) == 0)
            return told->samples[i].value;
    return NAN;
}

const char *prometheus_kind(const struct prometheus *told, const char *name)
{
    for (size_t i = 0; i < told->family_count; i++)
        if (strcmp(told->families[i].name, name) == 0)
            return told->families[i].kind;
    return "";
}
