/* SHA-256 of sixteen ranges side by side, one in each lane of the widest registers. */
#define WITH_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl")))

/* Besides the instructions themselves, the system has to keep the wide registers. */
static int has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl");
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
