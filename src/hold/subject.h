/* subject.h - a kind of record: where they are, and their form in images. */
#ifndef HOLD_SUBJECT_H
#define HOLD_SUBJECT_H

#include "base/index.h"
#include "hold/engine.h"
#include "hold/kinds.h"

/* Where a number stands in a record. Place 0: it is no number of the record's
 * own, but that of another; bytes 0: there are no more. */
struct subject_number {
    uint16_t place;
    uint16_t bytes;
};
#define SUBJECT_NUMBERS 7
#define SUBJECT_TEXTS   3
#define SUBJECT_LISTS   2

struct walk; /* image_parts.h */
struct reader;
/* Gives all records of a kind, and reads one. */
typedef enum hf_status subject_walk_fn(struct walk *walk);
typedef enum hf_status subject_load_fn(struct hold_engine *e,
                                       struct reader *in);

typedef uint64_t subject_link_fn(const struct hold_engine *e,
                                 const void *record);
typedef enum hf_status subject_loaded_fn(struct hold_engine *e, uint32_t number,
                                         uint64_t link);

/* A kind of record. */
struct subject {
    /* Of one that has events: the channel they are on, up to the name; the
     * fields of an event that have the name and the note. */
    const char *channel;
    const char *key;
    const char *note;
    size_t index; /* where they are found, as an offset in the engine */
    size_t bytes;
    /* Its time is over, but that was not swept; false of 0, which is none.
     * NULL: there is no such time. */
    bool (*is_over)(const struct hold_engine *e, uint32_t number);
    /* An entry of an image: kind, numbers, name, texts. */
    char image; /* '\0': none; a letter that load.c does not have */
    bool named; /* else its name is the first number */
    struct subject_number numbers[SUBJECT_NUMBERS];
    uint16_t texts[SUBJECT_TEXTS]; /* places */
    /* How many of both were in images up to IMAGE_BEFORE, and up to
     * IMAGE_UNENDED; 0 numbers: all. */
    struct {
        uint8_t numbers;
        uint8_t texts;
    } before[2];
    subject_link_fn *link;
    /* Where the order is part of the state: lists of the engine's, as places in
     * it, whose records have a place in that order. */
    uint32_t lists[SUBJECT_LISTS];
    bool (*is_listed)(const void *record); /* in one of them */
    /* The record was read: does the rest. HF_CORRUPT, HF_NOMEM. */
    subject_loaded_fn *loaded;
    /* Instead of all that: entries made and read by functions of its own. */
    subject_walk_fn *walk;
};

extern const struct subject hold_subjects[SUBJECTS];

static inline struct hf_index *subject_index(const struct hold_engine *e,
                                             const struct subject *subject)
{
    return (struct hf_index *)((char *)e + subject->index);
}

#endif
