"""Caches that forget: by use, by age, by cost."""

from caches.decorator import memoize
from caches.expiring import ExpiringCache
from caches.recent import RecentCache
from caches.sketch import FrequencySketch

__all__ = ["ExpiringCache", "FrequencySketch", "RecentCache", "memoize"]
