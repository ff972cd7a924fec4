"""Keep the garbage collector from searching objects again and again that live as long as the process.

Importing the libraries makes hundreds of thousands of them, and each search takes a tenth of a second.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_THRESHOLDS = (10_000, 10, 50)  # new objects, then collections, before the next older generation is searched


@contextmanager
def collection_paused() -> Iterator[None]:
    """Collect nothing inside the block, in which modules are imported or many lasting objects are made."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextmanager
def existing_objects_frozen() -> Iterator[None]:
    """Keep the collector from the objects that exist before the block, and let it search the others less often.

    By itself it searches all objects once a quarter of them is new. Of few objects that quarter is soon there.
    """
    if gc.get_freeze_count():  # by whoever is around this block: their objects are left out already
        yield
        return
    thresholds = gc.get_threshold()
    gc.freeze()
    if thresholds[0]:  # 0 turns the collector off
        gc.set_threshold(*map(max, thresholds, _THRESHOLDS))
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()
