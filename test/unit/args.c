/* args.c - tests of the option parser.
 *
 * Messages go to stderr and help to stdout; both are caught in a file.
 */
#include "cli/args.h"

#include <unistd.h>

#include "support/test.h"

static const char *text;
static uint64_t number;
static bool flag;
static const struct args_option options[] = {
    {.name = "text", .value = "T", .help = "a text", .text = &text},
    {.name = "number",
     .value = "N",
     .help = "a number",
     .number = &number,
     .min = 5,
     .max = 100},
    {.name = "flag", .help = "a flag", .flag = &flag},
};
static const struct args_spec spec = {
    .name = "probe",
    .usage = "WORD [options]",
    .about = "About it.\n",
    .examples = "  holdfast probe x\n",
    .options = options,
    .option_count = 3,
};
static struct args args;
static char caught[4096];

/* Runs with `stream` going to a file, whose text is left in `caught`. */
static int parse_catching(FILE *stream, int argc, char **argv)
{
    FILE *file = tmpfile();
    CHECK(file != NULL);
    int number_of = fileno(stream);
    fflush(stream);
    int saved = dup(number_of);
    dup2(fileno(file), number_of);
    int code = args_parse(&spec, argc, argv, &args);
    fflush(stream);
    dup2(saved, number_of);
    close(saved);
    rewind(file);
    size_t len = fread(caught, 1, sizeof caught - 1, file);
    caught[len] = '\0';
    fclose(file);
    return code;
}

/* The words are kept, as `args` points to them. */
static int parse(char **words)
{
    static char *argv[16];
    int argc = 0;
    text = "default";
    number = 42;
    flag = false;
    memset(argv, 0, sizeof argv);
    for (; words[argc] != NULL; argc++)
        argv[argc] = words[argc];
    return parse_catching(stderr, argc, argv);
}

#define PARSE(...) parse((char *[]){"probe", __VA_ARGS__, NULL})

#define CHECK_WRONG(message, ...)                     \
    do {                                              \
        CHECK_EQ(PARSE(__VA_ARGS__), CLI_USAGE);      \
        CHECK_TEXT(caught, strlen(caught),            \
                   "holdfast probe: " message         \
                   " (see holdfast probe --help)\n"); \
    } while (0)

TEST(options_are_stored_and_words_collected)
{
    CHECK_EQ(PARSE("a", "--text", "t", "b", "--number=7", "--flag", "c"),
             ARGS_GO);
    CHECK_EQ(args.count, 3);
    CHECK_TEXT(args.words[0], strlen(args.words[0]), "a");
    CHECK_TEXT(args.words[2], strlen(args.words[2]), "c");
    CHECK_TEXT(text, strlen(text), "t");
    CHECK_EQ(number, 7);
    CHECK(flag);
    CHECK(args.rest == NULL);
}

TEST(what_is_not_given_keeps_its_value)
{
    char *argv[] = {"probe", NULL};
    CHECK_EQ(parse(argv), ARGS_GO);
    CHECK_EQ(args.count, 0);
    CHECK_TEXT(text, strlen(text), "default");
    CHECK_EQ(number, 42);
    CHECK(!flag);
}

TEST(two_dashes_end_the_options)
{
    CHECK_EQ(PARSE("a", "--", "--flag", "--help", "b"), ARGS_GO);
    CHECK_EQ(args.count, 1);
    CHECK(!flag);
    CHECK_TEXT(args.rest[0], strlen(args.rest[0]), "--flag");
    CHECK_TEXT(args.rest[2], strlen(args.rest[2]), "b");
    CHECK(args.rest[3] == NULL);
    CHECK_EQ(PARSE("a", "--"), ARGS_GO);
    CHECK(args.rest != NULL);
    CHECK(args.rest[0] == NULL);
}

TEST(dashes_and_negative_numbers_are_words)
{
    CHECK_EQ(PARSE("-", "-5", "--text", "-x", "--text=--"), ARGS_GO);
    CHECK_EQ(args.count, 2);
    CHECK_TEXT(args.words[1], 2, "-5");
    CHECK_TEXT(text, strlen(text), "--");
}

TEST(an_empty_value_is_a_value)
{
    CHECK_EQ(PARSE("--text="), ARGS_GO);
    CHECK_TEXT(text, strlen(text), "");
    CHECK_EQ(PARSE("--text", ""), ARGS_GO);
    CHECK_TEXT(text, strlen(text), "");
}

TEST(limits_of_a_number_are_inclusive)
{
    CHECK_EQ(PARSE("--number", "5"), ARGS_GO);
    CHECK_EQ(PARSE("--number", "100"), ARGS_GO);
    CHECK_WRONG("--number takes a number from 5 to 100", "--number", "4");
    CHECK_EQ(number, 42);
    CHECK_WRONG("--number takes a number from 5 to 100", "--number", "101");
}

TEST(mistakes_are_told_in_one_line)
{
    CHECK_WRONG("unknown option '--nope'", "--nope");
    CHECK_WRONG("unknown option '--nope=1'", "--nope=1");
    CHECK_WRONG("unknown option '--tex'", "--tex", "a");
    CHECK_WRONG("unknown option '-x'", "-x");
    CHECK_WRONG("--text needs a value", "--text");
    CHECK_WRONG("--text needs a value", "--text", "--", "x");
    CHECK_WRONG("--flag takes no value", "--flag=1");
    CHECK_WRONG("--number takes a number, not 'x'", "--number", "x");
    CHECK_WRONG("--number takes a number, not ''", "--number=");
    CHECK_WRONG("--number takes a number, not '-5'", "--number", "-5");
    CHECK_WRONG("--number takes a number, not '7x'", "--number", "7x");
    CHECK_WRONG("--number takes a number, not '18446744073709551616'",
                "--number", "18446744073709551616");
}

TEST(help_names_every_option_and_the_examples)
{
    char *argv[] = {"probe", "--help", NULL};
    CHECK_EQ(parse_catching(stdout, 2, argv), CLI_DONE);
    CHECK(strstr(caught, "usage: holdfast probe WORD [options]") == caught);
    CHECK(strstr(caught, "About it.") != NULL);
    CHECK(strstr(caught, "--text T") != NULL);
    CHECK(strstr(caught, "--number N") != NULL);
    CHECK(strstr(caught, "--flag") != NULL);
    CHECK(strstr(caught, "--help") != NULL);
    CHECK(strstr(caught, "  holdfast probe x\n") != NULL);
}
