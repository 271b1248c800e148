"""Every backend computes the same cipher: the published vectors, the definition, and each other's inverse."""

import hashlib
import os

import pyaes
import pytest
from hypothesis import given
from hypothesis import strategies as st
from skip_report import lacking

from worker.cipher import ige

BACKENDS = list(ige.available().values())
NAMES = [backend.name for backend in BACKENDS]
ZEROS = bytes(32)


def slow_ige(data, key, iv):
    """The definition, block by block, with arithmetic of another library."""
    cipher, sealed, plain, out = pyaes.AES(key), iv[:16], iv[16:], b""
    for start in range(0, len(data), 16):
        block = data[start : start + 16]
        mixed = bytes(a ^ b for a, b in zip(block, sealed, strict=True))
        sealed = bytes(a ^ b for a, b in zip(cipher.encrypt(mixed), plain, strict=True))
        plain, out = block, out + sealed
    return out


def sealed_by(backend, messages):
    jobs = [(bytearray(data), key, iv) for data, key, iv in messages]
    backend.encrypt(jobs)
    return [bytes(buffer) for buffer, _, _ in jobs]


def opened_by(backend, messages):
    jobs = [(bytearray(data), key, iv) for data, key, iv in messages]
    backend.decrypt(jobs)
    return [bytes(buffer) for buffer, _, _ in jobs]


@pytest.mark.parametrize("backend", BACKENDS, ids=NAMES)
def test_a_block_under_a_zero_key_is_the_cipher_s_own_vector(backend):
    # AES-256 of a zero block under a zero key, FIPS-197 arithmetic; with a zero iv the first block is just that.
    expected = bytes.fromhex("dc95c078a2408989ad48a21492842087")
    assert sealed_by(backend, [(bytes(16), ZEROS, ZEROS)]) == [expected]


@pytest.mark.parametrize("backend", BACKENDS, ids=NAMES)
@given(lengths=st.lists(st.integers(1, 40), min_size=1, max_size=9))
def test_messages_of_any_lengths_side_by_side_are_encrypted_as_the_mode_is_defined(backend, lengths):
    messages = [(os.urandom(16 * blocks), os.urandom(32), os.urandom(32)) for blocks in lengths]
    sealed = sealed_by(backend, messages)
    assert sealed == [slow_ige(*message) for message in messages]
    keys = [(key, iv) for _, key, iv in messages]
    again = [(data, *pair) for data, pair in zip(sealed, keys, strict=True)]
    assert opened_by(backend, again) == [data for data, _, _ in messages]


@pytest.mark.parametrize("backend", BACKENDS, ids=NAMES)
def test_a_window_of_a_larger_buffer_is_changed_and_nothing_around_it(backend):
    buffer, key, iv = bytearray(b"x" * 64), os.urandom(32), os.urandom(32)
    backend.encrypt([(memoryview(buffer)[16:48], key, iv)])
    assert buffer[:16] == buffer[48:] == b"x" * 16
    assert buffer[16:48] == slow_ige(b"x" * 32, key, iv)


@pytest.mark.parametrize("backend", BACKENDS, ids=NAMES)
@given(lengths=st.lists(st.integers(1, 40), min_size=1, max_size=9))
def test_messages_of_any_lengths_are_opened_and_hashed_with_their_secrets(backend, lengths):
    messages = [(os.urandom(16 * blocks), os.urandom(32), os.urandom(32)) for blocks in lengths]
    secrets = [os.urandom(32) for _ in lengths]
    sealed = sealed_by(backend, messages)
    jobs = [
        (bytearray(data), key, iv, secret)
        for data, (_, key, iv), secret in zip(sealed, messages, secrets, strict=True)
    ]
    digests = backend.open(jobs)
    assert [bytes(buffer) for buffer, _, _, _ in jobs] == [data for data, _, _ in messages]
    assert digests == [
        hashlib.sha256(secret + data).digest() for secret, (data, _, _) in zip(secrets, messages, strict=True)
    ]


def test_a_part_of_a_file_is_opened_as_by_every_other_backend():
    message = (os.urandom(2**20 + 48), os.urandom(32), os.urandom(32))
    secret = os.urandom(32)
    opened = []
    for backend in BACKENDS:
        buffers = [bytearray(message[0]) for _ in range(5)]
        digests = backend.open([(buffer, *message[1:], secret) for buffer in buffers])
        opened.append((buffers, digests))
        assert digests == [hashlib.sha256(secret + buffer).digest() for buffer in buffers]
    assert all(each == opened[0] for each in opened)


@pytest.fixture
def native():
    if "native" not in NAMES:
        lacking("a C compiler")
    return ige.available()["native"]


def test_the_extension_refuses_what_it_cannot_encrypt(native):
    for buffer, key, iv, kind in [
        (bytearray(15), ZEROS, ZEROS, ValueError),
        (bytearray(16), bytes(31), ZEROS, ValueError),
        (bytearray(16), ZEROS, bytes(16), ValueError),
        (bytes(16), ZEROS, ZEROS, BufferError),
        ("text", ZEROS, ZEROS, TypeError),
    ]:
        untouched = bytearray(16)
        with pytest.raises(kind):
            native.encrypt([(untouched, ZEROS, ZEROS), (buffer, key, iv)])
        assert untouched == bytes(16)


def test_one_switch_changes_the_backend_for_the_process():
    before = ige.backend()
    try:
        for backend in BACKENDS:
            ige.use(backend)
            assert ige.backend() is backend
            assert ige.decrypt(ige.encrypt(b"a" * 32, ZEROS, ZEROS), ZEROS, ZEROS) == b"a" * 32
    finally:
        ige.use(before)


def test_a_message_is_not_opened_with_a_secret_of_another_length(native):
    for secret in (bytes(31), "text"):
        untouched = bytearray(64)
        with pytest.raises((TypeError, ValueError)):
            native.open([(untouched, ZEROS, ZEROS, secret)])
        assert untouched == bytearray(64)
