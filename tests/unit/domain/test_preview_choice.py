import pytest

from worker.domain.archive_set import PostedFile
from worker.domain.grouping import group
from worker.domain.preview_choice import PostedPhoto, nearest_photo, picture_rank

MIB = 1024 * 1024


def a_set(**kwargs):
    return group([PostedFile(10, 10, "Summer_Set.zip", 1, 10_000, **kwargs)]).sets[0]


def test_p11_an_album_or_a_reply_beats_caption_and_time():
    near = PostedPhoto(11, 10_001)
    captioned = PostedPhoto(5, 9_000, caption="Preview: summer set!")
    album = PostedPhoto(9, 5_000, album_id=3)
    reply = PostedPhoto(12, 50_000, reply_to=10)
    assert nearest_photo(a_set(album_id=3), [near, captioned, album]) is album
    assert nearest_photo(a_set(), [near, captioned, reply]) is reply
    assert nearest_photo(a_set(reply_to=5), [near, captioned]) is captioned
    assert nearest_photo(a_set(), [near, captioned]) is captioned
    assert nearest_photo(a_set(), [near]) is near


def test_p11_a_photo_far_away_or_of_another_topic_or_poster_is_not_the_preview():
    far = PostedPhoto(1, 1)
    other_topic = PostedPhoto(11, 10_001, topic_id=4, caption="Summer Set")
    other_poster = PostedPhoto(12, 10_002, poster_id=4)
    assert nearest_photo(a_set(), [far, other_topic, other_poster]) is None


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        (("deep/down/cover.jpg", 10), ("a.jpg", 1000)),
        (("Front_Cover.PNG", 10), ("thumbs.png", 10)),
        (("a.jpg", 10), ("d/a.jpg", 1000)),
        (("b.jpg", 1000), ("a.jpg", 10)),
        (("a.jpg", 10), ("b.jpg", 10)),
    ],
)
def test_the_best_picture_goes_by_name_then_depth_then_size(better, worse):
    assert picture_rank(*better, 2 * MIB) < picture_rank(*worse, 2 * MIB)


@pytest.mark.parametrize(
    ("path", "size"),
    [
        ("a.txt", 5),
        ("a.jpg", 0),
        ("a.jpg", 2 * MIB + 1),
        ("__MACOSX/._a.jpg", 9),
        ("d/._a.jpg", 9),
        ("jpg", 9),
    ],
)
def test_what_cannot_be_a_preview_has_no_rank(path, size):
    assert picture_rank(path, size, 2 * MIB) is None
