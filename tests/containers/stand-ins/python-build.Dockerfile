# A stand-in for the full python image: the same with a compiler and Python's headers.
FROM archive-fleet-stand-in/python:slim
RUN apt-get update \
 && apt-get install -y --no-install-recommends gcc libc6-dev python3-dev \
 && rm -rf /var/lib/apt/lists/*
