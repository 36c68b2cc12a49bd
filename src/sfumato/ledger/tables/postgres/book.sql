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

CREATE FUNCTION payloads_stored() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT 1 FROM entries WHERE kind = 'store' AND sequence = NEW.sequence) THEN
    RAISE EXCEPTION 'a payload belongs to the entry that stores it' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER payloads_stored BEFORE INSERT ON payloads FOR EACH ROW EXECUTE FUNCTION payloads_stored();
