"""What is computed from other people's names, captions and lists takes time in proportion to them."""

import dataclasses
import importlib
import inspect
import pkgutil
import re

import pytest
from cpu_work import growth

import worker.domain
from worker.archives.sink import Sink, clean_text
from worker.cli.fitting import cut, wrapped
from worker.domain.archive_name import Scheme, part_name, recognise
from worker.domain.archive_set import Named, PostedFile, archive_set
from worker.domain.channel_name import channel_name
from worker.domain.clean_name import clean_file_name
from worker.domain.composed import composed
from worker.domain.creator import clean_title, creator_of, is_date, tags_of
from worker.domain.forming import OpenFile, family_of, form, set_name, waits_for, without_spares
from worker.domain.listing import Entry
from worker.domain.marked_set import Gathering, MarkedMessage, marked_sets
from worker.domain.marker import Marker, find_marker
from worker.domain.package_content import PackageContent, StoredFile, StoredPart, parts_by_file, tiles
from worker.domain.preview_choice import PostedPhoto, nearest_photo, picture_rank
from worker.domain.replacing import with_newer
from worker.domain.split_plan import OriginalFile, split_plan
from worker.log import redact_text
from worker.plain_text import plain
from worker.workspace.restored import target_names

CHARACTERS = 4_096
NAMES = 2_000
MOST_GROWTH = 2.5

# Each is repeated up to the length that is wanted; what stands after | comes once, at the end.
TEXTS = (
    "1|x", " |x", " - ", "(|", "(a|)", "#a ", "# ", "#a|", "_", ".", ".zip", ".part1|.rar", ".001|x", "a.", "a.a|://b:c@", "://:|", "a://:",
    "@a", "\n", "\naf1 ", "1+1 ", "jan-1|x", "1st", "\u0316\u0301|a", "a\u0301\u0316", "\u0390", "\ufdfa", "\u202e", "/../", "\0", "http://",
    "password='", "+1 ", "0a", "12345678:", "archive ", "[official] ",
)  # fmt: skip


# What each function makes of one text. Those that strangers' text reaches inside another one are named there.
OF_TEXT = {
    "archive_name.recognise": lambda text: (recognise(text), recognise(f"{text}.part1.rar"), recognise(f"{text}.zip")),
    "archive_name.PartName.family": lambda text: recognise(f"{text}.rar").family,
    "archive_name.part_name": lambda text: part_name(recognise(f"{text}.part1.rar"), Scheme.RAR_PARTS, 7),
    "channel_name.channel_name": lambda text: (channel_name(text), channel_name(f"https://t.me/{text}")),
    "clean_name.clean_file_name": clean_file_name,
    "composed.composed": composed,
    "creator.creator_of": lambda text: (
        creator_of(topic_name=text, archive_name="", channel_title=""),
        creator_of(topic_name=None, archive_name=f"{text} - {text}", channel_title=text),
    ),
    "creator.clean_title": clean_title,
    "creator.is_date": is_date,
    "creator.tags_of": lambda text: tags_of(category=None, caption=text),
    "forming.family_of": lambda text: family_of(f"{text}.rar"),
    "marker.find_marker": lambda text: (find_marker(text), find_marker(f"{_MARKER.line()}{text}")),
    "marker.Marker.line": lambda text: dataclasses.replace(_MARKER, file_name=text).line(),
    "marker.Marker.original_name": lambda text: dataclasses.replace(_MARKER, file_name="a" * 400).original_name(text),
    "preview_choice.picture_rank": lambda text: (picture_rank(text, 1, 2), picture_rank(f"{text}.jpg", 1, 2)),
    "preview_choice.nearest_photo": lambda text: nearest_photo(
        archive_set([_named(1, f"{text}.rar")]), [PostedPhoto(2, 0, caption=text)]
    ),
    "archives.clean_text": clean_text,
    "archives.Sink.add": lambda text: Sink(lambda _: None, 9, 1 << 40).add(Entry(text, 1, 1, None, None, False, False)),
    "log.redact_text": redact_text,
    "status.plain": plain,
    "cli.cut": lambda text: cut(text, 80),
    "cli.wrapped": lambda text: wrapped(text, 80),
    "workspace.target_names": lambda text: target_names([text]),
}  # fmt: skip

_MARKER = Marker(b"h" * 32, 10, 0, 10, 0, 11, "a", 1, 2, 3)


@pytest.mark.parametrize("name", OF_TEXT)
def test_w3_text_twice_as_long_takes_twice_as_long(name):
    function = OF_TEXT[name]
    for pattern in TEXTS:
        repeated, _, last = pattern.partition("|")

        def prepare(size, repeated=repeated, last=last):
            text = repeated * (size // len(repeated)) + last
            return lambda: function(text)

        grown = growth(prepare, CHARACTERS)
        assert grown < MOST_GROWTH, f"{name} of {pattern!r}"


def _file(number, name, **options):
    return PostedFile(
        number, number, name, options.pop("size", 100), options.pop("date", number * 60), **options
    )


def _named(number, name, **options):
    return Named(_file(number, name, **options), recognise(name))


def _many(name, **options):
    return lambda count: [_file(number, name, **options) for number in range(1, count + 1)]


def _anywhere(count):
    """Three postings that may be cut from each other at any of a third of the places."""
    third = count // 3
    return [_file(n, "a.part1.rar" if n % third == 1 else f"a.part{n + 1}.rar") for n in range(1, count + 1)]


def _halves(count):
    """The same numbers twice, of many sizes."""
    half = count // 2
    return [_file(n, f"a.part{1 + n % half}.rar", size=n) for n in range(1, count + 1)]


def _album(count):
    return [_file(n, f"a.part{n}.rar", album_id=1) for n in range(1, count + 1)]


def _answers(count):
    return [_file(n, f"a.part{n}.rar", reply_to=max(1, n - 1)) for n in range(1, count + 1)]


def _strays(count):
    """Many whole sets in one topic, and in another so many parts without a set as are still looked at."""
    strays = [_file(n, "a.r01" if n % 2 else "a.r02", topic_id=2) for n in range(1, 151)]
    return strays + [_file(n, "a.rar", topic_id=1) for n in range(151, count + 1)]


def _spread(count):
    """Sets of two parts whose second half lies in one topic or another."""
    return [_file(n, f"a.r{n % 2:02d}", topic_id=n % 3, date=0) for n in range(1, count + 1)]


LISTS = {
    "one name": _many("a.part1.rar"),
    "a part that speaks of a hundred thousand": _many("a.part99999.rar"),
    "archives that stand alone": _many("a.zip"),
    "continuations": _many("a.r00"),
    "cut anywhere": _anywhere,
    "two halves": _halves,
    "one album": _album,
    "answers to answers": _answers,
    "strays in a topic": _strays,
    "spread over topics": _spread,
}


def _forming(files):
    unknown = [OpenFile(file.message_id, None, file) for file in files]
    known = [OpenFile(file.message_id, file.message_id, file) for file in files]
    counts = {file.message_id: 2 for file in files}
    return lambda: (form(unknown, {}), form(known, counts))


@pytest.mark.parametrize("kind", LISTS)
def test_w3_twice_as_many_posted_files_take_twice_as_long_to_form_sets(kind):
    grown = growth(lambda size: _forming(LISTS[kind](size)), NAMES)
    assert grown < MOST_GROWTH


def _content(count):
    return PackageContent(
        1, "a", b"", count, "published",
        tuple(StoredPart(1, n, n, "a", n, 1) for n in range(count)),
        tuple(StoredFile("a", 1) for _ in range(count)),
    )  # fmt: skip


def _photos(count):
    found = archive_set(_named(n, f"a.part{n}.rar") for n in range(1, count + 1))
    photos = [PostedPhoto(n, n * 60, caption="a") for n in range(count, 2 * count)]
    return lambda: nearest_photo(found, photos)


def _a_set(function):
    def prepare(count):
        found = archive_set(_named(n, f"a.part{2 * n}.rar") for n in range(1, count + 1))
        return lambda: function(found)

    return prepare


def _messages(count):
    return [
        MarkedMessage(n, n, "a", dataclasses.replace(_MARKER, offset=n // 2, length=1, total_size=count))
        for n in range(count)
    ]


def _windows(count):
    """Windows of one content that overlap, and more bytes than it has, but none of those it begins with."""
    return [
        MarkedMessage(
            n, n, "a", dataclasses.replace(_MARKER, offset=1 + n // 2, length=1 + n % 2, total_size=count)
        )
        for n in range(count)
    ]


def _gathered(messages):
    gathering = Gathering()
    for message in messages:
        assert gathering.add(message) is None


def _on(make, function):
    def prepare(count):
        things = make(count)
        return lambda: function(things)

    return prepare


OF_LISTS = {
    "archive_set.archive_set": _on(lambda n: [_named(i, f"a.part{i}.rar") for i in range(n, 0, -1)], archive_set),
    "archive_set.ArchiveSet.missing": _a_set(lambda found: found.missing),
    "archive_set.ArchiveSet.missing_numbers": _a_set(lambda found: found.missing_numbers),
    "archive_set.ArchiveSet.missing_count": _a_set(lambda found: found.missing_count),
    "archive_set.ArchiveSet.first_missing": _a_set(lambda found: found.first_missing(5)),
    "archive_set.ArchiveSet.gapless": _a_set(lambda found: found.gapless),
    "archive_set.ArchiveSet.name_of": _a_set(lambda found: found.name_of(3)),
    "replacing.with_newer": _a_set(
        lambda found: with_newer(found, [_file(part.message_id + 9999, part.file_name) for part in found.parts])
    ),
    "forming.set_name": _a_set(set_name),
    "forming.without_spares": _a_set(without_spares),
    "forming.waits_for": _a_set(lambda found: waits_for(found, found.missing_numbers)),
    "marked_set.marked_sets": _on(_messages, marked_sets),
    "marked_set.Gathering.add": _on(_windows, _gathered),
    "marked_set.MarkedSet.files": _on(lambda n: marked_sets(_messages(n))[0], lambda found: found.files),
    "package_content.parts_by_file": _on(_content, parts_by_file),
    "package_content.tiles": _on(_content, lambda content: tiles(content.parts, content.size)),
    "package_content.PackageContent.is_whole": _on(_content, lambda content: content.is_whole),
    "preview_choice.nearest_photo": _photos,
    "split_plan.split_plan": _on(
        lambda n: [OriginalFile(f"a.{i:03d}", 10) for i in range(n)], lambda files: split_plan(files, 9)
    ),
    "workspace.target_names": _on(lambda n: ["a.zip"] * n, target_names),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_LISTS)
def test_w3_a_list_twice_as_long_takes_twice_as_long(name):
    grown = growth(OF_LISTS[name], NAMES)
    assert grown < MOST_GROWTH


# Reached through one that is listed, or of no length that strangers choose.
ELSEWHERE = {
    "marked_set.Gathering.oldest": "looks at the first of each content",
    "marked_set.Gathering.overflow": "a bounded number of contents",
    "marked_set.Gathering.rest": "a bounded number of contents",
    "marked_set.MarkedSet.is_proven": "a plain list of parts",
    "marked_set.MarkedSet.is_worded_by_us": "a plain list of parts",
    "marked_set.MarkedSet.message_ids": "a plain list of parts",
    "marked_set.MarkedSet.name": "a plain list of parts",
    "marker.read_marker": "through marker.find_marker",
    "marker.with_code": "a line of bounded length",
    "marker_code.code_of": "a line of bounded length",
    "marker_code.is_coded": "a line of bounded length",
    "origin.Authority.is_sent_by_us": "compares two values",
    "origin.Authority.names_us": "compares two values",
    "origin.Authority.standing": "a line of bounded length",
    "archive_set.ArchiveSet.parts": "a plain list of members",
    "channel_name.ChannelName.telegram_id": "what the owner typed",
    "copying.document_to_copy": "compares two values",
    "cutting.cut_into_runs": "through forming.form",
    "cutting.style_of": "through forming.form",
    "cutting.style_of_name": "through forming.form",
    "forming.form": "with every kind of list",
    "forming.stands_alone": "compares two values",
    "grouping.group": "through forming.form",
    "listing.Listing.candid_marks": "a set of a few marks",
    "listing.Completeness.unproven": "a plain list of parts",
    "marked_set.marked_message": "through marker.find_marker",
    "marked_set.MarkedSet.is_complete": "looks at one part",
    "marked_set.MarkedSet.missing_bytes": "looks at one part",
    "pauses.in_the_way": "the owner's pauses",
    "pauses.resting_channels": "the owner's pauses",
    "pauses.Pause.covers": "the owner's pauses",
    "phone.masked_phone": "the owner's number",
    "phone.international": "the owner's number",
    "phone.looks_like_phone": "the owner's number",
    "split_plan.restore": "for small files: tests and checks",
}


def test_every_function_of_the_domain_that_takes_text_is_listed_here():
    listed = {*OF_TEXT, *OF_LISTS, *ELSEWHERE}
    there = set(_functions_of_text())
    assert there - listed == set(), "give it the nastiest input, or say where it gets it"
    domain = {
        name for name in listed if name.split(".")[0] not in ("archives", "log", "status", "cli", "workspace")
    }
    assert domain - there == set(), "there is no such function any more"


def _functions_of_text():
    """The public functions, methods and properties of domain/ that are given text, alone or inside a value."""
    names = [module.name for module in pkgutil.iter_modules(worker.domain.__path__)]
    modules = [importlib.import_module(f"worker.domain.{name}") for name in names]
    textual = _kinds_with_text(modules)
    for module in modules:
        inside = module.__name__.rpartition(".")[2]
        for name, thing in list(vars(module).items()):
            if name.startswith("_") or getattr(thing, "__module__", None) != module.__name__:
                continue
            if inspect.isfunction(thing) and _takes(thing, textual):
                yield f"{inside}.{name}"
            if inspect.isclass(thing):
                for own, member in vars(thing).items():
                    function = member.fget if isinstance(member, property) else member
                    called = inspect.isfunction(function) and not own.startswith("_")
                    if called and (name in textual or _takes(function, textual)):
                        yield f"{inside}.{name}.{own}"


def _kinds_with_text(modules):
    kinds = {name: thing for module in modules for name, thing in list(vars(module).items())}
    textual = {"str"}
    while True:
        more = {
            name
            for name, thing in kinds.items()
            if name not in textual
            and (
                any(_mentions(field.type, textual) for field in dataclasses.fields(thing))
                if dataclasses.is_dataclass(thing)
                else name == "Unit"
            )
        }
        if not more:
            return textual
        textual |= more


def _takes(function, textual):
    return any(
        _mentions(each.annotation, textual) for each in inspect.signature(function).parameters.values()
    )


def _mentions(annotation, names):
    return not names.isdisjoint(re.findall(r"\w+", str(annotation)))
