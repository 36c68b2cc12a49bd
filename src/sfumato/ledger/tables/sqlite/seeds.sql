-- What a charge is paid once by, added to the secrets of a ledger since version 0.2.1.
--
-- `place` is a second HMAC of the question, without the state of the data: by it, what was paid for another state is
-- found. A seed is what the noise of a charge, and its choice of rows, come from: every attempt to answer the charge
-- draws the same. It is wiped when the answer is stored.

ALTER TABLE requests ADD COLUMN place BLOB;
CREATE INDEX requests_by_place ON requests (account, place) WHERE place IS NOT NULL;

CREATE TABLE seeds (
  account TEXT NOT NULL CHECK (typeof(account) = 'text'),
  key     TEXT NOT NULL CHECK (typeof(key) = 'text'),
  seed    BLOB NOT NULL CHECK (typeof(seed) = 'blob'),
  PRIMARY KEY (account, key)
) WITHOUT ROWID;

CREATE TRIGGER seeds_keep BEFORE UPDATE ON seeds BEGIN SELECT RAISE(ABORT, 'a seed never changes'); END;
