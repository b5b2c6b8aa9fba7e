/* little.h - numbers as little-endian bytes, on any machine. */
#ifndef BASE_LITTLE_H
#define BASE_LITTLE_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

static inline void hf_put_u16(char *out, uint16_t number)
{
    out[0] = (char)(number & 0xff);
    out[1] = (char)(number >> 8);
}

static inline uint16_t hf_get_u16(const char *in)
{
    return (uint16_t)((unsigned char)in[0] | (unsigned)(unsigned char)in[1]
                                                 << 8);
}

static inline void hf_put_u32(char *out, uint32_t number)
{
    number = htole32(number);
    memcpy(out, &number, sizeof number);
}

static inline uint32_t hf_get_u32(const char *in)
{
    uint32_t number;

    memcpy(&number, in, sizeof number);
    return le32toh(number);
}

static inline void hf_put_u64(char *out, uint64_t number)
{
    number = htole64(number);
    memcpy(out, &number, sizeof number);
}

static inline uint64_t hf_get_u64(const char *in)
{
    uint64_t number;

    memcpy(&number, in, sizeof number);
    return le64toh(number);
}

#endif
