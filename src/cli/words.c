/* words.c - appends to the list. */
#include "cli/words.h"

#include <assert.h>

void words_bytes(struct words *words, struct hf_bytes bytes)
{
    assert(words->count < RESP_ARGS_MAX);
    words->list[words->count++] = bytes;
}

void words_text(struct words *words, const char *text)
{
    words_bytes(words, hf_bytes_text(text));
}

void words_number(struct words *words, uint64_t number)
{
    assert(words->numbers < WORDS_NUMBERS_MAX);
    char *digits = words->digits[words->numbers++];

    words_bytes(words, hf_bytes(digits, hf_print_u64(digits, number)));
}

void words_option(struct words *words, const char *name, const char *text)
{
    if (text == NULL)
        return;
    words_text(words, name);
    words_text(words, text);
}

void words_amount(struct words *words, const char *name, uint64_t number)
{
    if (number == 0)
        return;
    words_text(words, name);
    words_number(words, number);
}
