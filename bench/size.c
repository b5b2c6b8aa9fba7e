/* size.c - how much memory a held lock and a product take.
 *
 *   size locks|products COUNT
 *
 * Fills an engine through its commands with names (and owners) of 16 bytes and
 * prints the bytes per thing twice: by the growth of the process, which is
 * what the machine pays, and by the engine's own count.
 */
#include <unistd.h>

#include "drive.h"

static uint64_t resident_bytes(void)
{
    unsigned long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%*u %llu", &pages) != 1)
        drive_fail("/proc/self/statm", "cannot be read");
    fclose(file);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

int main(int argc, char **argv)
{
    static struct hold_command command;
    char name[DRIVE_NAME_BYTES], owner[DRIVE_NAME_BYTES];
    if (argc != 3 || (strcmp(argv[1], "locks") && strcmp(argv[1], "products")))
        drive_fail("usage", "size locks|products COUNT");
    bool locks = !strcmp(argv[1], "locks");
    uint64_t count = drive_number(argv[2]);
    struct hold_engine *engine = drive_new(&command);
    struct hold_counts before, after;
    hold_count(engine, &before);
    uint64_t resident = resident_bytes();
    for (uint64_t i = 0; i < count; i++) {
        if (locks)
            drive_lock(&command, drive_name(name, 'l', i),
                       drive_name(owner, 'o', i));
        else
            drive_stock(&command, drive_name(name, 'p', i));
        drive_write(engine, &command);
    }
    hold_count(engine, &after);
    if ((locks ? after.locks : after.products) != count)
        drive_fail("size", "the engine counts other than was put in");
    resident = resident_bytes() - resident;
    printf("%s %llu resident %.1f counted %.1f\n", argv[1],
           (unsigned long long)count, (double)resident / (double)count,
           (double)(after.memory_bytes - before.memory_bytes) / (double)count);
    hold_free(engine);
    return 0;
}
