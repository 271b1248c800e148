from pyrogram.crypto import rsa

from worker.sandbox.public_key import fingerprint


def test_the_fingerprints_of_telegrams_own_keys_come_out_right():
    for expected, key in rsa.server_public_keys.items():
        assert fingerprint(key.m, key.e) == expected
