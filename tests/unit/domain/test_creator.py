import pytest

from worker.domain.creator import clean_title, creator_of, is_date, tags_of


def test_p12_the_topic_names_the_creator_first():
    assert creator_of(topic_name="Jane Doe ✨", archive_name="Other - Title", channel_title="C") == "Jane Doe"


@pytest.mark.parametrize("topic", [None, "", "General", "March 2024", "2024-05", "🎉"])
def test_p12_without_a_telling_topic_the_archive_name_speaks(topic):
    assert creator_of(topic_name=topic, archive_name="Jane Doe - Set 12", channel_title="C") == "Jane Doe"


@pytest.mark.parametrize(
    "name", ["March 2024 - photos", "2024-05-01 - photos", "Q3 2023 - x", "photos", "12 \u2013 x"]
)
def test_p12_months_and_dates_are_not_creators(name):
    assert creator_of(topic_name=None, archive_name=name, channel_title="The Makers") == "The Makers"


def test_p12_underscores_count_as_spaces():
    assert creator_of(topic_name=None, archive_name="Jane_Doe_-_Title", channel_title="C") == "Jane Doe"


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("📦 Jane Doe | Official Channel 📦", "Jane Doe"),
        ("[VIP] Jane Doe @janes", "Jane Doe"),
        ("Archive", "Archive"),
        ("2024", None),
        ("🔥🔥", None),
    ],
)
def test_p12_a_channel_title_is_cleaned(title, name):
    assert clean_title(title) == name


def test_a_name_that_begins_like_a_month_is_a_name():
    assert not is_date("May Lin")
    assert not is_date("Marcus")
    assert is_date("may 2023")


def test_p12_tags_are_the_category_and_the_hashtags_each_once():
    assert tags_of(category="Models", caption="new #Café #café #2024 #set_2 mail#no &#39; ##x") == (
        "models",
        "café",
        "set_2",
    )
    assert tags_of(category=None, caption="") == ()


def test_p12_tags_keep_the_marks_of_their_script():
    persian = "\u0645\u06cc\u200c\u0631\u0648\u062f"
    caption = f"#हिन्दी, #ภาษาไทย #{persian} #日本語。हिन्दी#no"
    assert tags_of(category=None, caption=caption) == ("हिन्दी", "ภาษาไทย", persian, "日本語")


def test_p12_one_tag_in_two_unicode_forms_is_one_tag():
    assert tags_of(category=None, caption="#cafe\u0301 #caf\u00e9") == ("caf\u00e9",)


def test_w3_a_long_row_of_digits_is_read_once():
    assert not is_date("1" * 4000 + "x")
    name = creator_of(topic_name=None, archive_name=f"{'1' * 40}x - kit.zip", channel_title="")
    assert name == "1" * 40 + "x"


def test_what_stands_in_brackets_is_left_out_up_to_the_first_that_closes():
    assert clean_title("((a) b) Kits [new] (open") == "b) Kits (open"


def test_a_tag_is_as_long_as_an_index_takes():
    assert [len(tag) for tag in tags_of(category=None, caption="#" + "a" * 4000)] == [100]
