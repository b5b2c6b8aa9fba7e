/* little.h - numbers as little-endian bytes, on any machine. */
#ifndef BASE_LITTLE_H
#define BASE_LITTLE_H

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

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
static inline void hf_put_u32(char *out, uint32_t number)
{
    memcpy(out, &number, sizeof number);
}

static inline uint32_t hf_get_u32(const char *in)
{
    uint32_t number;
    memcpy(&number, in, sizeof number);
    return number;
}

static inline void hf_put_u64(char *out, uint64_t number)
{
    memcpy(out, &number, sizeof number);
}

static inline uint64_t hf_get_u64(const char *in)
{
    uint64_t number;
    memcpy(&number, in, sizeof number);
    return number;
}
#else
static inline void hf_put_u32(char *out, uint32_t number)
{
    hf_put_u16(out, (uint16_t)(number & 0xffff));
    hf_put_u16(out + 2, (uint16_t)(number >> 16));
}

static inline uint32_t hf_get_u32(const char *in)
{
    return hf_get_u16(in) | (uint32_t)hf_get_u16(in + 2) << 16;
}

static inline void hf_put_u64(char *out, uint64_t number)
{
    hf_put_u32(out, (uint32_t)(number & 0xffffffffu));
    hf_put_u32(out + 4, (uint32_t)(number >> 32));
}

static inline uint64_t hf_get_u64(const char *in)
{
    return hf_get_u32(in) | (uint64_t)hf_get_u32(in + 4) << 32;
}
#endif

#endif
