"""Tools that the tests share.

Each is itself tested against mechanisms that are known to be broken.
"""
