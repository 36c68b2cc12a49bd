"""Tools that the tests share: each is itself tested against mechanisms that are known to be broken."""
