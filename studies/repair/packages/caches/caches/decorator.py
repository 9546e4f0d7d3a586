"""Functions that remember."""

import functools

from caches.recent import RecentCache

_MISSING = object()


def _key(args, kwargs, typed):
    key = args
    if kwargs:
        key += (_MISSING,) + tuple(sorted(kwargs.items()))
    if typed:
        key += tuple(type(value) for value in args)
        key += tuple(type(value) for _, value in sorted(kwargs.items()))
    return key


def memoize(capacity=128, typed=False, ignore=()):
    """Keeps results by arguments. Keyword arguments named in ``ignore`` tell no results apart."""

    def decorate(function):
        cache = RecentCache(capacity)

        @functools.wraps(function)
        def remembered(*args, **kwargs):
            telling = {name: value for name, value in kwargs.items() if name not in ignore}
            key = _key(args, telling, typed)
            result = cache.get(key, _MISSING)
            if result is _MISSING:
                result = function(*args, **kwargs)
                cache.put(key, result)
            return result

        remembered.cache = cache
        return remembered

    return decorate
