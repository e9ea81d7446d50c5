"""What the process that commands are forked from has imported (`commands`); nothing of it is ever garbage."""

import gc

gc.disable()

import pandas  # noqa: E402, F401
import pyarrow.parquet  # noqa: E402, F401

import space.app  # noqa: E402, F401
from tests.support.gradio_servers import leave_out_unused_servers  # noqa: E402
from tests.support.route_fields import share_validators  # noqa: E402

leave_out_unused_servers()
share_validators()
gc.freeze()
