/* args.h - the options of a subcommand, as a table; help comes from it too.
 *
 *   holdfast NAME word word --port 7420 --json --ttl=500 -- rest of the line
 *
 * Options may stand anywhere before `--`; a value follows as the next word or
 * behind `=`. What is not an option is a word. `--help` prints the usage, the
 * options and the examples to stdout; a mistake is one line on stderr.
 *
 * Memory: texts and words point into argv, which is rearranged.
 */
#ifndef CLI_ARGS_H
#define CLI_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How the command ends, the same everywhere. A command that `holdfast lock`,
 * `once`, `elect` or `session` ran passes its own code through. */
enum cli_exit {
    CLI_DONE = 0,
    CLI_FAILED = 1,       /* it ran, and something is wrong */
    CLI_USAGE = 64,       /* the command line is wrong */
    CLI_REFUSED = 65,     /* the server refused for another reason */
    CLI_UNREACHABLE = 69, /* no server, or it went away */
    CLI_BUSY = 75,        /* held by another, out of stock, over the limit */
    CLI_LOST = 76,        /* the lock was lost; the command was killed */
    CLI_DEADLOCK = 77,    /* waiting would close a cycle, or is not allowed */
    CLI_WORK_DONE = 78,   /* another has done the work of this name */
    CLI_CANNOT_RUN = 126, /* the command exists but could not be run */
    CLI_NO_COMMAND = 127, /* the command does not exist */
};

/* The values of an option that may be given several times. */
#define ARGS_LIST_MAX 16
struct args_list {
    const char *values[ARGS_LIST_MAX];
    size_t count;
};

/* One option; exactly one of `text`, `number`, `flag` and `list` is set and
 * says what it takes. The variable keeps its value if the option is not given.
 */
struct args_option {
    const char *name;  /* without the dashes */
    const char *value; /* what the help calls its value; NULL for a flag */
    const char *help;  /* one line */
    const char **text;
    uint64_t *number;
    bool *flag;
    struct args_list *list;
    uint64_t min; /* of a number, both inclusive */
    uint64_t max;
};

#define ARGS_TEXT(name_, value_, help_, place)                          \
    {                                                                   \
        .name = name_, .value = value_, .help = help_, .text = &(place) \
    }
#define ARGS_NUMBER(name_, value_, help_, place, low, high)                \
    {                                                                      \
        .name = name_, .value = value_, .help = help_, .number = &(place), \
        .min = low, .max = high                                            \
    }
#define ARGS_LIST(name_, value_, help_, place)                          \
    {                                                                   \
        .name = name_, .value = value_, .help = help_, .list = &(place) \
    }
#define ARGS_FLAG(name_, help_, place)                 \
    {                                                  \
        .name = name_, .help = help_, .flag = &(place) \
    }

struct args_spec {
    const char *name;     /* of the subcommand */
    const char *usage;    /* what follows the name */
    const char *about;    /* what it does, in whole lines */
    const char *examples; /* whole lines */
    const struct args_option *options;
    size_t option_count;
};

struct args {
    char **words; /* what is not an option, `count` of them */
    int count;
    char **rest; /* what follows `--`, ended by NULL; NULL without `--` */
};

#define ARGS_GO (-1)

/* argv[0] is the subcommand's name. ARGS_GO: run; otherwise the exit code. */
int args_parse(const struct args_spec *spec, int argc, char **argv,
               struct args *out);

/* Prints `holdfast NAME: message`, and where to find help; CLI_USAGE. */
int args_wrong(const struct args_spec *spec, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
