"""A local gateway between a command-line agent and its provider: counts, limits, records, replays.

async with meter.open_trial(task, [upstream], place=place) as trial:
    access = trial.access(sandbox.name)
    env = {"OPENAI_BASE_URL": trial.base_url(access, "openai"), "OPENAI_API_KEY": trial.token}
    command = Command(access.wrap(argv), place, seconds, env=env, network=access.network, readable=access.readable)
    await sandbox.run(command)
transcript = trial.transcript()
"""

from bakeoff.meter.app import METER, Meter, OpenMeter
from bakeoff.meter.trial import MeterAccess, MeterLimits, TrialMeter
from bakeoff.meter.upstreams import Upstream, upstream_of

__all__ = ["METER", "Meter", "MeterAccess", "MeterLimits", "OpenMeter", "TrialMeter", "Upstream", "upstream_of"]
