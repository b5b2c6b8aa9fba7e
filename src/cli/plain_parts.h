/* plain_parts.h - the inside of the plain commands, shared by their files.
 *
 *   plain.c        command lines to requests, and the commands about locks and
 *                  limits
 *   plain_stock.c  the commands about stock
 */
#ifndef CLI_PLAIN_PARTS_H
#define CLI_PLAIN_PARTS_H

#include "cli/call.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

struct plain {
    struct args_spec spec;
    int words_min;
    int words_max;
    const char *needed; /* told if there are not so many words */
    /* ARGS_GO, or the exit code after telling what is wrong; NULL: nothing */
    int (*check)(const struct plain *plain, const struct args *args);
    bool items; /* words after the first are SKU=QTY */
    bool mins;  /* or SKU=MIN..QTY */
    bool asks;  /* the answer may be a no */
};

extern const struct plain plain_stock[];
extern const size_t plain_stock_count;

extern struct call plain_call;

/* Values of options that several have; of texts NULL, of numbers 0 is "not
 * given". */
extern uint64_t plain_cursor, plain_page;

#define PAGE_OPTIONS(of)                                                \
    ARGS_NUMBER("cursor", "N",                                          \
                "where to go on: the cursor of the page before" of,     \
                plain_cursor, 0, UINT64_MAX),                           \
        ARGS_NUMBER("count", "N", "how many at most" of, plain_page, 0, \
                    UINT64_MAX)

#define EXITS \
    "exit code: 0 shown, 64 wrong command line, 65 refused, 69 no server\n"

/* Where MIN ends, in MIN..QTY; NULL: it is not that. */
char *plain_find_most(char *text);
/* The last `=` of SKU=QTY; NULL: it is not that. */
char *plain_find_quantity(const struct plain *plain, char *word);

#endif
