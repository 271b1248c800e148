import pytest
from cryptography.hazmat.primitives.asymmetric import rsa as rsa_keys
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key
from pyrogram.crypto import rsa

from worker.errors import UserError
from worker.sandbox.public_key import fingerprint
from worker.sandbox.wire.rsa_key import load_or_make
from worker.telegram.client import trust_public_key


def test_the_fingerprints_of_telegrams_own_keys_come_out_right():
    for expected, key in rsa.server_public_keys.items():
        assert fingerprint(key.m, key.e) == expected


def test_the_key_is_published_in_the_form_of_telegrams_own(tmp_path):
    made = load_or_make(tmp_path)
    assert made.public_pem.read_text().startswith("-----BEGIN RSA PUBLIC KEY-----\n")


def test_an_older_folders_key_is_published_anew_and_stays_the_same_key(tmp_path):
    made = load_or_make(tmp_path)
    same = load_pem_public_key(made.public_pem.read_bytes())
    made.public_pem.write_bytes(same.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    assert load_or_make(tmp_path) == made
    assert made.public_pem.read_text().startswith("-----BEGIN RSA PUBLIC KEY-----\n")


@pytest.mark.parametrize("form", [PublicFormat.PKCS1, PublicFormat.SubjectPublicKeyInfo])
def test_the_worker_trusts_a_key_in_either_form(tmp_path, monkeypatch, form):
    monkeypatch.setattr(rsa, "server_public_keys", {})
    key = rsa_keys.generate_private_key(public_exponent=65537, key_size=2048).public_key()
    path = tmp_path / "key.pem"
    path.write_bytes(key.public_bytes(Encoding.PEM, form))
    trust_public_key(path)
    numbers = key.public_numbers()
    trusted = rsa.server_public_keys[fingerprint(numbers.n, numbers.e)]
    assert (trusted.m, trusted.e) == (numbers.n, numbers.e)


@pytest.mark.parametrize("text", ["", "-----BEGIN RSA PUBLIC KEY-----\nAAAA\n-----END RSA PUBLIC KEY-----\n"])
def test_what_is_no_key_is_refused_by_name(tmp_path, text):
    path = tmp_path / "key.pem"
    path.write_text(text)
    with pytest.raises(UserError, match=r"key\.pem is not a PEM public key"):
        trust_public_key(path)
