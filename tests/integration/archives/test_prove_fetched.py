"""What is looked at once more between fetching a set and publishing it."""

from types import SimpleNamespace

import pytest
from test_archive_evidence import noise, rar_volumes, sevenzip

from worker.errors import SetFailedError
from worker.pipeline.fetch import Fetched, FetchedPart
from worker.pipeline.prove_fetched import prove_fetched

pytestmark = pytest.mark.asyncio(loop_scope="module")


def fetched(folder, bodies):
    parts = []
    for number, (name, body) in enumerate(bodies.items()):
        (folder / f"part-{number}").write_bytes(body)
        parts.append(FetchedPart(folder / f"part-{number}", name, len(body), bytes(32)))
    return Fetched(tuple(parts), bytes(32))


@pytest.mark.parametrize("make", [sevenzip, rar_volumes])
async def test_p5_a_set_with_a_part_of_another_archive_is_not_published(make, tmp_path, nursery):
    """On the server, where only headers were read, nothing spoke against it."""
    deps = SimpleNamespace(nursery=nursery)
    bodies, others = make(1), make(2)
    await prove_fetched(deps, fetched(tmp_path, bodies))
    name = list(bodies)[1]
    with pytest.raises(SetFailedError, match="not whole"):
        await prove_fetched(deps, fetched(tmp_path, {**bodies, name: others[name]}))


async def test_p5_a_single_file_is_published_as_it_was_posted(tmp_path, nursery):
    await prove_fetched(SimpleNamespace(nursery=nursery), fetched(tmp_path, {"a.zip": noise(1)}))
