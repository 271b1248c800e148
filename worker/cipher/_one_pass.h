/* Decrypting messages and hashing what comes out, in one pass. */
#define WITH_SHA __attribute__((target("aes,sse4.1,sha")))

static int has_sha(void)
{
    unsigned a, b, c, d;
    const unsigned sha = 1u << 29;
    return has_aes() && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & sha);
}

/* Four of the rounds that take a chunk of 64 bytes into a hash; `words` are the last sixteen of its schedule. */
WITH_SHA static inline __attribute__((always_inline)) void hash_rounds(
    __m128i *abef, __m128i *cdgh, __m128i *words, const unsigned char *chunk, int four)
{
    const __m128i big_endian = _mm_setr_epi8(3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12);
    __m128i *now = &words[four & 3], before = words[(four + 3) & 3], added;
    if (four < 4) {
        *now = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)chunk + four), big_endian);
    } else {
        added = _mm_alignr_epi8(before, words[(four + 2) & 3], 4);
        added = _mm_add_epi32(_mm_sha256msg1_epu32(*now, words[(four + 1) & 3]), added);
        *now = _mm_sha256msg2_epu32(added, before);
    }
    added = _mm_add_epi32(*now, _mm_load_si128((const __m128i *)CONSTANTS + four));
    *cdgh = _mm_sha256rnds2_epu32(*cdgh, *abef, added);
    *abef = _mm_sha256rnds2_epu32(*abef, *cdgh, _mm_shuffle_epi32(added, 0x0e));
}

/* One chunk into the hash of a lane. */
WITH_SHA static void hash_chunk(lane *l, const unsigned char *chunk)
{
    __m128i words[4], abef = l->abef, cdgh = l->cdgh;
#pragma GCC unroll 16
    for (int four = 0; four < CHUNK / 4; four++)
        hash_rounds(&abef, &cdgh, words, chunk, four);
    l->abef = _mm_add_epi32(l->abef, abef);
    l->cdgh = _mm_add_epi32(l->cdgh, cdgh);
}

/* Decrypt `chunks` of four blocks in each of `count` lanes, and hash as many, one chunk behind. While a block of
 * all lanes is decrypted, a chunk of one of them is hashed: four rounds of the one after a round of the other, so
 * that both kinds of instructions are always at hand. */
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
                lane *hashed = lanes[b < count ? b : 0];                                                \
                const unsigned char *chunk = hashed->unhashed + i * CHUNK;                              \
                __m128i words[4], abef = hashed->abef, cdgh = hashed->cdgh;                             \
                for (int n = 0; n < count; n++) {                                                       \
                    given[n] = _mm_loadu_si128((const __m128i *)lanes[n]->at + i * 4 + b);              \
                    state[n] = _mm_xor_si128(_mm_xor_si128(given[n], mixed[n]), lanes[n]->keys[0]);     \
                }                                                                                       \
                _Pragma("GCC unroll 16") for (int r = 1; r <= CHUNK / 4; r++) {                         \
                    if (b < count)                                                                      \
                        hash_rounds(&abef, &cdgh, words, chunk, r - 1);                                 \
                    for (int n = 0; r < ROUNDS - 1 && n < count; n++)                                   \
                        state[n] = _mm_aesdec_si128(state[n], lanes[n]->keys[r]);                       \
                    for (int n = 0; r == ROUNDS - 1 && n < count; n++) {                                \
                        state[n] = _mm_aesdeclast_si128(state[n], lanes[n]->keys[r]);                   \
                        mixed[n] = _mm_xor_si128(state[n], added[n]);                                   \
                        added[n] = given[n];                                                            \
                        _mm_storeu_si128((__m128i *)lanes[n]->at + i * 4 + b, mixed[n]);                \
                    }                                                                                   \
                }                                                                                       \
                if (b < count) {                                                                        \
                    hashed->abef = _mm_add_epi32(hashed->abef, abef);                                   \
                    hashed->cdgh = _mm_add_epi32(hashed->cdgh, cdgh);                                   \
                }                                                                                       \
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
