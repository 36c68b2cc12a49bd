-- What a charge is paid once by, added to the secrets of a ledger since version 0.2.1.
--
-- `place` is a second HMAC of the question, without the state of the data: by it, what was paid for another state is
-- found. A seed is what the noise of a charge, and its choice of rows, come from: every attempt to answer the charge
-- draws the same. It is wiped when the answer is stored.

ALTER TABLE requests ADD COLUMN place BYTEA;
CREATE INDEX requests_by_place ON requests (account, place) WHERE place IS NOT NULL;

CREATE TABLE seeds (
  account TEXT NOT NULL,
  key     TEXT NOT NULL,
  seed    BYTEA NOT NULL,
  PRIMARY KEY (account, key)
);
CREATE TRIGGER seeds_keep BEFORE UPDATE ON seeds FOR EACH STATEMENT EXECUTE FUNCTION stay();

-- A row that is deleted stays in its file until the file is written anew. So the few rows that remain are written to a
-- new file, and the old file is gone when the transaction is committed. The server's log of changes keeps it until it
-- is recycled.
CREATE PROCEDURE wipe_seed(which TEXT, named TEXT) LANGUAGE plpgsql AS $$
DECLARE
  others seeds[];
BEGIN
  LOCK TABLE seeds IN ACCESS EXCLUSIVE MODE;
  IF EXISTS (SELECT 1 FROM seeds s WHERE s.account = which AND s.key = named) THEN
    SELECT array_agg(s) INTO others FROM seeds s WHERE (s.account, s.key) <> (which, named);
    TRUNCATE seeds;
    INSERT INTO seeds SELECT (unnest(others)).*;
  END IF;
END $$;

DO $$
BEGIN
  -- Whoever calls it, it wipes the seeds of its own schema.
  EXECUTE format('ALTER PROCEDURE wipe_seed SET search_path = %I, pg_temp', current_schema());
  EXECUTE format('REVOKE ALL ON ALL ROUTINES IN SCHEMA %I FROM PUBLIC', current_schema());
END $$;
