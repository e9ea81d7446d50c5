# The Space: docker build -t space . && docker run --network host -v arb-state:/home/arb/state space
# It serves on loopback, where a name is enough to submit; on the Hub (SPACE_ID) it is reached from outside.
FROM python:3.13-slim
RUN useradd --create-home --uid 1000 arb
COPY . /source
RUN python -m pip install --no-cache-dir /source && rm -r /source
USER arb
WORKDIR /home/arb
ENV ARB_STATE_DIR=/home/arb/state ARB_PORT=7860
RUN mkdir state
VOLUME /home/arb/state
EXPOSE 7860
HEALTHCHECK --interval=10s --start-period=60s CMD python -c "import os, urllib.request as r; r.urlopen(f'http://127.0.0.1:{os.environ[\"ARB_PORT\"]}/healthz', timeout=5)"
CMD ["sh", "-c", "if [ -n \"$SPACE_ID\" ]; then exec arb space serve --host 0.0.0.0; fi; exec arb space serve"]
