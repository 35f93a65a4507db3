# The command, without root:          docker build -t uncertain-cep .
#                                     docker run --rm -v "$PWD:/data" uncertain-cep match query.sase trace.csv
# Spark's executors on Kubernetes:    docker build --target executor -t uncertain-cep-executor .
ARG PYTHON=3.13
ARG SPARK=4.3.0

FROM python:${PYTHON}-slim AS wheel
WORKDIR /source
COPY pyproject.toml build_metadata.py README.md LICENSE ./
COPY confidence confidence
COPY eventbased eventbased
COPY pointbased pointbased
COPY uncertain_cep uncertain_cep
COPY datasets datasets
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:${PYTHON}-slim AS package
COPY requirements/runtime.lock /tmp/runtime.lock
COPY --from=wheel /wheels /tmp/wheels
RUN pip install --no-cache-dir --requirement /tmp/runtime.lock \
    && pip install --no-cache-dir --no-deps /tmp/wheels/*.whl \
    && rm -r /tmp/wheels /tmp/runtime.lock \
    && useradd --create-home --uid 1000 cep
# Kernels are compiled once: keep them in a volume, or in the image by a line `RUN uncertain-cep warm-up --all`.
ENV NUMBA_CACHE_DIR=/home/cep/.cache/uncertain-cep

FROM apache/spark:${SPARK} AS spark

FROM package AS executor
# Spark starts its executors by the script of its own image.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-21-jre-headless procps tini \
    && rm -rf /var/lib/apt/lists/*
COPY --from=spark /opt/spark /opt/spark
COPY --from=spark /opt/entrypoint.sh /opt/entrypoint.sh
ENV SPARK_HOME=/opt/spark PYSPARK_PYTHON=/usr/local/bin/python
USER cep
WORKDIR /home/cep
ENTRYPOINT ["/opt/entrypoint.sh"]

FROM package
USER cep
WORKDIR /data
ENTRYPOINT ["uncertain-cep"]
CMD ["--help"]
