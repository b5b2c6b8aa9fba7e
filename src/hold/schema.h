/* schema.h - what can be asked of the engine, in tables.
 *
 * Arguments say what a command carries: how clients name it, its type and
 * range, and where it stands in `struct hold_command`. Operations say what
 * there is to do: which words and options it takes, what clients are told
 * about it, and the functions that do it. Parsing, records, dispatch, HELP,
 * COMMAND, docs/commands.md and the simulator all read these rows.
 *
 *   RESERVE id|* ITEM sku qty [TTL ms] [REQ id]
 *   `-----' `--' `----------'
 *    name   words  options: an argument each, in any order
 *
 * To add an operation: a kind in kinds.h, a row in schema.c, and the
 * functions that it names.
 */
#ifndef HOLD_SCHEMA_H
#define HOLD_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hold/command.h"

struct hold_engine;
struct need;
struct subject;
struct target;

enum hold_type {
    TYPE_NONE,    /* a bit without an argument */
    TYPE_TEXT,    /* struct hf_bytes; its range is a length */
    TYPE_BYTES,   /* struct hf_bytes, any */
    TYPE_NEW_ID,  /* a text, or * for none */
    TYPE_NUMBER,  /* uint64_t */
    TYPE_VERSION, /* the same, kept one higher: 0 is "not given" */
    TYPE_SIGNED,  /* int64_t, any */
    TYPE_CHANGE,  /* int64_t, any but 0 */
    TYPE_ITEM,    /* sku and quantity; if `min` is not 0, perhaps MIN n */
    TYPE_MINS,    /* the least of each item: read with them */
    TYPE_OWNERS,  /* the owner of each item: read with them */
    TYPE_SKUS,    /* one or more, to the end */
    TYPE_FLAG,    /* no value: that it was given is all; or the bits `min` of
                   * a number are set */
    TYPE_CHOICE,  /* one of the words in `value`: its place, from bit `min` of
                   * a number on */
    TYPE_PERMITS, /* n OF max */
    TYPE_MEMBER,  /* a name of a set, perhaps SHARED */
    TYPE_PLACE,   /* one of several, in a text: hold_add_place() */
    TYPE_OWN,     /* `min` values, read by whoever made the table */
};

struct hold_arg {
    const char *name;  /* of an option; of a word, what stands for it */
    const char *value; /* of an option, what stands for its values */
    const char *form;  /* NULL, or how the syntax shows all of it */
    enum hold_type type;
    bool optional; /* of a word */
    bool empty;    /* of a text: it may be */
    bool many;     /* may be given several times; of a word, up to `max` */
    bool strict;   /* the engine relies on the range: checked in records */
    uint16_t place;
    uint64_t min;
    uint64_t max;
};

/* The arguments of records, by their bit, and more that options are read into.
 * Those with a value are options. */
enum hold_arg_bit {
    ARG_NAME,
    ARG_OWNER,
    ARG_REASON,
    ARG_REQ,
    ARG_TOKEN,
    ARG_TTL,
    ARG_WAIT,
    ARG_AMOUNT,
    ARG_GROUP,
    ARG_CLASS,
    ARG_MINS,
    ARG_OWNERS, /* as the three before it, no bit of a record when it was
                 * another */
    ARG_CURSOR,
    ARG_COUNT,
    ARG_ITEM,
    ARG_FLAGS,
    ARG_SESSION,
    ARG_PERMITS,
    ARG_MAXHOLD,
    ARG_DELAY,
    ARG_NOTE,
    ARG_DONE,
    ARG_GRACE,
    HOLD_RECORD_ARGS,              /* the others are stored as one of these */
    ARG_MEMBER = HOLD_RECORD_ARGS, /* in items */
    ARG_DEADLOCK,                  /* in flags */
    ARG_PRIORITY,                  /* in flags */
    ARG_RESULT,                    /* in note */
    ARG_TITLE,                     /* in note */
    ARG_VALUE,                     /* in note */
    ARG_DOT,                       /* in flags */
    ARG_TREE,                      /* in flags */
    ARG_IF,                        /* in token */
    ARG_REF,                       /* in note */
    ARG_SHARED,                    /* in flags */
    ARG_FOREVER,                   /* in flags */
    ARG_BARGE,                     /* in flags */
    ARG_BIND,                      /* in flags */
    ARG_BEST,                      /* in flags */
    ARG_PREORDER,                  /* in flags */
    ARG_ARRIVES,                   /* in delay */
    ARG_ID,                        /* in name */
    ARG_STAY,                      /* in delay */
    ARG_PART,                      /* in items */
    ARG_EXTENDS,                   /* in count */
    ARG_LIFE,                      /* in maxhold_ms */
    ARG_PLACE,                     /* in note */
    ARG_SPLIT,                     /* in flags */
    HOLD_ARGS
};
_Static_assert(HOLD_ARGS <= 64, "more options than bits");
#define HOLD_BIT(arg) (UINT64_C(1) << (arg))
extern const struct hold_arg hold_args[HOLD_ARGS];

/* The words behind a name, in order: a view of an argument each. */
enum hold_word {
    WORD_END,
    WORD_NAME,
    WORD_RESOURCE,
    WORD_SKU,
    WORD_ID,
    WORD_NEW_ID,
    WORD_PATTERN,
    WORD_TOKEN,
    WORD_SESSION,
    WORD_TOTAL,
    WORD_CHANGE,
    WORD_SKUS,
    WORD_SKIP, /* of HOLD_RESTART */
    WORD_LOW,
    WORD_UNITS,
    WORD_ATTRIBUTE,
    WORD_VALUE,
    WORD_WANTED,
    WORD_QUEUE,
    WORD_CLASS,
    WORD_GROUP,
    HOLD_WORDS
};
#define HOLD_WORDS_MAX 3u
extern const struct hold_arg hold_words[HOLD_WORDS];

enum hold_class {
    CLASS_NONE,     /* there is no such operation */
    CLASS_INTERNAL, /* journaled; the server itself asks for it */
    CLASS_WRITE,    /* journaled; may carry a REQ */
    CLASS_READ,     /* answered from memory */
    CLASS_LISTING,  /* the same, in pages */
};

/* Answers and returns true, if that can be done without a change. */
typedef bool hold_check_fn(struct hold_engine *e, const struct hold_command *c,
                           struct target at);
/* Makes the change, after a check that did not answer. */
typedef void hold_change_fn(struct hold_engine *e, const struct hold_command *c,
                            struct target at);
/* Says what memory applying the command may take. */
typedef void hold_need_fn(struct hold_engine *e, const struct hold_command *c,
                          struct need *need);
typedef void hold_run_fn(struct hold_engine *e, const struct hold_command *c);

struct hold_operation {
    enum hold_class class;
    const char *name; /* in upper case */
    const char *group;
    const char *summary; /* NULL: clients cannot ask for it */
    const char *reply;
    bool admin; /* only from the same machine */
    bool exact; /* all that is over must be swept first: see settled.c */
    bool alone; /* not in a group */
    bool key;   /* it is about keys of Redis, whose flags are others */
    bool takes_lock : 1; /* or some */
    bool gives_lock : 1; /* gives back the lock, or set, of its token */
    bool of_set : 1;     /* its token is that of a set */
    bool frees : 1;      /* in a group: those who wait may be granted, or end */
    bool ends_bundle : 1; /* ends all reservations of one GROUP */
    uint8_t words[HOLD_WORDS_MAX];
    uint64_t options;  /* bits of arguments */
    uint64_t required; /* of the options */
    uint64_t ttl_ms;   /* TTL, if it is not given; 0: TTL is not needed */

    /* What does it; the types are the engine's own (state.h). */
    const struct subject *subject; /* the records that it names */
    hold_check_fn *check;          /* of a write, as the next three */
    hold_change_fn *change;
    hold_need_fn *need; /* NULL: it needs no memory; of a question: its
                         * reply may be long */
    /* Ends what is over there and was not swept, for this command. */
    hold_run_fn *settle;
    hold_run_fn *retell; /* corrects a kept answer that is told again */
    hold_run_fn *run;    /* of all others */
};

extern const struct hold_operation hold_operations[HOLD_KINDS];

/* True for the kinds that go through the journal. */
static inline bool hold_kind_is_write(enum hold_kind kind)
{
    enum hold_class class = hold_operations[kind].class;

    return class == CLASS_WRITE || class == CLASS_INTERNAL;
}

/* True for the kinds that are about keys (key.c). */
static inline bool hold_is_key(enum hold_kind kind)
{
    return hold_operations[kind].key;
}

/* True for the kinds whose outcome may depend on everything that is due: they,
 * and a HOLD_TICK with an amount, are applied in as many calls as it takes. See
 * hold_is_exact(). */
static inline bool hold_kind_is_exact(enum hold_kind kind)
{
    return hold_operations[kind].exact;
}
/* Is it about the end of a reservation? */
static inline bool hold_kind_ends(enum hold_kind kind)
{
    return kind == HOLD_CONFIRM || kind == HOLD_CANCEL || kind == HOLD_EXTEND;
}

/* True for the kinds that may be answered later. */
static inline bool hold_kind_waits(enum hold_kind kind)
{
    return (hold_operations[kind].options & HOLD_BIT(ARG_WAIT)) != 0;
}

/* True for those of them that take locks. */
static inline bool hold_kind_locks(enum hold_kind kind)
{
    return hold_kind_waits(kind) && hold_operations[kind].takes_lock;
}

#endif
