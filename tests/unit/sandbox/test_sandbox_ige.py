import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.sandbox.wire import ige


def slow_ige(data, key, iv):
    """The definition, block by block, with the library's own arithmetic."""
    pyaes = pytest.importorskip("pyaes")
    cipher, sealed, plain, out = pyaes.AES(key), iv[:16], iv[16:], b""
    for start in range(0, len(data), 16):
        block = data[start : start + 16]
        mixed = bytes(a ^ b for a, b in zip(block, sealed, strict=True))
        sealed = bytes(a ^ b for a, b in zip(cipher.encrypt(mixed), plain, strict=True))
        plain, out = block, out + sealed
    return out


@given(blocks=st.integers(1, 40))
def test_openssl_encrypts_as_the_mode_is_defined(blocks):
    data, key, iv = os.urandom(16 * blocks), os.urandom(32), os.urandom(32)
    assert ige.encrypt_by_openssl(data, key, iv) == slow_ige(data, key, iv) == ige.encrypt(data, key, iv)


@given(blocks=st.integers(1, 40))
def test_openssl_decrypts_what_was_encrypted(blocks):
    data, key, iv = os.urandom(16 * blocks), os.urandom(32), os.urandom(32)
    sealed = ige.encrypt(data, key, iv)
    assert ige.decrypt_by_openssl(sealed, key, iv) == data == ige.decrypt(sealed, key, iv)
