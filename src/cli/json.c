/* json.c - a text to standard output. */
#include "cli/json.h"

#include <stdio.h>

void json_print(const char *text)
{
    struct hf_buf quoted = {0};

    if (json_string(&quoted, hf_bytes_text(text)) == HF_OK)
        printf("%.*s", HF_SHOW(quoted));
    else
        printf("null");
    hf_buf_destroy(&quoted);
}
