/* json.c - escaping. */
#include "cli/json.h"

/* Length of the UTF-8 sequence at the start of `text`, 0 if it is not one:
 * over-long forms, surrogates and values above U+10FFFF are not. */
static size_t utf8_len(struct hf_bytes text)
{
    const unsigned char *c = (const unsigned char *)text.data;
    size_t len = c[0] < 0x80 ? 1 : c[0] < 0xe0 ? 2 : c[0] < 0xf0 ? 3 : 4;

    if (len == 1)
        return 1;
    if (c[0] < 0xc2 || c[0] > 0xf4 || len > text.len)
        return 0;
    for (size_t i = 1; i < len; i++) {
        if ((c[i] & 0xc0) != 0x80)
            return 0;
    }
    if ((c[0] == 0xe0 && c[1] < 0xa0) || (c[0] == 0xed && c[1] > 0x9f) ||
        (c[0] == 0xf0 && c[1] < 0x90) || (c[0] == 0xf4 && c[1] > 0x8f))
        return 0;
    return len;
}

static enum hf_status put_char(struct hf_buf *out, struct hf_bytes text,
                               size_t *at)
{
    struct hf_bytes left = hf_bytes(text.data + *at, text.len - *at);
    unsigned char c = (unsigned char)left.data[0];
    size_t len = utf8_len(left);

    *at += len > 0 ? len : 1;
    if (len == 0)
        return hf_buf_append(out, "\\ufffd", 6);
    if (c == '"')
        return hf_buf_append(out, "\\\"", 2);
    if (c == '\\')
        return hf_buf_append(out, "\\\\", 2);
    if (c == '\n')
        return hf_buf_append(out, "\\n", 2);
    if (c < 0x20 || c == 0x7f)
        return hf_buf_format(out, "\\u%04x", c);
    return hf_buf_append(out, left.data, len);
}

enum hf_status json_string(struct hf_buf *out, struct hf_bytes text)
{
    enum hf_status status = hf_buf_append(out, "\"", 1);

    for (size_t at = 0; status == HF_OK && at < text.len;)
        status = put_char(out, text, &at);
    return status != HF_OK ? status : hf_buf_append(out, "\"", 1);
}

void json_print(const char *text)
{
    struct hf_buf quoted = {0};

    if (json_string(&quoted, hf_bytes_text(text)) == HF_OK)
        printf("%.*s", HF_SHOW(quoted));
    else
        printf("null");
    hf_buf_destroy(&quoted);
}
