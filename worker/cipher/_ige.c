/* AES-256 in IGE mode on the processor's AES instructions, several messages at once.
 *
 * One message is a chain: every block needs the one before it, so a single chain leaves the AES unit idle most
 * of the time. Messages do not depend on each other; up to LANES of them are carried forward side by side.
 *
 *   encrypt: c[i] = E(p[i] ^ c[i-1]) ^ p[i-1]      decrypt: p[i] = D(c[i] ^ p[i-1]) ^ c[i-1]
 *
 * with c[-1] and p[-1] the first and second half of the initialisation vector. There is one function, crypt(),
 * which works in place and releases the interpreter's lock; supported() says whether this processor can. */
#define Py_LIMITED_API 0x030b0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

#define LANES 4
#define BLOCK 16
#define KEY 32

typedef struct {
    unsigned char *data;
    size_t blocks;
    unsigned char key[KEY];
    unsigned char iv[2 * BLOCK];
} job;

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
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
} lane;

static int is_supported(void)
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
    /* The schedules are key material: they do not stay behind on the stack. */
    volatile unsigned char *trace = (volatile unsigned char *)lanes;
    for (size_t i = 0; i < sizeof lanes; i++)
        trace[i] = 0;
}
#else
static int is_supported(void) { return 0; }
static void run(const job *jobs, int count, int encrypt) { (void)jobs, (void)count, (void)encrypt; }
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

static int take(PyObject *item, job *j, Py_buffer *view)
{
    PyObject *buffer, *key, *iv;
    if (!PyTuple_Check(item)) {
        PyErr_SetString(PyExc_TypeError, "a job is a tuple of buffer, key and iv");
        return -1;
    }
    if (!PyArg_ParseTuple(item, "OOO", &buffer, &key, &iv))
        return -1;
    if (copy_secret(key, j->key, KEY, "the key") < 0 || copy_secret(iv, j->iv, 2 * BLOCK, "the iv") < 0)
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

static PyObject *crypt_jobs(PyObject *self, PyObject *args)
{
    int encrypt;
    PyObject *list;
    (void)self;
    if (!PyArg_ParseTuple(args, "pO!", &encrypt, &PyList_Type, &list))
        return NULL;
    if (!is_supported()) {
        PyErr_SetString(PyExc_RuntimeError, "this processor has no AES instructions");
        return NULL;
    }
    Py_ssize_t total = PyList_Size(list);
    for (Py_ssize_t first = 0; first < total; first += LANES) {
        job jobs[LANES];
        Py_buffer views[LANES];
        int count = 0;
        while (count < LANES && first + count < total) {
            if (take(PyList_GetItem(list, first + count), &jobs[count], &views[count]) < 0) {
                while (count--)
                    PyBuffer_Release(&views[count]);
                return NULL;
            }
            count++;
        }
        Py_BEGIN_ALLOW_THREADS
        run(jobs, count, encrypt);
        Py_END_ALLOW_THREADS
        while (count--)
            PyBuffer_Release(&views[count]);
    }
    Py_RETURN_NONE;
}

static PyObject *supported(PyObject *self, PyObject *args)
{
    (void)self, (void)args;
    return PyBool_FromLong(is_supported());
}

static PyMethodDef methods[] = {
    {"crypt", crypt_jobs, METH_VARARGS, "crypt(encrypt, [(buffer, key, iv), ...]): in place, lock released."},
    {"supported", supported, METH_NOARGS, "Whether this processor has the instructions."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_ige", "AES-256-IGE on AES instructions.", 0, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__ige(void) { return PyModuleDef_Init(&module); }
