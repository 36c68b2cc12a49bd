-- The usual charge, and the usual answer to one, each in a single call: a transaction that takes one round trip. A call
-- that finds anything unusual does nothing; the library then looks at the rows itself, and says what stands in the way.
-- The rules of the tables hold for both ways. Only the owner's side may call these functions.
--
-- They find the tables of the secrets first, then those of the book: `about` is that of the secrets.

-- A time as the library enters it.
CREATE FUNCTION stamp(moment TIMESTAMPTZ) RETURNS TEXT LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN to_char(moment AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"+00:00"');
END $$;

-- Charge for a question that has no name yet, in an account without spenders that is bound as the charge is, or not bound
-- as the charge is not. No row: nothing was done.
CREATE FUNCTION charge_new(which TEXT, given TEXT, tags BYTEA[], fresh_key TEXT, fresh_digest TEXT, first BIGINT, second BIGINT,
                           said TEXT, lease DOUBLE PRECISION, worker TEXT, whom TEXT, whose TEXT, most BIGINT[])
RETURNS SETOF entries LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
  moment TIMESTAMPTZ;
BEGIN
  LOCK TABLE entries IN EXCLUSIVE MODE;
  moment := clock_timestamp();
  PERFORM 1 FROM accounts a LEFT JOIN bindings b ON b.account = a.name
    WHERE a.name = which AND b.protects IS NOT DISTINCT FROM whom AND coalesce(b.data, '') = coalesce(whose, '')
      AND NOT EXISTS (SELECT 1 FROM about WHERE name = 'moved to')
      AND NOT EXISTS (SELECT 1 FROM requests r WHERE given IS NULL AND r.account = which AND r.derived AND r.tag = ANY (tags))
      AND NOT EXISTS (SELECT 1 FROM requests r WHERE r.account = which AND r.key = fresh_key)
      AND NOT EXISTS (SELECT 1 FROM entries e WHERE e.account = which AND e.key = fresh_key)
      AND NOT EXISTS (SELECT 1 FROM entries e WHERE e.account = which AND e.kind = 'cap' AND e.spender <> '');
  IF NOT FOUND OR (whose <> '' AND NOT under_ceiling(which, whose, first, second, most)) THEN
    RETURN;
  END IF;
  INSERT INTO requests (account, key, tag, digest, derived) VALUES (which, fresh_key, tags[1], fresh_digest, given IS NULL);
  RETURN QUERY INSERT INTO entries VALUES
    (NULL, which, 'reserve', stamp(moment), fresh_key, fresh_digest, first, second, said, '', NULL, NULL,
     stamp(moment + make_interval(secs => lease)), worker, NULL, NULL, '', 0, 0) RETURNING *;
END $$;

-- Whether a charge keeps to the ceiling of its data set, if that has one, and the caller states no other.
CREATE FUNCTION under_ceiling(which TEXT, whose TEXT, first BIGINT, second BIGINT, most BIGINT[]) RETURNS BOOLEAN LANGUAGE plpgsql AS $$
DECLARE
  capped ceilings%ROWTYPE;
BEGIN
  SELECT * INTO capped FROM ceilings WHERE data = whose;
  IF NOT FOUND THEN
    RETURN most IS NULL;
  END IF;
  RETURN coalesce(most, ARRAY[capped.first, capped.second]) = ARRAY[capped.first, capped.second]
    AND ceiling_fault(which, first, second) IS NULL;
END $$;

-- Store the answer of a charge that has none, and enter that it is handed out. No row: nothing was done.
CREATE FUNCTION answer_new(charge BIGINT, linked_as TEXT, answer BYTEA) RETURNS SETOF entries LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
  paid entries%ROWTYPE;
  stored BIGINT;
BEGIN
  LOCK TABLE entries IN EXCLUSIVE MODE;
  SELECT e.* INTO paid FROM entries e WHERE e.sequence = charge AND e.hash = linked_as AND e.kind = 'reserve'
    AND NOT EXISTS (SELECT 1 FROM entries s WHERE s.account = e.account AND s.key = e.key AND s.kind = 'store')
    AND NOT EXISTS (SELECT 1 FROM about WHERE name = 'moved to');
  IF NOT FOUND THEN
    RETURN;
  END IF;
  INSERT INTO entries VALUES
    (NULL, paid.account, 'store', paid.time, paid.key, paid.digest, 0, 0, '', encode(sha256(answer), 'hex'), NULL, NULL, '', '', NULL, NULL, '', 0, 0)
    RETURNING sequence INTO stored;
  INSERT INTO payloads (sequence, payload) VALUES (stored, answer);
  RETURN QUERY INSERT INTO entries VALUES
    (NULL, paid.account, 'hand', paid.time, paid.key, paid.digest, 0, 0, '', '', NULL, NULL, '', '', NULL, NULL, '', 0, 0) RETURNING *;
END $$;

