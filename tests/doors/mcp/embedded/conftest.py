"""The embedded model, as the tests of models have it."""

from ....models.embedded.conftest import cache, own_runtime_folder, use_cache, weights

__all__ = ["cache", "own_runtime_folder", "use_cache", "weights"]
