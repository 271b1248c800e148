"""Archive Fleet: publishes every archive of many Telegram channels exactly once.

The layers, from the top: ``cli`` and ``web``; ``demo``; ``fleet``; ``recovery``; ``pipeline``; ``status``;
then ``telegram``, ``store``, ``archives``, ``workspace`` and ``flow`` side by side; ``config``, ``log``,
``clock``, ``faults``, ``release`` and ``signals``; ``domain``; ``errors``. A layer imports only what is
below it. ``sandbox`` stands beside them all.
"""

__version__ = "0.1.0"
