import pytest

from worker.domain.archive_name import LAST, ArchiveFormat, Scheme, recognise


@pytest.mark.parametrize(
    ("name", "base", "form", "scheme", "index"),
    [
        ("photos.zip", "photos", "zip", "single", LAST),
        ("photos.ZIP", "photos", "zip", "single", LAST),
        ("photos.rar", "photos", "rar", "single", 0),
        ("photos.7z", "photos", "7z", "single", 0),
        ("photos.part1.rar", "photos", "rar", "part", 0),
        ("Photos.PART012.Rar", "Photos", "rar", "part", 11),
        ("photos.r00", "photos", "rar", "legacy", 1),
        ("photos.r99", "photos", "rar", "legacy", 100),
        ("photos.s00", "photos", "rar", "legacy", 101),
        ("photos.z01", "photos", "zip", "spanned", 0),
        ("photos.Z12", "photos", "zip", "spanned", 11),
        ("photos.zip.001", "photos", "zip", "numbered", 0),
        ("photos.7z.010", "photos", "7z", "numbered", 9),
        ("photos.rar.002", "photos", "rar", "numbered", 1),
        ("a.tar", "a", "tar", "single", 0),
        ("a.tar.gz", "a", "tar.gz", "single", 0),
        ("a.tgz", "a", "tar.gz", "single", 0),
        ("a.tar.bz2", "a", "tar.bz2", "single", 0),
        ("a.tar.xz", "a", "tar.xz", "single", 0),
        ("a.TAR.ZST", "a", "tar.zst", "single", 0),
        ("写真 集.part2.rar", "写真 集", "rar", "part", 1),
        ("фото.7Z", "фото", "7z", "single", 0),
        ("two\nlines.zip", "two\nlines", "zip", "single", LAST),
        (" padded.zip ", "padded", "zip", "single", LAST),
        ("x.part0.rar", "x.part0", "rar", "single", 0),
    ],
)
def test_p6_every_naming_scheme_is_recognised(name, base, form, scheme, index):
    found = recognise(name)
    assert found is not None
    assert (found.base, found.format, found.scheme, found.index) == (
        base,
        ArchiveFormat(form),
        Scheme(scheme),
        index,
    )


@pytest.mark.parametrize(
    "name",
    ["", "zip", "a.txt", "a.gz", "a.xz", "a.001", "a.zipx", "photo.jpg", "a.zip.1", "a.z00", "a.7z.000"],
)
def test_p6_other_names_are_no_archives(name):
    assert recognise(name) is None


def test_p6_a_continuation_part_is_only_an_archive_beside_its_first_volume():
    found = recognise("report.r12")
    assert found is not None
    assert not found.anchored


def test_names_that_differ_in_case_or_unicode_form_are_one_family():
    composed, decomposed = recognise("Café.part1.rar"), recognise("CAFE\u0301.PART2.RAR")
    assert composed is not None
    assert decomposed is not None
    assert composed.family == decomposed.family
