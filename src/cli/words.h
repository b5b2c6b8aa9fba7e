/* words.h - a request in the making: its words, one after the other.
 *
 * Memory: texts are the caller's and must stay until the request is sent;
 * numbers are printed into the struct.
 */
#ifndef CLI_WORDS_H
#define CLI_WORDS_H

#include "base/bytes.h"
#include "resp/resp.h"

#define WORDS_NUMBERS_MAX 16

struct words {
    struct hf_bytes list[RESP_ARGS_MAX];
    size_t count;
    char digits[WORDS_NUMBERS_MAX][HF_DIGITS_MAX];
    size_t numbers;
};

void words_bytes(struct words *words, struct hf_bytes bytes);
void words_text(struct words *words, const char *text);
void words_number(struct words *words, uint64_t number);
/* An option and its value; nothing if the text is NULL, or the number 0. */
void words_option(struct words *words, const char *name, const char *text);
void words_amount(struct words *words, const char *name, uint64_t number);

#endif
