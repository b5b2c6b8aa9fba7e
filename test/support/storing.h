/* storing.h - short words for the tests of stores, whichever they are.
 *
 * Threads: the test's own.
 */
#ifndef TEST_SUPPORT_STORING_H
#define TEST_SUPPORT_STORING_H

#include <stdio.h>
#include <string.h>

#include "holdfast/store.h"
#include "support/test.h"

#define TEXT_BYTES 64

/* The last error that a store told. */
static struct {
    enum hf_status status;
    char text[256];
    int count;
} told;

static inline void tell(void *context, enum hf_status status, const char *text)
{
    (void)context;
    told.status = status;
    snprintf(told.text, sizeof told.text, "%s", text);
    told.count++;
}

static inline struct hf_store_change put(const char *key, const char *value)
{
    return (struct hf_store_change){.key = key,
                                    .key_len = strlen(key),
                                    .value = value,
                                    .value_len = strlen(value)};
}

static inline struct hf_store_change gone(const char *key)
{
    return (struct hf_store_change){
        .key = key, .key_len = strlen(key), .remove = true};
}

static inline void note(void *arg, const void *value, size_t len)
{
    char *text = arg;

    if (len < TEXT_BYTES) {
        memcpy(text, value, len);
        text[len] = 0;
    }
}

static inline void check_value(struct hf_store *store, const char *key,
                               const char *expected)
{
    char text[TEXT_BYTES] = "";
    enum hf_status status =
        store->read(store->context, key, strlen(key), note, text);

    CHECK_EQ(status, expected == NULL ? HF_NOTFOUND : HF_OK);
    if (expected != NULL)
        CHECK_TEXT(text, strlen(text), expected);
}

#endif
