# The worker as an image: built where there is a compiler, run where there is none, as a user without rights.
# Exact versions, of one Python: the virtual environment of the first is moved into the second.
ARG BUILD_IMAGE=python:3.13.15-trixie
ARG RUN_IMAGE=python:3.13.15-slim-trixie

FROM ${BUILD_IMAGE} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /src
# What changes seldom comes first, so that its layer is kept.
COPY requirements/ requirements/
RUN python -m venv /opt/worker \
 && /opt/worker/bin/pip install --require-hashes --no-deps -r requirements/run.txt \
 && /opt/worker/bin/pip install --require-hashes --no-deps -r requirements/fast.txt \
 && python -m venv /opt/build \
 && /opt/build/bin/pip install --require-hashes --no-deps -r requirements/build.txt
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY alembic/ alembic/
COPY worker/ worker/
# For `worker --version`: the sources come without git.
ARG COMMIT=""
RUN ARCHIVE_FLEET_COMMIT="$COMMIT" /opt/build/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /dist . \
 && /opt/worker/bin/pip install --no-deps /dist/*.whl \
 && /opt/worker/bin/python -m compileall -q /opt/worker/lib

FROM ${RUN_IMAGE}
# bsdtar unpacks what no library does: compressed members of a RAR of one volume, for checksums and previews.
RUN apt-get update && apt-get install -y --no-install-recommends libarchive-tools && rm -rf /var/lib/apt/lists/*
# A fixed number, so that a volume's owner is the same on every host.
RUN groupadd --gid 10001 worker \
 && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /var/lib/archive-fleet --shell /usr/sbin/nologin worker \
 && install -d -o worker -g worker -m 0700 /var/lib/archive-fleet
COPY --from=build /opt/worker /opt/worker
ENV PATH=/opt/worker/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 \
    WORKER_DATA_DIR=/var/lib/archive-fleet WORKER_LOG_FORMAT=json
# Downloads on their way; the only place that is written to.
VOLUME /var/lib/archive-fleet
WORKDIR /var/lib/archive-fleet
USER 10001:10001
ENTRYPOINT ["worker"]
CMD ["run"]
