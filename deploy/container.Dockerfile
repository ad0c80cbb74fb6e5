# SPDX-License-Identifier: Apache-2.0
# The agent in an image, from the root of the source tree:
#   docker build -f deploy/container.Dockerfile -t cairn .
FROM debian:12 AS build
COPY . /src
WORKDIR /src
RUN apt-get update && apt-get install -y --no-install-recommends make ca-certificates \
	&& make && DESTDIR=/image make install PREFIX=/usr

FROM debian:12-slim
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates libbpf1 libcurl4 libdw1 libelf1 libjansson4 \
	liblzma5 libzstd1 zlib1g && rm -rf /var/lib/apt/lists/*
COPY --from=build /image/usr/bin/cairn /usr/bin/cairn
ENV GPROFILER_IN_CONTAINER=1
ENTRYPOINT ["/usr/bin/cairn", "agent"]
