/* status.c - tests of the status codes' texts. */
#include "holdfast/status.h"

#include <ctype.h>

#include "support/test.h"

TEST(success_is_zero)
{
    CHECK_EQ(HF_OK, 0);
    CHECK_TEXT(hf_status_text(HF_OK), 2, "ok");
}

TEST(every_code_has_a_text_of_its_own)
{
    for (int i = 0; i < HF_STATUS_COUNT; i++) {
        const char *text = hf_status_text((enum hf_status)i);
        CHECK(text != NULL);
        CHECK(strcmp(text, "unknown status") != 0);
        for (int j = 0; j < i; j++)
            CHECK(strcmp(text, hf_status_text((enum hf_status)j)) != 0);
    }
}

TEST(texts_are_short_lower_case_and_without_a_full_stop)
{
    for (int i = 0; i < HF_STATUS_COUNT; i++) {
        const char *text = hf_status_text((enum hf_status)i);
        size_t len = strlen(text);
        CHECK(len > 0 && len < 40);
        CHECK(text[len - 1] != '.');
        for (size_t j = 0; j < len; j++)
            CHECK(!isupper((unsigned char)text[j]));
    }
}

TEST(numbers_that_are_no_code_have_a_text_too)
{
    CHECK_TEXT(hf_status_text(HF_STATUS_COUNT), 14, "unknown status");
    CHECK_TEXT(hf_status_text((enum hf_status)1000), 14, "unknown status");
    CHECK_TEXT(hf_status_text((enum hf_status)UINT32_MAX), 14,
               "unknown status");
}
