# A stand-in for python:*-slim: Debian's own Python where the official image has one of its own.
FROM archive-fleet-stand-in/debian
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates python3 python3-venv \
 && rm -rf /var/lib/apt/lists/* \
 && ln -s /usr/bin/python3 /usr/local/bin/python \
 && ln -s /usr/bin/python3 /usr/local/bin/python3
# What this machine needs to reach the package index stays out of the product's own Dockerfile.
COPY machine/ /
CMD ["python3"]
