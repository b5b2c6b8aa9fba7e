/* owner.c - host, pid and 64 random bits. */
#include "cli/owner.h"

#include <sys/random.h>
#include <unistd.h>

/* Of the host's name, so that the rest always fits. */
#define HOST_MAX 200

void owner_print(char out[OWNER_BYTES], const char *host, long pid,
                 uint64_t random)
{
    snprintf(out, OWNER_BYTES, "%.*s:%ld:%016llx", HOST_MAX, host, pid,
             (unsigned long long)random);
}

enum hf_status owner_make(char out[OWNER_BYTES])
{
    char host[256] = "";
    uint64_t random;

    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
        return HF_IO;
    gethostname(host, sizeof host - 1);
    owner_print(out, host, (long)getpid(), random);
    return HF_OK;
}
