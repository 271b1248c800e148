/* AES-256 in IGE mode and SHA-256 on the processor's own instructions, several messages at once.
 *
 * One message is a chain: every block needs the one before it, so a single chain leaves the AES unit idle most
 * of the time. Messages do not depend on each other; up to LANES of them are carried forward side by side.
 *
 *   encrypt: c[i] = E(p[i] ^ c[i-1]) ^ p[i-1]      decrypt: p[i] = D(c[i] ^ p[i-1]) ^ c[i-1]
 *
 * with c[-1] and p[-1] the first and second half of the initialisation vector. crypt() does this, in place.
 *
 * A packet that came is decrypted, and what comes out is hashed. Neither keeps the processor busy by itself, so
 * open() does both in one pass: while four blocks of each message are decrypted, the four before them are hashed.
 *
 * hash() is SHA-256 of sixteen ranges side by side, one in each lane of the widest registers.
 *
 * All of them release the interpreter's lock; supported() says which of them this processor can do. */
#define Py_LIMITED_API 0x030b0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#define LANES 4
#define BLOCK 16
#define KEY 32
#define DIGEST 32
#define CHUNK 64
#define WIDE 16
#define SHORT 6

typedef struct {
    unsigned char *data;
    size_t blocks;
    unsigned char key[KEY];
    unsigned char iv[2 * BLOCK];
    /* For open() only: what is hashed before the message, and the hash of both. */
    unsigned char secret[DIGEST];
    unsigned char digest[DIGEST];
} job;

/* Key material does not stay behind on the stack. */
static void forget(void *what, size_t size)
{
    volatile unsigned char *trace = what;
    while (size--)
        *trace++ = 0;
}

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#include <cpuid.h>
#include <immintrin.h>

#define WITH_AES __attribute__((target("aes,sse4.1")))
#define WITH_SHA __attribute__((target("aes,sse4.1,sha")))
#define WITH_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl")))
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

static int has_sha(void)
{
    unsigned a, b, c, d;
    const unsigned sha = 1u << 29;
    return has_aes() && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & sha);
}

/* Besides the instructions themselves, the system has to keep the wide registers. */
static int has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl");
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

static const uint32_t CONSTANTS[CHUNK] __attribute__((aligned(BLOCK))) = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};
static const uint32_t FIRST[8] = {
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
};

/* One chunk of 64 bytes into the hash of a lane. */
WITH_SHA static inline __attribute__((always_inline)) void hash_chunk(lane *l, const unsigned char *chunk)
{
    const __m128i big_endian = _mm_setr_epi8(3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12);
    __m128i words[4], abef = l->abef, cdgh = l->cdgh;
#pragma GCC unroll 16
    for (int four = 0; four < CHUNK / 4; four++) {
        __m128i *now = &words[four & 3], before = words[(four + 3) & 3], added;
        if (four < 4) {
            *now = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)chunk + four), big_endian);
        } else {
            added = _mm_alignr_epi8(before, words[(four + 2) & 3], 4);
            added = _mm_add_epi32(_mm_sha256msg1_epu32(*now, words[(four + 1) & 3]), added);
            *now = _mm_sha256msg2_epu32(added, before);
        }
        added = _mm_add_epi32(*now, _mm_load_si128((const __m128i *)CONSTANTS + four));
        cdgh = _mm_sha256rnds2_epu32(cdgh, abef, added);
        abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(added, 0x0e));
    }
    l->abef = _mm_add_epi32(l->abef, abef);
    l->cdgh = _mm_add_epi32(l->cdgh, cdgh);
}

/* Decrypt `chunks` of four blocks in each of `count` lanes, and hash as many, one chunk behind. A lane's chunk
 * is hashed between two blocks of all lanes, so that both kinds of instructions are always at hand. */
#define OPEN(name, count)                                                                               \
    WITH_SHA static void name(lane **lanes, size_t chunks)                                              \
    {                                                                                                   \
        __m128i mixed[count], added[count], given[count], state[count];                                 \
        for (int n = 0; n < count; n++) {                                                               \
            mixed[n] = lanes[n]->mixed;                                                                 \
            added[n] = lanes[n]->added;                                                                 \
        }                                                                                               \
        for (size_t i = 0; i < chunks; i++)                                                             \
            _Pragma("GCC unroll 4") for (int b = 0; b < CHUNK / BLOCK; b++) {                           \
                for (int n = 0; n < count; n++) {                                                       \
                    given[n] = _mm_loadu_si128((const __m128i *)lanes[n]->at + i * 4 + b);              \
                    state[n] = _mm_xor_si128(_mm_xor_si128(given[n], mixed[n]), lanes[n]->keys[0]);     \
                }                                                                                       \
                for (int r = 1; r < ROUNDS - 1; r++)                                                    \
                    for (int n = 0; n < count; n++)                                                     \
                        state[n] = _mm_aesdec_si128(state[n], lanes[n]->keys[r]);                       \
                for (int n = 0; n < count; n++) {                                                       \
                    state[n] = _mm_aesdeclast_si128(state[n], lanes[n]->keys[ROUNDS - 1]);              \
                    mixed[n] = _mm_xor_si128(state[n], added[n]);                                       \
                    added[n] = given[n];                                                                \
                    _mm_storeu_si128((__m128i *)lanes[n]->at + i * 4 + b, mixed[n]);                    \
                }                                                                                       \
                if (b < count)                                                                          \
                    hash_chunk(lanes[b], lanes[b]->unhashed + i * CHUNK);                               \
            }                                                                                           \
        for (int n = 0; n < count; n++) {                                                               \
            lanes[n]->mixed = mixed[n];                                                                 \
            lanes[n]->added = added[n];                                                                 \
            lanes[n]->at += chunks * CHUNK;                                                             \
            lanes[n]->unhashed += chunks * CHUNK;                                                       \
            lanes[n]->left -= chunks * 4;                                                               \
        }                                                                                               \
    }

OPEN(open_1, 1)
OPEN(open_2, 2)
OPEN(open_3, 3)
OPEN(open_4, 4)

static void (*const open_some[LANES])(lane **, size_t) = {open_1, open_2, open_3, open_4};

/* The first chunk begins with the secret: it and the next are decrypted ahead of the pass. A message that is
 * shorter than that is left to end_open(). */
WITH_SHA static void begin_open(lane *l, const job *j)
{
    unsigned char chunk[CHUNK];
    begin(l, j, 0);
    l->abef = _mm_setr_epi32((int)FIRST[5], (int)FIRST[4], (int)FIRST[1], (int)FIRST[0]);
    l->cdgh = _mm_setr_epi32((int)FIRST[7], (int)FIRST[6], (int)FIRST[3], (int)FIRST[2]);
    l->unhashed = NULL;
    if (j->blocks < SHORT)
        return;
    decrypt_1(&l, (CHUNK - DIGEST) / BLOCK);
    memcpy(chunk, j->secret, DIGEST);
    memcpy(chunk + DIGEST, j->data, CHUNK - DIGEST);
    hash_chunk(l, chunk);
    forget(chunk, sizeof chunk);
    l->unhashed = l->at;
    decrypt_1(&l, CHUNK / BLOCK);
}

/* Decrypt and hash what is left of a lane, with the padding that ends a hash. */
WITH_SHA static void end_open(lane *l, job *j)
{
    unsigned char last[3 * CHUNK] = {0};
    const uint64_t bits = ((uint64_t)j->blocks * BLOCK + DIGEST) * 8;
    size_t rest = 0;
    decrypt_1(&l, l->left);
    if (!l->unhashed) {
        memcpy(last, j->secret, DIGEST);
        rest = DIGEST;
        l->unhashed = j->data;
    } else {
        for (; l->at - l->unhashed >= CHUNK; l->unhashed += CHUNK)
            hash_chunk(l, l->unhashed);
    }
    memcpy(last + rest, l->unhashed, (size_t)(l->at - l->unhashed));
    rest += (size_t)(l->at - l->unhashed);
    last[rest] = 0x80;
    const size_t end = (rest + 9 + CHUNK - 1) / CHUNK * CHUNK;
    for (int n = 0; n < 8; n++)
        last[end - 1 - n] = (unsigned char)(bits >> (8 * n));
    for (size_t at = 0; at < end; at += CHUNK)
        hash_chunk(l, last + at);
    forget(last, sizeof last);
    const uint32_t words[8] = {
        (uint32_t)_mm_extract_epi32(l->abef, 3), (uint32_t)_mm_extract_epi32(l->abef, 2),
        (uint32_t)_mm_extract_epi32(l->cdgh, 3), (uint32_t)_mm_extract_epi32(l->cdgh, 2),
        (uint32_t)_mm_extract_epi32(l->abef, 1), (uint32_t)_mm_extract_epi32(l->abef, 0),
        (uint32_t)_mm_extract_epi32(l->cdgh, 1), (uint32_t)_mm_extract_epi32(l->cdgh, 0),
    };
    for (int n = 0; n < DIGEST; n++)
        j->digest[n] = (unsigned char)(words[n / 4] >> (24 - 8 * (n % 4)));
}

WITH_SHA static void run_open(job *jobs, int count)
{
    lane lanes[LANES];
    lane *active[LANES];
    for (int n = 0; n < count; n++)
        begin_open(&lanes[n], &jobs[n]);
    for (;;) {
        int n = 0;
        size_t shortest = SIZE_MAX;
        for (int each = 0; each < count; each++) {
            size_t chunks = lanes[each].left / (CHUNK / BLOCK);
            if (lanes[each].unhashed && chunks) {
                active[n++] = &lanes[each];
                if (chunks < shortest)
                    shortest = chunks;
            }
        }
        if (!n)
            break;
        open_some[n - 1](active, shortest);
    }
    for (int n = 0; n < count; n++)
        end_open(&lanes[n], &jobs[n]);
    forget(lanes, sizeof lanes);
}

/* Rows of eight words to columns. */
WITH_AVX512 static inline void turn(__m256i *r)
{
    __m256i pairs[8], fours[8];
    for (int n = 0; n < 8; n += 2) {
        pairs[n] = _mm256_unpacklo_epi32(r[n], r[n + 1]);
        pairs[n + 1] = _mm256_unpackhi_epi32(r[n], r[n + 1]);
    }
    for (int n = 0; n < 8; n += 4)
        for (int m = 0; m < 2; m++) {
            fours[n + 2 * m] = _mm256_unpacklo_epi64(pairs[n + m], pairs[n + m + 2]);
            fours[n + 2 * m + 1] = _mm256_unpackhi_epi64(pairs[n + m], pairs[n + m + 2]);
        }
    for (int n = 0; n < 4; n++) {
        r[n] = _mm256_permute2x128_si256(fours[n], fours[n + 4], 0x20);
        r[n + 4] = _mm256_permute2x128_si256(fours[n], fours[n + 4], 0x31);
    }
}

#define XOR3(a, b, c) _mm512_ternarylogic_epi32(a, b, c, 0x96)
#define RIGHT(x, n) _mm512_ror_epi32(x, n)

/* One chunk of each of sixteen ranges into their hashes; word `n` of all of them is in h[n]. */
WITH_AVX512 static inline void hash_wide(__m512i *h, const unsigned char *const *from, size_t offset)
{
    const __m256i big_endian = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12));
    __m512i w[16], a = h[0], b = h[1], c = h[2], d = h[3], e = h[4], f = h[5], g = h[6], last = h[7];
    for (int half = 0; half < 2; half++) {
        __m256i low[8], high[8];
        for (int n = 0; n < 8; n++) {
            size_t at = offset + (size_t)half * CHUNK / 2;
            low[n] = _mm256_shuffle_epi8(_mm256_loadu_si256((const __m256i *)(from[n] + at)), big_endian);
            high[n] = _mm256_shuffle_epi8(_mm256_loadu_si256((const __m256i *)(from[n + 8] + at)), big_endian);
        }
        turn(low);
        turn(high);
        for (int n = 0; n < 8; n++)
            w[half * 8 + n] = _mm512_inserti64x4(_mm512_castsi256_si512(low[n]), high[n], 1);
    }
#pragma GCC unroll 64
    for (int t = 0; t < CHUNK; t++) {
        if (t >= 16) {
            __m512i far = w[(t + 1) & 15], near = w[(t + 14) & 15];
            far = XOR3(RIGHT(far, 7), RIGHT(far, 18), _mm512_srli_epi32(far, 3));
            near = XOR3(RIGHT(near, 17), RIGHT(near, 19), _mm512_srli_epi32(near, 10));
            w[t & 15] = _mm512_add_epi32(_mm512_add_epi32(w[t & 15], far),
                                         _mm512_add_epi32(w[(t + 9) & 15], near));
        }
        __m512i chosen = _mm512_ternarylogic_epi32(e, f, g, 0xca);
        __m512i common = _mm512_ternarylogic_epi32(a, b, c, 0xe8);
        __m512i known = _mm512_add_epi32(w[t & 15], _mm512_set1_epi32((int)CONSTANTS[t]));
        __m512i one = _mm512_add_epi32(_mm512_add_epi32(last, XOR3(RIGHT(e, 6), RIGHT(e, 11), RIGHT(e, 25))),
                                       _mm512_add_epi32(chosen, known));
        __m512i two = _mm512_add_epi32(XOR3(RIGHT(a, 2), RIGHT(a, 13), RIGHT(a, 22)), common);
        last = g;
        g = f;
        f = e;
        e = _mm512_add_epi32(d, one);
        d = c;
        c = b;
        b = a;
        a = _mm512_add_epi32(one, two);
    }
    const __m512i sums[8] = {a, b, c, d, e, f, g, last};
    for (int n = 0; n < 8; n++)
        h[n] = _mm512_add_epi32(h[n], sums[n]);
}

/* SHA-256 of sixteen ranges of `length` bytes each, whole chunks. */
WITH_AVX512 static void run_hash(const unsigned char *const *from, size_t length, unsigned char (*digests)[DIGEST])
{
    unsigned char last[CHUNK] = {0x80};
    const unsigned char *ends[WIDE];
    __m512i h[8];
    uint32_t words[WIDE];
    for (int n = 0; n < 8; n++)
        h[n] = _mm512_set1_epi32((int)FIRST[n]);
    for (size_t at = 0; at < length; at += CHUNK)
        hash_wide(h, from, at);
    for (int n = 0; n < 8; n++)
        last[CHUNK - 1 - n] = (unsigned char)((uint64_t)length * 8 >> (8 * n));
    for (int n = 0; n < WIDE; n++)
        ends[n] = last;
    hash_wide(h, ends, 0);
    for (int word = 0; word < 8; word++) {
        _mm512_storeu_si512(words, h[word]);
        for (int n = 0; n < WIDE; n++)
            for (int byte = 0; byte < 4; byte++)
                digests[n][word * 4 + byte] = (unsigned char)(words[n] >> (24 - 8 * byte));
    }
}
#else
static int has_aes(void) { return 0; }
static int has_sha(void) { return 0; }
static int has_avx512(void) { return 0; }
static void run(const job *jobs, int count, int encrypt) { (void)jobs, (void)count, (void)encrypt; }
static void run_open(job *jobs, int count) { (void)jobs, (void)count; }
static void run_hash(const unsigned char *const *from, size_t length, unsigned char (*digests)[DIGEST])
{
    (void)from, (void)length, (void)digests;
}
#endif

static int copy_secret(PyObject *from, unsigned char *to, Py_ssize_t size, const char *what)
{
    char *bytes;
    Py_ssize_t length;
    if (PyBytes_AsStringAndSize(from, &bytes, &length) < 0)
        return -1;
    if (length != size) {
        PyErr_Format(PyExc_ValueError, "%s must have %zd bytes, not %zd", what, size, length);
        return -1;
    }
    for (Py_ssize_t i = 0; i < size; i++)
        to[i] = (unsigned char)bytes[i];
    return 0;
}

/* A job is a tuple of buffer, key and iv, and for open() of what is hashed first. */
static int take(PyObject *item, job *j, Py_buffer *view, int open)
{
    PyObject *buffer, *key, *iv, *secret = NULL;
    if (!PyTuple_Check(item)) {
        PyErr_SetString(PyExc_TypeError, "a job is a tuple");
        return -1;
    }
    if (!PyArg_ParseTuple(item, open ? "OOOO" : "OOO", &buffer, &key, &iv, &secret))
        return -1;
    if (copy_secret(key, j->key, KEY, "the key") < 0 || copy_secret(iv, j->iv, 2 * BLOCK, "the iv") < 0 ||
        (open && copy_secret(secret, j->secret, DIGEST, "the secret") < 0))
        return -1;
    if (PyObject_GetBuffer(buffer, view, PyBUF_WRITABLE) < 0)
        return -1;
    if (view->len % BLOCK) {
        PyErr_SetString(PyExc_ValueError, "the data must be whole blocks of 16 bytes");
        PyBuffer_Release(view);
        return -1;
    }
    j->data = view->buf;
    j->blocks = (size_t)view->len / BLOCK;
    return 0;
}

/* Take up to LANES jobs from the list; how many, or -1. */
static int take_some(PyObject *list, Py_ssize_t first, job *jobs, Py_buffer *views, int open)
{
    int count = 0;
    while (count < LANES && first + count < PyList_Size(list)) {
        if (take(PyList_GetItem(list, first + count), &jobs[count], &views[count], open) < 0) {
            while (count--)
                PyBuffer_Release(&views[count]);
            forget(jobs, LANES * sizeof *jobs);
            return -1;
        }
        count++;
    }
    return count;
}

static PyObject *refuse(const char *what)
{
    PyErr_Format(PyExc_RuntimeError, "this processor has no %s instructions", what);
    return NULL;
}

static PyObject *crypt_jobs(PyObject *self, PyObject *args)
{
    int encrypt;
    PyObject *list;
    (void)self;
    if (!PyArg_ParseTuple(args, "pO!", &encrypt, &PyList_Type, &list))
        return NULL;
    if (!has_aes())
        return refuse("AES");
    for (Py_ssize_t first = 0; first < PyList_Size(list); first += LANES) {
        job jobs[LANES];
        Py_buffer views[LANES];
        int count = take_some(list, first, jobs, views, 0);
        if (count < 0)
            return NULL;
        Py_BEGIN_ALLOW_THREADS
        run(jobs, count, encrypt);
        Py_END_ALLOW_THREADS
        while (count--)
            PyBuffer_Release(&views[count]);
        forget(jobs, sizeof jobs);
    }
    Py_RETURN_NONE;
}

static PyObject *open_jobs(PyObject *self, PyObject *args)
{
    PyObject *list, *digests;
    (void)self;
    if (!PyArg_ParseTuple(args, "O!", &PyList_Type, &list))
        return NULL;
    if (!has_sha())
        return refuse("SHA");
    if (!(digests = PyList_New(0)))
        return NULL;
    for (Py_ssize_t first = 0; first < PyList_Size(list); first += LANES) {
        job jobs[LANES];
        Py_buffer views[LANES];
        int failed = 0, count = take_some(list, first, jobs, views, 1);
        if (count < 0) {
            Py_DECREF(digests);
            return NULL;
        }
        Py_BEGIN_ALLOW_THREADS
        run_open(jobs, count);
        Py_END_ALLOW_THREADS
        for (int n = 0; n < count; n++) {
            PyObject *digest = PyBytes_FromStringAndSize((const char *)jobs[n].digest, DIGEST);
            failed = failed || !digest || PyList_Append(digests, digest) < 0;
            Py_XDECREF(digest);
            PyBuffer_Release(&views[n]);
        }
        forget(jobs, sizeof jobs);
        if (failed) {
            Py_DECREF(digests);
            return NULL;
        }
    }
    return digests;
}

static PyObject *hash_ranges(PyObject *self, PyObject *args)
{
    PyObject *list, *digests;
    Py_buffer views[WIDE];
    const unsigned char *from[WIDE];
    unsigned char found[WIDE][DIGEST];
    int count = 0, good = 1;
    (void)self;
    if (!PyArg_ParseTuple(args, "O!", &PyList_Type, &list))
        return NULL;
    if (!has_avx512())
        return refuse("AVX-512");
    if (PyList_Size(list) != WIDE) {
        PyErr_Format(PyExc_ValueError, "there must be %d ranges", WIDE);
        return NULL;
    }
    for (; count < WIDE; count++) {
        if (PyObject_GetBuffer(PyList_GetItem(list, count), &views[count], PyBUF_SIMPLE) < 0) {
            good = 0;
            break;
        }
        from[count] = views[count].buf;
        if (views[count].len % CHUNK || views[count].len != views[0].len) {
            PyErr_SetString(PyExc_ValueError, "the ranges must be whole chunks of 64 bytes, of one length");
            count++;
            good = 0;
            break;
        }
    }
    if (good) {
        Py_BEGIN_ALLOW_THREADS
        run_hash(from, (size_t)views[0].len, found);
        Py_END_ALLOW_THREADS
    }
    while (count--)
        PyBuffer_Release(&views[count]);
    if (!good || !(digests = PyList_New(0)))
        return NULL;
    for (int n = 0; good && n < WIDE; n++) {
        PyObject *digest = PyBytes_FromStringAndSize((const char *)found[n], DIGEST);
        good = digest && PyList_Append(digests, digest) == 0;
        Py_XDECREF(digest);
    }
    if (good)
        return digests;
    Py_DECREF(digests);
    return NULL;
}

static PyObject *supported(PyObject *self, PyObject *args)
{
    const char *what;
    (void)self;
    if (!PyArg_ParseTuple(args, "s", &what))
        return NULL;
    if (!strcmp(what, "crypt"))
        return PyBool_FromLong(has_aes());
    if (!strcmp(what, "open"))
        return PyBool_FromLong(has_sha());
    if (!strcmp(what, "hash"))
        return PyBool_FromLong(has_avx512());
    return PyErr_Format(PyExc_ValueError, "there is no function %s", what);
}

static PyMethodDef methods[] = {
    {"crypt", crypt_jobs, METH_VARARGS, "crypt(encrypt, [(buffer, key, iv), ...]): in place, lock released."},
    {"open", open_jobs, METH_VARARGS,
     "open([(buffer, key, iv, secret), ...]): decrypt in place; SHA-256 of each secret with its message."},
    {"hash", hash_ranges, METH_VARARGS, "hash([range, ...]): SHA-256 of sixteen ranges of one length."},
    {"supported", supported, METH_VARARGS, "supported(name): whether this processor can do that function."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_ige", "AES-256-IGE and SHA-256 on the processor's instructions.", 0, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__ige(void) { return PyModuleDef_Init(&module); }
