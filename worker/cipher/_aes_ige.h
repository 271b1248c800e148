/* AES-256 in IGE mode, up to LANES messages side by side. */
#include <cpuid.h>
#include <immintrin.h>

#define WITH_AES __attribute__((target("aes,sse4.1")))
#define ROUNDS 15

typedef struct {
    __m128i keys[ROUNDS];
    /* For encryption: c[i-1], p[i-1]. For decryption: p[i-1], c[i-1]. */
    __m128i mixed, added;
    unsigned char *at;
    size_t left;
    /* For open() only: the hash's words in the order its instructions want, and what comes next. */
    __m128i abef, cdgh;
    const unsigned char *unhashed;
} lane;

static int has_aes(void)
{
    unsigned a, b, c, d;
    const unsigned aes = 1u << 25, sse41 = 1u << 19;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & aes) && (c & sse41);
}

WITH_AES static __m128i spread(__m128i key)
{
    key = _mm_xor_si128(key, _mm_slli_si128(key, 4));
    return _mm_xor_si128(key, _mm_slli_si128(key, 8));
}

/* The key schedule of AES-256; the round constant must be known when this is compiled. */
#define EXPAND(n, constant)                                                                             \
    k[n] = _mm_xor_si128(spread(k[(n)-2]),                                                              \
                         _mm_shuffle_epi32(_mm_aeskeygenassist_si128(k[(n)-1], constant), 0xff));       \
    if ((n) + 1 < ROUNDS)                                                                               \
        k[(n) + 1 < ROUNDS ? (n) + 1 : (n)] = _mm_xor_si128(                                            \
            spread(k[(n)-1]), _mm_shuffle_epi32(_mm_aeskeygenassist_si128(k[n], 0), 0xaa))

WITH_AES static void expand(__m128i *k, const unsigned char *key)
{
    k[0] = _mm_loadu_si128((const __m128i *)key);
    k[1] = _mm_loadu_si128((const __m128i *)(key + BLOCK));
    EXPAND(2, 0x01);
    EXPAND(4, 0x02);
    EXPAND(6, 0x04);
    EXPAND(8, 0x08);
    EXPAND(10, 0x10);
    EXPAND(12, 0x20);
    EXPAND(14, 0x40);
}

/* The equivalent inverse cipher wants the keys backwards, the inner ones through InvMixColumns. */
WITH_AES static void invert(__m128i *k)
{
    for (int i = 0, j = ROUNDS - 1; i < j; i++, j--) {
        __m128i swapped = k[i];
        k[i] = k[j];
        k[j] = swapped;
    }
    for (int i = 1; i < ROUNDS - 1; i++)
        k[i] = _mm_aesimc_si128(k[i]);
}

/* Carry `count` lanes forward by `blocks`. The loops over lanes unroll, since `count` is a constant. */
#define CARRY(name, round, last, count)                                                                 \
    WITH_AES static void name(lane **lanes, size_t blocks)                                              \
    {                                                                                                   \
        __m128i mixed[count], added[count], given[count], state[count];                                 \
        for (int n = 0; n < count; n++) {                                                               \
            mixed[n] = lanes[n]->mixed;                                                                 \
            added[n] = lanes[n]->added;                                                                 \
        }                                                                                               \
        for (size_t i = 0; i < blocks; i++) {                                                           \
            for (int n = 0; n < count; n++) {                                                           \
                given[n] = _mm_loadu_si128((const __m128i *)lanes[n]->at + i);                          \
                state[n] = _mm_xor_si128(_mm_xor_si128(given[n], mixed[n]), lanes[n]->keys[0]);         \
            }                                                                                           \
            for (int r = 1; r < ROUNDS - 1; r++)                                                        \
                for (int n = 0; n < count; n++)                                                         \
                    state[n] = round(state[n], lanes[n]->keys[r]);                                      \
            for (int n = 0; n < count; n++) {                                                           \
                mixed[n] = _mm_xor_si128(last(state[n], lanes[n]->keys[ROUNDS - 1]), added[n]);         \
                added[n] = given[n];                                                                    \
                _mm_storeu_si128((__m128i *)lanes[n]->at + i, mixed[n]);                                \
            }                                                                                           \
        }                                                                                               \
        for (int n = 0; n < count; n++) {                                                               \
            lanes[n]->mixed = mixed[n];                                                                 \
            lanes[n]->added = added[n];                                                                 \
            lanes[n]->at += blocks * BLOCK;                                                             \
            lanes[n]->left -= blocks;                                                                   \
        }                                                                                               \
    }

CARRY(encrypt_1, _mm_aesenc_si128, _mm_aesenclast_si128, 1)
CARRY(encrypt_2, _mm_aesenc_si128, _mm_aesenclast_si128, 2)
CARRY(encrypt_3, _mm_aesenc_si128, _mm_aesenclast_si128, 3)
CARRY(encrypt_4, _mm_aesenc_si128, _mm_aesenclast_si128, 4)
CARRY(decrypt_1, _mm_aesdec_si128, _mm_aesdeclast_si128, 1)
CARRY(decrypt_2, _mm_aesdec_si128, _mm_aesdeclast_si128, 2)
CARRY(decrypt_3, _mm_aesdec_si128, _mm_aesdeclast_si128, 3)
CARRY(decrypt_4, _mm_aesdec_si128, _mm_aesdeclast_si128, 4)

static void (*const carry[2][LANES])(lane **, size_t) = {
    {decrypt_1, decrypt_2, decrypt_3, decrypt_4},
    {encrypt_1, encrypt_2, encrypt_3, encrypt_4},
};

WITH_AES static void begin(lane *l, const job *j, int encrypt)
{
    __m128i sealed = _mm_loadu_si128((const __m128i *)j->iv);
    __m128i plain = _mm_loadu_si128((const __m128i *)(j->iv + BLOCK));
    expand(l->keys, j->key);
    if (!encrypt)
        invert(l->keys);
    l->mixed = encrypt ? sealed : plain;
    l->added = encrypt ? plain : sealed;
    l->at = j->data;
    l->left = j->blocks;
}

WITH_AES static void run(const job *jobs, int count, int encrypt)
{
    lane lanes[LANES];
    lane *active[LANES];
    for (int n = 0; n < count; n++)
        begin(&lanes[n], &jobs[n], encrypt);
    for (;;) {
        int n = 0;
        size_t shortest = SIZE_MAX;
        for (int each = 0; each < count; each++)
            if (lanes[each].left) {
                active[n++] = &lanes[each];
                if (lanes[each].left < shortest)
                    shortest = lanes[each].left;
            }
        if (!n)
            break;
        carry[encrypt][n - 1](active, shortest);
    }
    forget(lanes, sizeof lanes);
}
