"""A gateway on loopback between a command-line agent and its provider: it counts, pays, limits and remembers.

async with meter.open_trial(task, [upstream], place=place) as trial:
    way = reach(trial, sandbox.name)
    env = {"OPENAI_BASE_URL": base_url(trial, way, "openai"), "OPENAI_API_KEY": trial.token}
    await sandbox.run(Command(way.wrap(argv), place, seconds, env=env, network=way.network, readable=way.readable))
    transcript = trial.transcript()
"""

from bakeoff.meter.meter import METER, Meter, OpenMeter
from bakeoff.meter.reach import Reach, base_url, reach
from bakeoff.meter.trial import TrialMeter
from bakeoff.meter.upstreams import Upstream, upstream_of

__all__ = ["METER", "Meter", "OpenMeter", "Reach", "TrialMeter", "Upstream", "base_url", "reach", "upstream_of"]
