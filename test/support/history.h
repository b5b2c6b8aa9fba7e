/* history.h - writes a history that was kept in memory to a file. */
#ifndef TEST_SUPPORT_HISTORY_H
#define TEST_SUPPORT_HISTORY_H

#include "history/history.h"

/* For history_load() and `holdfast verify --history`. HF_NOMEM, HF_IO; `error`
 * (of HISTORY_ERROR_MAX bytes) gets a sentence. */
enum hf_status test_save_history(const struct history *history,
                                 const char *path, char *error);

#endif
