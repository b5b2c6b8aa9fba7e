/* parse.h - the arguments of a request, as tables describe them.
 *
 *   LOCK  gate   OWNER me TTL 1000
 *         word   options, in any order
 *
 * A vocabulary is what a family of commands may say: rows of words and of
 * options, each with a type, a range and a place in the family's own struct. A
 * shape is what one command says of it. Whoever needs more than a type can
 * tell reads those options itself (TYPE_OWN).
 */
#ifndef SERVER_PARSE_H
#define SERVER_PARSE_H

#include "base/bytes.h"
#include "base/little.h"
#include "hold/schema.h"

#define PARSE_ERROR_MAX 512
/* What a sentence quotes of a client's word, for %.*s. */
#define PRINTED(bytes) (int)((bytes).len < 64 ? (bytes).len : 64), (bytes).data

/* Options of a vocabulary: bits of a number. */
#define PARSE_OPTIONS_MAX 64u

struct vocabulary {
    const struct hold_arg *words; /* 0 is the end of a shape's list */
    const struct hold_arg *options;
    unsigned option_count;
    unsigned last;        /* the option that the syntax shows last */
    uint64_t letters[32]; /* made: the options that begin with a letter */
    uint64_t names[PARSE_OPTIONS_MAX]; /* made: see parse_letters() */
};

struct shape {
    struct vocabulary *vocabulary;
    uint8_t words[5];
    uint64_t options;  /* bits of the vocabulary's */
    uint64_t required; /* of the options */
};

/* One reading: the caller sets all but `at`, `seen` and `missing`. */
struct parse {
    const struct shape *shape;
    const struct hf_bytes *args; /* behind the command's name */
    size_t count;
    size_t at;
    uint64_t seen; /* options that were given */
    bool missing;  /* why it failed: a word, value or required option is */
    void *out;     /* the vocabulary's struct; what is not given is left */
    char *error;   /* PARSE_ERROR_MAX */
    /* Takes the values of a TYPE_OWN from `at` on. */
    enum hf_status (*own)(struct parse *p, unsigned option);
    void *context;
};

/* A word of up to 8 bytes as a number, in which letters of both cases are
 * alike; 0: it is longer, or empty. Equal to that of a word of letters only if
 * the word is the same but for the case. */
static inline uint64_t parse_letters(struct hf_bytes word)
{
    const char *at = word.data;
    size_t len = word.len;
    uint64_t number;

    if (len - 1 > 7)
        return 0;
    if (len >= 4) /* the two halves may overlap */
        number = hf_get_u32(at) | (uint64_t)hf_get_u32(at + len - 4)
                                      << (len - 4) * 8;
    else
        number = (uint64_t)(unsigned char)at[0] |
                 (uint64_t)(unsigned char)at[len / 2] << len / 2 * 8 |
                 (uint64_t)(unsigned char)at[len - 1] << (len - 1) * 8;
    return number | UINT64_C(0x2020202020202020) >> (64 - len * 8);
}
/* The same of a name in upper case; 0 if it is not of letters alone. */
uint64_t parse_name(const char *name, size_t len);

/* Comes first, for each. */
void parse_init(struct vocabulary *vocabulary);
/* HF_INVALID, or what `own` said: `error` has the sentence. */
enum hf_status parse_shape(struct parse *p);
/* An error about a value. Always HF_INVALID. */
enum hf_status parse_wrong(struct parse *p, const char *what,
                           struct hf_bytes value);
/* The form in words: "name OWNER owner [TTL ms]". Returns its length; there is
 * room for it. */
size_t parse_syntax(const struct shape *shape, char *out, size_t room);
/* How many arguments the shape has at least, and at most. */
void parse_counts(const struct shape *shape, size_t *least, size_t *most);

/* The option of this name, which is one of the shape's. */
unsigned parse_option(const struct shape *shape, struct hf_bytes word);
/* How many values follow the option's name. */
size_t parse_values(const struct hold_arg *option);

/* One value. */
enum hf_status parse_text(struct hf_bytes text, const char *what, size_t max,
                          struct hf_bytes *out, char error[PARSE_ERROR_MAX]);
enum hf_status parse_number(struct hf_bytes text, const char *what,
                            uint64_t min, uint64_t max, uint64_t *out,
                            char error[PARSE_ERROR_MAX]);

#endif
