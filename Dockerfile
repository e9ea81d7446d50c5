# The Space: docker build -t space . && docker run -p 7860:7860 -v arb-state:/home/arb/state space
# It listens on all addresses. Off the Hub it is read-only until accounts have access tokens: see docs/operate.md.
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
# /healthz is for restarts: a new process does not bring a database back. Load balancers ask /readyz.
HEALTHCHECK --interval=10s --start-period=60s CMD python -c "import os, urllib.request as r; r.urlopen(f'http://127.0.0.1:{os.environ[\"ARB_PORT\"]}/healthz', timeout=5)"
CMD ["arb", "space", "serve", "--host", "0.0.0.0"]
