import pytest
from distributions import Distributions


@pytest.fixture(scope="session")
def dist(tmp_path_factory, worker_id):
    own = tmp_path_factory.getbasetemp()
    shared = (own if worker_id == "master" else own.parent) / "dist"
    shared.mkdir(exist_ok=True)
    return Distributions(shared)
