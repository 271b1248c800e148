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

#include "_aes_ige.h"
#include "_one_pass.h"
#include "_wide_hash.h"
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
