/* args.c - walks argv once, storing each option where its table row says. */
#include "cli/args.h"

#include <assert.h>
#include <stdarg.h>

#include "base/bytes.h"

int args_wrong(const struct args_spec *spec, const char *format, ...)
{
    va_list args;

    fprintf(stderr, "holdfast %s: ", spec->name);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, " (see holdfast %s --help)\n", spec->name);
    return CLI_USAGE;
}

static void help(const struct args_spec *spec)
{
    printf("usage: holdfast %s %s\n\n%s\n", spec->name, spec->usage,
           spec->about);
    printf("options:\n");
    for (size_t i = 0; i < spec->option_count; i++) {
        const struct args_option *option = &spec->options[i];
        char left[64];
        snprintf(left, sizeof left, "--%s %s", option->name,
                 option->value != NULL ? option->value : "");
        printf("  %-20s %s\n", left, option->help);
    }
    printf("  %-20s %s\n", "--help", "this text");
    printf("\nexamples:\n%s", spec->examples);
}

/* The row of the option that `word` (without dashes) names up to `=`. */
static const struct args_option *find(const struct args_spec *spec,
                                      const char *word)
{
    size_t len = strcspn(word, "=");

    for (size_t i = 0; i < spec->option_count; i++) {
        const char *name = spec->options[i].name;
        if (strlen(name) == len && !memcmp(name, word, len))
            return &spec->options[i];
    }
    return NULL;
}

static int store_number(const struct args_spec *spec,
                        const struct args_option *option, const char *value)
{
    uint64_t number;

    assert(option->min <= option->max);
    if (hf_parse_u64(hf_bytes_text(value), &number) != HF_OK)
        return args_wrong(spec, "--%s takes a number, not '%s'", option->name,
                          value);
    if (number < option->min || number > option->max)
        return args_wrong(spec, "--%s takes a number from %llu to %llu",
                          option->name, (unsigned long long)option->min,
                          (unsigned long long)option->max);
    *option->number = number;
    return ARGS_GO;
}

/* Stores the option at argv[*at]; moves `*at` onto its value if that is the
 * next word. */
static int take_option(const struct args_spec *spec, int argc, char **argv,
                       int *at)
{
    const char *word = argv[*at] + 2;
    const char *value = strchr(word, '=');
    const struct args_option *option = find(spec, word);

    if (option == NULL)
        return args_wrong(spec, "unknown option '%s'", argv[*at]);
    assert((option->text != NULL) + (option->number != NULL) +
               (option->flag != NULL) + (option->list != NULL) ==
           1);
    if (option->flag != NULL && value != NULL)
        return args_wrong(spec, "--%s takes no value", option->name);
    if (option->flag != NULL) {
        *option->flag = true;
        return ARGS_GO;
    }
    if (value != NULL)
        value++;
    else if (*at + 1 < argc && strcmp(argv[*at + 1], "--") != 0)
        value = argv[++*at];
    else
        return args_wrong(spec, "--%s needs a value", option->name);
    if (option->number != NULL)
        return store_number(spec, option, value);
    if (option->list != NULL && option->list->count == ARGS_LIST_MAX)
        return args_wrong(spec, "--%s is given too often", option->name);
    if (option->list != NULL)
        option->list->values[option->list->count++] = value;
    else
        *option->text = value;
    return ARGS_GO;
}

int args_parse(const struct args_spec *spec, int argc, char **argv,
               struct args *out)
{
    assert(argc >= 1);
    *out = (struct args){.words = argv + 1};
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        if (strcmp(word, "--") == 0) {
            out->rest = argv + i + 1;
            break;
        }
        if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
            help(spec);
            return CLI_DONE;
        }
        /* a lone dash and negative numbers are words */
        if (word[0] != '-' || word[1] == '\0' ||
            (word[1] >= '0' && word[1] <= '9')) {
            out->words[out->count++] = argv[i];
            continue;
        }
        if (word[1] != '-')
            return args_wrong(spec, "unknown option '%s'", word);
        int code = take_option(spec, argc, argv, &i);
        if (code != ARGS_GO)
            return code;
    }
    return ARGS_GO;
}
