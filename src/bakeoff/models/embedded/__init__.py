"""The embedded model: llama.cpp in its own process on this machine, with the OpenAI API."""

from bakeoff.models.embedded.launch import EmbeddedEndpoint
from bakeoff.models.embedded.server import EmbeddedServer
from bakeoff.models.embedded.weights import KNOWN, Weights, check_name, pull, weights_path

__all__ = ["KNOWN", "EmbeddedEndpoint", "EmbeddedServer", "Weights", "check_name", "pull", "weights_path"]
