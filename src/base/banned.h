/* banned.h - libc functions that this project does not use.
 *
 * Included by force before every source file. Each name below has a way to
 * overrun a buffer, to hide an error, or to share state between threads; the
 * replacement is named beside it. The headers that declare them come first, so
 * that the poison meets only our own uses.
 */
#ifndef BASE_BANNED_H
#define BASE_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef __GNUC__
#pragma GCC poison strcpy strcat strncpy strncat  /* hf_buf, memcpy */
#pragma GCC poison sprintf vsprintf gets          /* snprintf, hf_buf_format */
#pragma GCC poison strtok                         /* strtok_r */
#pragma GCC poison atoi atol atoll atof           /* hf_parse_u64 */
#pragma GCC poison rand srand                     /* hf_random */
#pragma GCC poison gmtime localtime ctime asctime /* the _r twins */
#endif

#endif
