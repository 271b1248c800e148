"""Which PostgreSQL the tests take where Docker answers."""

import shutil

import pytest
from postgres_server import choose_image

OFFICIAL, STAND_IN = "postgres:18.6-trixie", "archive-fleet-stand-in/postgres:18"


@pytest.mark.parametrize(
    ("here", "registry", "chosen"),
    [
        ([OFFICIAL, STAND_IN], [], OFFICIAL),
        ([], [OFFICIAL], OFFICIAL),
        ([STAND_IN], [OFFICIAL], OFFICIAL),
        ([STAND_IN], [], STAND_IN),
        ([], [], None),
    ],
)
def test_the_official_image_goes_before_its_stand_in_and_without_either_there_is_a_reason(
    tmp_path, monkeypatch, here, registry, chosen
):
    docker = tmp_path / "docker"
    docker.write_text(
        f"""#!{shutil.which("sh")}
for last in "$@"; do :; done
case "$1" in
  image) case " {" ".join(here)} " in *" $last "*) exit 0;; *) exit 1;; esac;;
  pull) case " {" ".join(registry)} " in *" $last "*) exit 0;; *) echo "no such host" >&2; exit 1;; esac;;
esac
"""
    )
    docker.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    image, reason = choose_image()
    assert image == chosen
    assert reason == ("" if chosen else f"{OFFICIAL} cannot be had: no such host")
