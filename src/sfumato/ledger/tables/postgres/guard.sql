-- What an analyst may do: the only ways in which a role that does not own the ledger changes anything, or asks anything
-- of its secrets. Each function runs with its owner's rights, checks who logged in, and lets no secret out. The owner
-- grants them to analysts; nobody else may call them.
--
-- They find the tables of the secrets first, then those of the book: `about` is that of the secrets.

-- Wait for the turn to write; the number of the transaction, by which its fate can be asked for.
CREATE FUNCTION take_turn() RETURNS TEXT LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  LOCK TABLE entries IN EXCLUSIVE MODE;
  RETURN pg_current_xact_id()::text;
END $$;

-- Refuse whoever is no spender of an account, and everybody once the ledger was moved.
CREATE FUNCTION require_spender(which TEXT) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT 1 FROM entries WHERE account = which AND spender = session_user::text AND spender <> '' AND kind = 'cap') THEN
    RAISE EXCEPTION 'this role is no spender of the account' USING ERRCODE = 'SFM01';
  END IF;
  IF EXISTS (SELECT 1 FROM about WHERE name = 'moved to') THEN
    RAISE EXCEPTION 'the ledger was moved' USING ERRCODE = 'SFM02';
  END IF;
END $$;

-- HMAC-SHA256 under the ledger's secret, of 32 bytes.
CREATE FUNCTION keyed(words TEXT) RETURNS BYTEA LANGUAGE plpgsql AS $$
DECLARE
  secret BYTEA;
  inner_pad BYTEA := decode(repeat('36', 64), 'hex');
  outer_pad BYTEA := decode(repeat('5c', 64), 'hex');
BEGIN
  SELECT value INTO STRICT secret FROM about WHERE name = 'secret' AND length(value) = 32;
  FOR i IN 0..31 LOOP
    inner_pad := set_byte(inner_pad, i, get_byte(inner_pad, i) # get_byte(secret, i));
    outer_pad := set_byte(outer_pad, i, get_byte(outer_pad, i) # get_byte(secret, i));
  END LOOP;
  RETURN sha256(outer_pad || sha256(inner_pad || convert_to(words, 'UTF8')));
END $$;

-- Find the name of a question, or give it one: what Secrets.name does for the custodian.
CREATE FUNCTION name_question(which TEXT, given TEXT, asked TEXT[], fresh_key TEXT, fresh_digest TEXT,
                              located TEXT DEFAULT NULL, anew BOOLEAN DEFAULT false,
                              OUT verdict TEXT, OUT name_key TEXT, OUT name_digest TEXT)
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
  tags BYTEA[] := ARRAY[]::bytea[];
  words TEXT;
  known RECORD;
  charged BOOLEAN;
BEGIN
  LOCK TABLE entries IN EXCLUSIVE MODE;
  PERFORM require_spender(which);
  IF array_length(asked, 1) IS NULL OR array_length(asked, 1) > 16 OR array_position(asked, NULL) IS NOT NULL
     OR coalesce(octet_length(array_to_string(asked, '')), 0) > 65536
     OR coalesce(fresh_digest, '') !~ '^[0-9a-f]{64}$' OR coalesce(fresh_key, '') = '' OR octet_length(fresh_key) > 4096
     OR (given IS NULL AND fresh_key !~ '^[0-9a-f]{32}$') OR given <> fresh_key OR coalesce(octet_length(located), 0) > 4096 THEN
    RAISE EXCEPTION 'the name is not well formed' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  FOREACH words IN ARRAY asked LOOP
    tags := array_append(tags, keyed('[' || quoted(which) || ', ' || quoted(words) || ']'));
  END LOOP;
  IF given IS NULL THEN
    SELECT r.* INTO known FROM requests r
      WHERE r.account = which AND r.derived AND r.tag = ANY (tags) ORDER BY array_position(tags, r.tag) LIMIT 1;
  ELSE
    SELECT r.* INTO known FROM requests r WHERE r.account = which AND r.key = given;
  END IF;
  charged := EXISTS (SELECT 1 FROM entries WHERE account = which AND entries.key = coalesce(known.key, given));
  verdict := CASE
    WHEN known.key IS NULL AND charged THEN 'unknown'
    WHEN known.tag = ANY (tags) THEN 'named'
    WHEN charged THEN 'conflict'
  END;
  name_key := known.key;
  name_digest := known.digest;
  IF verdict IS NULL THEN
    -- A key that is made for a question is new: the name of another question, charged or not, stays as it is.
    IF given IS NULL AND (EXISTS (SELECT 1 FROM entries WHERE account = which AND entries.key = fresh_key)
                          OR EXISTS (SELECT 1 FROM requests r WHERE r.account = which AND r.key = fresh_key)) THEN
      RAISE EXCEPTION 'the key is taken' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    -- No question that was charged has this key or tag, so nothing that was paid for is lost.
    DELETE FROM requests r WHERE r.account = which AND r.key = fresh_key;
    INSERT INTO requests (account, key, tag, digest, place, derived) VALUES (which, fresh_key, tags[1], fresh_digest,
      CASE WHEN given IS NULL OR anew THEN placed(which, located) END,
      given IS NULL OR (anew AND NOT EXISTS (SELECT 1 FROM requests r WHERE r.account = which AND r.derived AND r.tag = ANY (tags))));
    verdict := 'named';
    name_key := fresh_key;
    name_digest := fresh_digest;
  END IF;
END $$;

-- The HMAC of a question without the state of the data; NULL where it has none.
CREATE FUNCTION placed(which TEXT, located TEXT) RETURNS BYTEA LANGUAGE sql AS $$
  SELECT CASE WHEN located IS NOT NULL THEN keyed('["place", ' || quoted(which) || ', ' || quoted(located) || ']') END
$$;

-- The keys of the names of a question that was asked without a key, in any state of the data.
CREATE FUNCTION names_of(which TEXT, asked TEXT[], located TEXT) RETURNS SETOF TEXT LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
  tags BYTEA[] := ARRAY[]::bytea[];
  words TEXT;
  located_as BYTEA := placed(which, located);
BEGIN
  PERFORM require_spender(which);
  FOREACH words IN ARRAY asked LOOP
    tags := array_append(tags, keyed('[' || quoted(which) || ', ' || quoted(words) || ']'));
  END LOOP;
  RETURN QUERY SELECT r.key FROM requests r WHERE r.account = which AND r.place = located_as
    UNION SELECT r.key FROM requests r WHERE r.account = which AND r.derived AND r.tag = ANY (tags);
END $$;

-- What the noise of an own charge comes from; NULL where it has no seed, or is another's. What is proposed is kept where
-- nothing is, unless noise may have been drawn before.
CREATE FUNCTION seed_of(charge BIGINT, proposed BYTEA) RETURNS BYTEA LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
  first entries%ROWTYPE;
BEGIN
  LOCK TABLE entries IN EXCLUSIVE MODE;
  SELECT * INTO first FROM entries WHERE sequence = charge AND kind = 'reserve' AND spender = session_user::text;
  PERFORM require_spender(first.account);
  IF EXISTS (SELECT 1 FROM entries e WHERE e.account = first.account AND e.key = first.key AND e.kind = 'store') THEN
    RETURN NULL;
  END IF;
  IF octet_length(proposed) BETWEEN 32 AND 1048576 AND NOT EXISTS
     (SELECT 1 FROM entries e WHERE e.account = first.account AND e.key = first.key AND e.kind = 'resume') THEN
    INSERT INTO seeds (account, key, seed) VALUES (first.account, first.key, proposed) ON CONFLICT DO NOTHING;
  END IF;
  RETURN (SELECT s.seed FROM seeds s WHERE s.account = first.account AND s.key = first.key);
END $$;

-- Whether a charge asked about a state of the data; noted first, once, if the caller paid for the charge and says so.
CREATE FUNCTION is_of_state(charge BIGINT, state TEXT, noting BOOLEAN) RETURNS BOOLEAN LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
  first entries%ROWTYPE;
  called TEXT;
  tag BYTEA;
BEGIN
  SELECT * INTO first FROM entries WHERE sequence = charge AND kind = 'reserve';
  PERFORM require_spender(first.account);
  called := 'state of ' || first.digest;
  tag := keyed('["state", ' || quoted(first.digest) || ', ' || quoted(coalesce(state, '')) || ']');
  -- A later charge may have been given the digest of another's: it says nothing about the data of that one.
  IF noting AND first.spender = session_user::text AND NOT EXISTS
     (SELECT 1 FROM entries WHERE digest = first.digest AND kind = 'reserve' AND sequence < charge) THEN
    INSERT INTO about (name, value) VALUES (called, tag) ON CONFLICT DO NOTHING;
  END IF;
  RETURN EXISTS (SELECT 1 FROM about WHERE name = called AND value = tag);
END $$;

-- Whether a text is a time as it is entered.
CREATE FUNCTION is_stamp(words TEXT) RETURNS BOOLEAN LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN words ~ '^20[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9][.][0-9]{6}[+]00:00$';
END $$;

-- Why an analyst may not enter this; NULL where they may. The chain, the balances and the life of the key are seen to by
-- the rules of the table, for everybody.
CREATE FUNCTION analyst_fault(added entries, payload BYTEA) RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE
  first entries%ROWTYPE;
  begins BOOLEAN := added.kind IN ('bind', 'reserve', 'resume');  -- whether it has a time of its own
  leases BOOLEAN := added.kind IN ('reserve', 'resume');
  last_kind TEXT;
BEGIN
  SELECT * INTO first FROM entries WHERE account = added.account AND entries.key = added.key AND kind = 'reserve';
  -- Ordered by an expression, which no index gives: or all entries of the account would be read, in order, for one key.
  SELECT kind INTO last_kind FROM entries WHERE account = added.account AND entries.key = added.key ORDER BY sequence + 0 DESC LIMIT 1;
  RETURN CASE
    WHEN added.kind NOT IN ('bind', 'reserve', 'resume', 'abandon', 'store', 'hand') THEN 'only the custodian enters this'
    WHEN added.key = '(widened)' THEN 'the ledger uses this key'
    WHEN added.spender <> CASE added.kind WHEN 'reserve' THEN session_user::text ELSE '' END THEN 'a charge is its spender''s own'
    WHEN added.kind IN ('resume', 'abandon', 'store') AND first.spender IS DISTINCT FROM session_user::text
      THEN 'the charge is another spender''s'
    WHEN added.kind = 'abandon' AND last_kind NOT IN ('reserve', 'resume') THEN 'there is no lease to end'
    -- So that all entries of an account are few for what was paid from it.
    WHEN added.kind = 'resume' AND (SELECT count(*) FROM entries WHERE account = added.account AND entries.key = added.key AND kind = 'resume') >= 256
      THEN 'the charge was resumed too often'
    WHEN added.kind = 'reserve' AND added.event = '' AND added.cost_first = 0 AND added.cost_second = 0 THEN 'a charge costs something'
    WHEN added.kind = 'hand' AND last_kind = 'hand' THEN 'it was handed out before'
    WHEN leases AND NOT EXISTS (SELECT 1 FROM requests r WHERE r.account = added.account AND r.key = added.key AND r.digest = added.digest)
      THEN 'the question was never named'
    WHEN added.kind = 'reserve' AND NOT EXISTS (SELECT 1 FROM bindings b WHERE b.account = added.account)
      THEN 'the account is not bound yet'
    WHEN begins AND NOT is_stamp(added.time) THEN 'the time is not well formed'
    WHEN begins AND abs(extract(epoch FROM added.time::timestamptz - clock_timestamp())) > 300 THEN 'the time is not the server''s'
    WHEN NOT begins AND added.time IS DISTINCT FROM first.time THEN 'the time is not that of the charge'
    WHEN leases AND NOT is_stamp(added.until) THEN 'the lease is not well formed'
    WHEN leases AND added.until::timestamptz > clock_timestamp() + interval '367 days' THEN 'the lease is too long'
    WHEN NOT leases AND (added.until <> '' OR added.holder <> '') THEN 'only a charge is leased'
    WHEN added.kind NOT IN ('bind', 'reserve') AND added.note <> '' THEN 'only a charge has a note'
    WHEN added.kind = 'bind' AND (added.key <> '' OR added.digest <> '') THEN 'a binding has no key'
    WHEN added.kind = 'store' AND (payload IS NULL OR encode(sha256(payload), 'hex') <> added.payload_hash)
      THEN 'the answer is not the one that is entered'
    WHEN added.kind <> 'store' AND (payload IS NOT NULL OR added.payload_hash <> '') THEN 'only an answer is stored'
    WHEN greatest(octet_length(added.key), octet_length(added.note), octet_length(added.holder)) > 4096 OR octet_length(added.event) > 65536 THEN 'a text is too long'
    WHEN added.kind = 'reserve' THEN ceiling_fault(added.account, added.cost_first, added.cost_second)
  END;
END $$;

-- Why a charge would pass the ceiling of its data set; NULL where it does not.
CREATE FUNCTION ceiling_fault(which TEXT, more_first BIGINT, more_second BIGINT) RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE
  capped ceilings%ROWTYPE;
  mixed BOOLEAN;
  first NUMERIC;
  second NUMERIC;
BEGIN
  SELECT c.* INTO capped FROM ceilings c JOIN bindings b ON b.data = c.data WHERE b.account = which AND b.data <> '';
  IF NOT FOUND THEN
    RETURN NULL;
  END IF;
  IF (capped.terms <> '') <> (terms_now(which) <> '') THEN
    RETURN 'the accounts of the data set do not add up';
  ELSIF capped.terms <> '' THEN
    RETURN NULL;  -- entries_fit looks
  END IF;
  SELECT bool_or(a.rule <> capped.rule AND (e.spent_first > 0 OR e.spent_second > 0 OR a.name = which)),
         sum(e.spent_first), sum(e.spent_second) INTO mixed, first, second
    FROM bindings b JOIN accounts a ON a.name = b.account
    JOIN entries e ON e.sequence = (SELECT max(sequence) FROM entries WHERE account = a.name)
    WHERE b.data = capped.data;
  RETURN CASE
    WHEN mixed THEN 'the accounts of the data set do not add up'
    WHEN first + more_first > capped.first OR second + more_second > capped.second
      THEN 'the data set cannot pay'
  END;
END $$;

-- Enter a charge of the role that logged in, or what follows from one; with its answer where it stores one.
CREATE FUNCTION enter(added entries, payload BYTEA) RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
  wrong TEXT;
  settled JSON;
BEGIN
  LOCK TABLE entries IN EXCLUSIVE MODE;
  -- A transaction that goes on seeing an older state would not see that the ledger was moved meanwhile.
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'a charge sees what is there now' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF NOT (added IS NOT NULL) THEN
    RAISE EXCEPTION 'an entry has all its fields' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  PERFORM require_spender(added.account);
  wrong := analyst_fault(added, payload);
  IF wrong IS NOT NULL THEN
    RAISE EXCEPTION '%', wrong USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  INSERT INTO entries SELECT added.*;
  IF added.kind = 'store' THEN
    PERFORM convert_from(payload, 'UTF8');  -- an export writes answers as text
    INSERT INTO payloads (sequence, payload) VALUES (added.sequence, enter.payload);
    CALL wipe_seed(added.account, added.key);
  ELSIF added.kind = 'bind' THEN
    settled := added.note::json;
    IF coalesce(settled ->> 'protects', '') = '' OR added.note IS DISTINCT FROM
       '{"protects": ' || quoted(settled ->> 'protects') || ', "data": ' || quoted(settled ->> 'data') || '}' THEN
      RAISE EXCEPTION 'the binding is not well formed' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    IF settled ->> 'data' = '' AND EXISTS (SELECT 1 FROM ceilings) THEN
      RAISE EXCEPTION 'data without a name pass by a ceiling' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    INSERT INTO bindings (account, protects, data) VALUES (added.account, settled ->> 'protects', settled ->> 'data');
  END IF;
END $$;

DO $$
DECLARE
  guarded regprocedure;
BEGIN
  FOR guarded IN SELECT oid FROM pg_proc WHERE pronamespace = current_schema()::regnamespace AND prosecdef LOOP
    EXECUTE format('ALTER FUNCTION %s SET search_path = %I, %I, pg_temp', guarded, current_schema() || '_secrets', current_schema());
  END LOOP;
  EXECUTE format('REVOKE ALL ON ALL FUNCTIONS IN SCHEMA %I FROM PUBLIC', current_schema());
END $$;
