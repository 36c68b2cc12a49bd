-- The public part of a ledger. Tables only ever grow. All state (balances, leases, answers) is read off the
-- entries: each carries what its account has spent so far, so that a balance cannot move without an entry.
-- Nothing here depends on the data but the answers that were paid for; secrets are in a schema of their own.

CREATE TABLE about (
  name  TEXT PRIMARY KEY,
  value TEXT NOT NULL
);

CREATE TABLE accounts (
  name         TEXT PRIMARY KEY,
  rule         TEXT NOT NULL,
  total_first  BIGINT NOT NULL CHECK (total_first >= 0),
  total_second BIGINT NOT NULL CHECK (total_second >= 0),
  place        BIGINT GENERATED ALWAYS AS IDENTITY           -- the order of their opening
);

-- What an account protects, and which data set it pays for; fixed by its first charge.
CREATE TABLE bindings (
  account  TEXT PRIMARY KEY REFERENCES accounts (name),
  protects TEXT NOT NULL,
  data     TEXT NOT NULL
);

-- What all accounts of one data set may spend together.
CREATE TABLE ceilings (
  data   TEXT PRIMARY KEY,
  rule   TEXT NOT NULL,
  first  BIGINT NOT NULL CHECK (first >= 0),
  second BIGINT NOT NULL CHECK (second >= 0)
);

-- What an entry holds is checked by entries_fit alone: a server reads the text of a CHECK anew for every statement.
CREATE TABLE entries (
  sequence     BIGINT PRIMARY KEY,
  account      TEXT NOT NULL,                                -- one of the accounts: entries_fit looks
  kind         TEXT NOT NULL,
  time         TEXT NOT NULL,
  key          TEXT NOT NULL,
  digest       TEXT NOT NULL,
  cost_first   BIGINT NOT NULL,
  cost_second  BIGINT NOT NULL,
  note         TEXT NOT NULL,
  payload_hash TEXT NOT NULL,
  spent_first  BIGINT NOT NULL,
  spent_second BIGINT NOT NULL,
  until        TEXT NOT NULL,
  holder       TEXT NOT NULL,
  previous     TEXT NOT NULL,
  hash         TEXT NOT NULL,
  spender      TEXT NOT NULL,                                -- whose charge or ceiling it is; '' where there are no spenders
  own_first    BIGINT NOT NULL,                              -- what that spender has spent from the account so far
  own_second   BIGINT NOT NULL
);
CREATE INDEX entries_by_account ON entries (account, sequence);
CREATE INDEX entries_by_key ON entries (account, key);
CREATE INDEX entries_by_spender ON entries (account, spender, sequence) WHERE spender <> '';
CREATE INDEX entries_of_ceilings ON entries (account, spender, sequence) WHERE kind = 'cap' AND spender <> '';

-- The highest number that was ever given out: a plain cut of the tail shows.
CREATE TABLE reached (
  only_row BOOLEAN PRIMARY KEY DEFAULT TRUE CHECK (only_row),
  sequence BIGINT NOT NULL
);
INSERT INTO reached (sequence) VALUES (0);

CREATE TABLE payloads (
  sequence BIGINT PRIMARY KEY,                               -- of the entry that stores it: payloads_stored looks
  payload  BYTEA NOT NULL
);

-- Nothing is changed, nothing is removed.
CREATE FUNCTION stay() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$;

CREATE TRIGGER about_stay    BEFORE UPDATE OR DELETE OR TRUNCATE ON about    FOR EACH STATEMENT EXECUTE FUNCTION stay();
CREATE TRIGGER accounts_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON accounts FOR EACH STATEMENT EXECUTE FUNCTION stay();
CREATE TRIGGER bindings_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON bindings FOR EACH STATEMENT EXECUTE FUNCTION stay();
CREATE TRIGGER ceilings_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON ceilings FOR EACH STATEMENT EXECUTE FUNCTION stay();
CREATE TRIGGER entries_stay  BEFORE UPDATE OR DELETE OR TRUNCATE ON entries  FOR EACH STATEMENT EXECUTE FUNCTION stay();
CREATE TRIGGER payloads_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON payloads FOR EACH STATEMENT EXECUTE FUNCTION stay();
CREATE TRIGGER reached_stay  BEFORE DELETE OR TRUNCATE           ON reached  FOR EACH STATEMENT EXECUTE FUNCTION stay();

CREATE FUNCTION reached_forward() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.sequence <> OLD.sequence + 1 THEN
    RAISE EXCEPTION 'numbers go forward' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER reached_forward BEFORE UPDATE ON reached FOR EACH ROW EXECUTE FUNCTION reached_forward();

-- What is between the quotes of a text as JSON in ASCII, as Python writes it. Signs are told by their numbers: a session
-- may change what a backslash means.
CREATE FUNCTION escaped(words TEXT) RETURNS TEXT LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  written TEXT := '';
  sign TEXT;
  code INT;
BEGIN
  IF words COLLATE "C" !~ '[^ -~]' AND strpos(words, '"') = 0 AND strpos(words, chr(92)) = 0 THEN
    RETURN words;
  END IF;
  FOREACH sign IN ARRAY string_to_array(words, NULL) LOOP
    code := ascii(sign);
    written := written || CASE
      WHEN code IN (34, 92) THEN chr(92) || sign
      WHEN code BETWEEN 32 AND 126 THEN sign
      WHEN code = 8 THEN chr(92) || 'b'
      WHEN code = 9 THEN chr(92) || 't'
      WHEN code = 10 THEN chr(92) || 'n'
      WHEN code = 12 THEN chr(92) || 'f'
      WHEN code = 13 THEN chr(92) || 'r'
      WHEN code < 65536 THEN chr(92) || 'u' || lpad(to_hex(code), 4, '0')
      ELSE chr(92) || 'u' || to_hex(55296 + ((code - 65536) >> 10)) || chr(92) || 'u' || to_hex(56320 + ((code - 65536) & 1023))
    END;
  END LOOP;
  RETURN written;
END $$;

-- A text as JSON in ASCII.
CREATE FUNCTION quoted(words TEXT) RETURNS TEXT LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN '"' || escaped(words) || '"';
END $$;

-- An entry with its texts as they are in JSON.
CREATE FUNCTION escaped(added entries) RETURNS entries LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  added.account := escaped(added.account);
  added.kind := escaped(added.kind);
  added.time := escaped(added.time);
  added.key := escaped(added.key);
  added.digest := escaped(added.digest);
  added.note := escaped(added.note);
  added.payload_hash := escaped(added.payload_hash);
  added.until := escaped(added.until);
  added.holder := escaped(added.holder);
  added.previous := escaped(added.previous);
  added.spender := escaped(added.spender);
  RETURN added;
END $$;

-- Why an entry that has a spender does not fit; NULL where it fits.
CREATE FUNCTION spender_fault(added entries) RETURNS TEXT LANGUAGE plpgsql STABLE AS $$
DECLARE
  before entries%ROWTYPE;
  capped JSON;
BEGIN
  SELECT * INTO before FROM entries WHERE account = added.account AND spender = added.spender AND spender <> ''
    ORDER BY sequence DESC LIMIT 1;
  SELECT note::json -> 'ceiling' INTO capped FROM entries
    WHERE account = added.account AND spender = added.spender AND spender <> '' AND kind = 'cap' ORDER BY sequence DESC LIMIT 1;
  RETURN CASE
    WHEN added.kind NOT IN ('reserve', 'cap') THEN 'only a charge or a ceiling has a spender'
    WHEN added.own_first - added.cost_first <> coalesce(before.own_first, 0)
      OR added.own_second - added.cost_second <> coalesce(before.own_second, 0)
      THEN 'the sum of the spender does not follow from the entry before'
    WHEN added.kind = 'reserve'
      AND (capped IS NULL OR added.own_first > (capped ->> 0)::numeric OR added.own_second > (capped ->> 1)::numeric)
      THEN 'the spender cannot pay'
  END;
END $$;

-- What is added must fit: this holds even against a fault in the program above. An entry without a number is numbered,
-- balanced and chained here.
CREATE FUNCTION entries_fit() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  was RECORD;
  taken BOOLEAN;
  shared BOOLEAN;
  reserved BOOLEAN;
  stored BOOLEAN;
  form TEXT := '["sfumato-ledger-1",%s,"%s","%s","%s","%s","%s",[%s,%s],"%s","%s",[%s,%s],"%s","%s","%s"';
  signs entries%ROWTYPE;
  linked TEXT;
  wrong TEXT;
BEGIN
  -- What the rules compare with: the last entry of all, that of the account, and what the key has been through.
  SELECT coalesce(h.sequence, 0) AS sequence, coalesce(h.hash, '') AS hash, a.name, a.total_first, a.total_second,
         coalesce(b.spent_first, 0) AS spent_first, coalesce(b.spent_second, 0) AS spent_second
    INTO was
    FROM (SELECT 1) one
    LEFT JOIN (SELECT sequence, hash FROM entries ORDER BY sequence DESC LIMIT 1) h ON TRUE
    LEFT JOIN (SELECT spent_first, spent_second FROM entries WHERE account = NEW.account ORDER BY sequence DESC LIMIT 1) b ON TRUE
    LEFT JOIN accounts a ON a.name = NEW.account;
  IF NEW.kind IN ('open', 'reserve') THEN
    taken := EXISTS (SELECT 1 FROM entries WHERE account = NEW.account AND key = NEW.key);
    IF NEW.kind = 'reserve' AND NEW.spender = '' THEN
      shared := EXISTS (SELECT 1 FROM entries WHERE account = NEW.account AND kind = 'cap' AND spender <> '');
    END IF;
  ELSIF NEW.kind NOT IN ('bind', 'cap') THEN
    SELECT bool_or(kind = 'reserve' AND digest = NEW.digest), bool_or(kind = 'store') INTO reserved, stored
      FROM entries WHERE account = NEW.account AND key = NEW.key;
  END IF;
  IF NEW.sequence IS NULL THEN
    NEW.sequence := was.sequence + 1;
    NEW.previous := was.hash;
    NEW.spent_first := was.spent_first + NEW.cost_first;
    NEW.spent_second := was.spent_second + NEW.cost_second;
  END IF;
  -- The hash: SHA-256 of all other fields, as ledger/chain.py writes them. All printed signs of ASCII but two are written as
  -- they are, and hardly any entry has another one.
  signs := NEW;
  IF NEW.account || NEW.kind || NEW.time || NEW.key || NEW.digest || NEW.note || NEW.payload_hash || NEW.until
     || NEW.holder || NEW.previous || NEW.spender COLLATE "C" ~ '[^] !#-[^-~]' THEN
    signs := escaped(NEW);
  END IF;
  form := format(form, signs.sequence, signs.account, signs.kind, signs.time, signs.key, signs.digest, signs.cost_first,
                 signs.cost_second, signs.note, signs.payload_hash, signs.spent_first, signs.spent_second, signs.until,
                 signs.holder, signs.previous);
  IF NEW.spender <> '' THEN
    form := format('%s,"%s",[%s,%s]', form, signs.spender, signs.own_first, signs.own_second);
  END IF;
  linked := encode(sha256(convert_to(form || ']', 'UTF8')), 'hex');
  IF NEW.hash IS NULL THEN
    NEW.hash := linked;
  END IF;
  wrong := CASE
    WHEN NEW.kind NOT IN ('open', 'bind', 'cap', 'reserve', 'resume', 'abandon', 'store', 'hand')
      THEN 'there is no such kind of entry'
    WHEN NEW.cost_first < 0 OR NEW.cost_second < 0
      THEN 'a cost is less than nothing'
    WHEN NEW.sequence <> was.sequence + 1 OR NEW.previous <> was.hash
      THEN 'the entry is not the next of the chain'
    WHEN NEW.spent_first - NEW.cost_first <> was.spent_first OR NEW.spent_second - NEW.cost_second <> was.spent_second
      THEN 'the balance does not follow from the entry before'
    WHEN was.name IS NULL
      THEN 'the account is not there'
    WHEN NEW.spent_first > was.total_first OR NEW.spent_second > was.total_second
      THEN 'the account cannot pay'
    WHEN NEW.kind <> 'reserve' AND (NEW.cost_first <> 0 OR NEW.cost_second <> 0)
      THEN 'only a reservation costs'
    WHEN NEW.kind IN ('open', 'reserve') AND taken
      THEN 'the key is taken'
    WHEN NEW.kind NOT IN ('open', 'bind', 'cap', 'reserve') AND reserved IS NOT TRUE
      THEN 'the key was never reserved'
    WHEN NEW.kind = 'hand' AND NOT stored
      THEN 'there is nothing to hand out'
    WHEN NEW.kind IN ('resume', 'abandon', 'store') AND stored
      THEN 'the key is answered'
    WHEN NEW.hash <> linked
      THEN 'the hash is not that of the entry'
    WHEN NEW.spender <> ''
      THEN spender_fault(NEW)
    WHEN NEW.own_first <> 0 OR NEW.own_second <> 0
      THEN 'the sum of the spender does not follow from the entry before'
    WHEN shared
      THEN 'the account is charged by its spenders only'
  END;
  IF wrong IS NOT NULL THEN
    RAISE EXCEPTION '%', wrong USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  UPDATE reached SET sequence = NEW.sequence;
  RETURN NEW;
END $$;
CREATE TRIGGER entries_fit BEFORE INSERT ON entries FOR EACH ROW EXECUTE FUNCTION entries_fit();

CREATE FUNCTION payloads_stored() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT 1 FROM entries WHERE kind = 'store' AND sequence = NEW.sequence) THEN
    RAISE EXCEPTION 'a payload belongs to the entry that stores it' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER payloads_stored BEFORE INSERT ON payloads FOR EACH ROW EXECUTE FUNCTION payloads_stored();
