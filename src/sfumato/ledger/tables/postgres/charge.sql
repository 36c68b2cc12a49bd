-- The usual charge, and the usual answer to one, each in a single call: a transaction that takes one round trip. A call
-- that finds anything unusual does nothing; the library then looks at the rows itself, and says what stands in the way.
-- The rules of the tables hold for both ways. Only the owner's side may call these functions.
--
-- They find the tables of the secrets first, then those of the book: `about` is that of the secrets.

-- A time as the library enters it.
CREATE FUNCTION stamp(moment TIMESTAMPTZ) RETURNS TEXT LANGUAGE sql STABLE AS $$
  SELECT to_char(moment AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"+00:00"')
$$;

-- Charge for a question that has no name yet, in an account without spenders that is bound as the charge is, or not bound
-- as the charge is not. Tags are those of the question in the words of now and, if there are any, of before. No row:
-- nothing was done.
CREATE FUNCTION charge_new(which TEXT, given BOOLEAN, words BYTEA, former BYTEA[], fresh_key TEXT, fresh_digest TEXT,
                           first BIGINT, second BIGINT, said TEXT, lease DOUBLE PRECISION, worker TEXT,
                           whom TEXT, whose TEXT, most BIGINT[], located BYTEA, anew BOOLEAN, seeded BYTEA)
RETURNS SETOF entries LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
  moment TIMESTAMPTZ;
BEGIN
  LOCK TABLE entries IN EXCLUSIVE MODE;
  moment := clock_timestamp();
  PERFORM 1 FROM accounts a LEFT JOIN bindings b ON b.account = a.name
    WHERE a.name = which AND b.protects IS NOT DISTINCT FROM whom AND coalesce(b.data, '') = coalesce(whose, '')
      AND NOT EXISTS (SELECT 1 FROM about WHERE name = 'moved to')
      AND NOT EXISTS (SELECT 1 FROM entries e WHERE e.account = which AND e.kind = 'cap' AND e.spender <> '');
  IF NOT FOUND THEN
    RETURN;
  END IF;
  IF whose <> '' THEN
    IF NOT under_ceiling(which, whose, first, second, most) THEN
      RETURN;
    END IF;
  END IF;
  IF former IS NOT NULL AND NOT given THEN
    PERFORM 1 FROM requests r WHERE r.account = which AND r.derived AND r.tag = ANY (former);
    IF FOUND THEN
      RETURN;
    END IF;
  END IF;
  -- Paid for in another state of the data: the library says so.
  IF located IS NOT NULL AND NOT anew THEN
    PERFORM 1 FROM requests r WHERE r.account = which AND r.place = located;
    IF FOUND THEN
      RETURN;
    END IF;
  END IF;
  -- The key, and the tag of a question whose key was made for it, stand for one question each.
  INSERT INTO requests (account, key, tag, digest, place, derived) VALUES (which, fresh_key, words, fresh_digest, located, NOT given)
    ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  INSERT INTO seeds (account, key, seed) VALUES (which, fresh_key, seeded);
  -- Where the rules refuse it, the name is undone as well.
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
  paid RECORD;
BEGIN
  LOCK TABLE entries IN EXCLUSIVE MODE;
  SELECT e.*, (SELECT max(sequence) FROM entries) AS tip INTO paid FROM entries e WHERE e.sequence = charge AND e.hash = linked_as AND e.kind = 'reserve'
    AND NOT EXISTS (SELECT 1 FROM entries s WHERE s.account = e.account AND s.key = e.key AND s.kind = 'store')
    AND NOT EXISTS (SELECT 1 FROM about WHERE name = 'moved to');
  IF NOT FOUND THEN
    RETURN;
  END IF;
  -- The second row sees the first. Nobody else adds any meanwhile.
  RETURN QUERY INSERT INTO entries VALUES
    (NULL, paid.account, 'store', paid.time, paid.key, paid.digest, 0, 0, '', encode(sha256(answer), 'hex'), NULL, NULL, '', '', NULL, NULL, '', 0, 0),
    (NULL, paid.account, 'hand', paid.time, paid.key, paid.digest, 0, 0, '', '', NULL, NULL, '', '', NULL, NULL, '', 0, 0)
    RETURNING *;
  INSERT INTO payloads (sequence, payload) VALUES (paid.tip + 1, answer);
  CALL wipe_seed(paid.account, paid.key);
END $$;

