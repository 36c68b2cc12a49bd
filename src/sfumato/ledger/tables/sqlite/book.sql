-- The public part of a ledger. Tables only ever grow. All state (balances, leases, answers) is read off the
-- entries: each carries what its account has spent so far, so that a balance cannot move without an entry.
-- Nothing here depends on the data but the answers that were paid for; secrets are in a file of their own.

CREATE TABLE about (
  name  TEXT PRIMARY KEY NOT NULL CHECK (typeof(name) = 'text'),
  value TEXT NOT NULL CHECK (typeof(value) = 'text')
);

CREATE TABLE accounts (
  name         TEXT PRIMARY KEY NOT NULL CHECK (typeof(name) = 'text'),
  rule         TEXT NOT NULL CHECK (typeof(rule) = 'text'),
  total_first  INTEGER NOT NULL CHECK (typeof(total_first) = 'integer' AND total_first >= 0),
  total_second INTEGER NOT NULL CHECK (typeof(total_second) = 'integer' AND total_second >= 0)
);

-- What an account protects, and which data set it pays for; fixed by its first charge.
CREATE TABLE bindings (
  account  TEXT PRIMARY KEY NOT NULL REFERENCES accounts (name),
  protects TEXT NOT NULL CHECK (typeof(protects) = 'text'),
  data     TEXT NOT NULL CHECK (typeof(data) = 'text')
);

-- What all accounts of one data set may spend together.
CREATE TABLE ceilings (
  data   TEXT PRIMARY KEY NOT NULL CHECK (typeof(data) = 'text'),
  rule   TEXT NOT NULL CHECK (typeof(rule) = 'text'),
  first  INTEGER NOT NULL CHECK (typeof(first) = 'integer' AND first >= 0),
  second INTEGER NOT NULL CHECK (typeof(second) = 'integer' AND second >= 0)
);

CREATE TABLE entries (
  sequence     INTEGER PRIMARY KEY AUTOINCREMENT,  -- remembers the highest number given out: a plain cut of the tail shows
  account      TEXT NOT NULL REFERENCES accounts (name),
  kind         TEXT NOT NULL CHECK (kind IN ('open', 'bind', 'cap', 'reserve', 'resume', 'abandon', 'store', 'hand')),
  time         TEXT NOT NULL,
  key          TEXT NOT NULL,
  digest       TEXT NOT NULL,
  cost_first   INTEGER NOT NULL CHECK (typeof(cost_first) = 'integer' AND cost_first >= 0),
  cost_second  INTEGER NOT NULL CHECK (typeof(cost_second) = 'integer' AND cost_second >= 0),
  note         TEXT NOT NULL,
  payload_hash TEXT NOT NULL,
  spent_first  INTEGER NOT NULL CHECK (typeof(spent_first) = 'integer'),
  spent_second INTEGER NOT NULL CHECK (typeof(spent_second) = 'integer'),
  until        TEXT NOT NULL,
  holder       TEXT NOT NULL,
  previous     TEXT NOT NULL,
  hash         TEXT NOT NULL
);
CREATE INDEX entries_by_account ON entries (account);
CREATE INDEX entries_by_key ON entries (account, key);

CREATE TABLE payloads (
  sequence INTEGER PRIMARY KEY REFERENCES entries (sequence),
  payload  BLOB NOT NULL CHECK (typeof(payload) = 'blob')
);

-- Nothing is changed, nothing is removed.
CREATE TRIGGER about_keep BEFORE UPDATE ON about BEGIN SELECT RAISE(ABORT, 'about is append-only'); END;
CREATE TRIGGER about_stay BEFORE DELETE ON about BEGIN SELECT RAISE(ABORT, 'about is append-only'); END;
CREATE TRIGGER bindings_keep BEFORE UPDATE ON bindings BEGIN SELECT RAISE(ABORT, 'bindings is append-only'); END;
CREATE TRIGGER bindings_stay BEFORE DELETE ON bindings BEGIN SELECT RAISE(ABORT, 'bindings is append-only'); END;
CREATE TRIGGER ceilings_keep BEFORE UPDATE ON ceilings BEGIN SELECT RAISE(ABORT, 'ceilings is append-only'); END;
CREATE TRIGGER ceilings_stay BEFORE DELETE ON ceilings BEGIN SELECT RAISE(ABORT, 'ceilings is append-only'); END;
CREATE TRIGGER accounts_keep BEFORE UPDATE ON accounts BEGIN SELECT RAISE(ABORT, 'accounts are append-only'); END;
CREATE TRIGGER accounts_stay BEFORE DELETE ON accounts BEGIN SELECT RAISE(ABORT, 'accounts are append-only'); END;
CREATE TRIGGER entries_keep  BEFORE UPDATE ON entries  BEGIN SELECT RAISE(ABORT, 'entries are append-only'); END;
CREATE TRIGGER entries_stay  BEFORE DELETE ON entries  BEGIN SELECT RAISE(ABORT, 'entries are append-only'); END;
CREATE TRIGGER payloads_keep BEFORE UPDATE ON payloads BEGIN SELECT RAISE(ABORT, 'payloads are append-only'); END;
CREATE TRIGGER payloads_stay BEFORE DELETE ON payloads BEGIN SELECT RAISE(ABORT, 'payloads are append-only'); END;

-- What is added must fit: these hold even against a fault in the program above them. (REPLACE goes round DELETE triggers, not round these.)
CREATE TRIGGER about_once BEFORE INSERT ON about BEGIN
  SELECT RAISE(ABORT, 'it is settled already') WHERE EXISTS (SELECT 1 FROM about WHERE name = NEW.name);
END;

CREATE TRIGGER bindings_once BEFORE INSERT ON bindings BEGIN
  SELECT RAISE(ABORT, 'it is settled already') WHERE EXISTS (SELECT 1 FROM bindings WHERE account = NEW.account);
END;

CREATE TRIGGER ceilings_once BEFORE INSERT ON ceilings BEGIN
  SELECT RAISE(ABORT, 'it is settled already') WHERE EXISTS (SELECT 1 FROM ceilings WHERE data = NEW.data);
END;

CREATE TRIGGER accounts_once BEFORE INSERT ON accounts BEGIN
  SELECT RAISE(ABORT, 'the account exists') WHERE EXISTS (SELECT 1 FROM accounts WHERE name = NEW.name);
END;

CREATE TRIGGER entries_chain BEFORE INSERT ON entries BEGIN
  SELECT RAISE(ABORT, 'the entry is not the next of the chain')
    WHERE NEW.sequence <> coalesce((SELECT max(sequence) FROM entries), 0) + 1
       OR NEW.previous <> coalesce((SELECT hash FROM entries ORDER BY sequence DESC LIMIT 1), '');
END;

CREATE TRIGGER entries_balance BEFORE INSERT ON entries BEGIN
  SELECT RAISE(ABORT, 'the balance does not follow from the entry before')
    WHERE NEW.spent_first - NEW.cost_first
          <> coalesce((SELECT spent_first FROM entries WHERE account = NEW.account ORDER BY sequence DESC LIMIT 1), 0)
       OR NEW.spent_second - NEW.cost_second
          <> coalesce((SELECT spent_second FROM entries WHERE account = NEW.account ORDER BY sequence DESC LIMIT 1), 0);
  SELECT RAISE(ABORT, 'the account cannot pay')
    WHERE EXISTS (SELECT 1 FROM accounts WHERE name = NEW.account AND (NEW.spent_first > total_first OR NEW.spent_second > total_second));
  SELECT RAISE(ABORT, 'only a reservation costs') WHERE NEW.kind <> 'reserve' AND (NEW.cost_first <> 0 OR NEW.cost_second <> 0);
END;

CREATE TRIGGER entries_life BEFORE INSERT ON entries BEGIN
  SELECT RAISE(ABORT, 'the key is taken')
    WHERE NEW.kind IN ('open', 'reserve') AND EXISTS (SELECT 1 FROM entries WHERE account = NEW.account AND key = NEW.key);
  SELECT RAISE(ABORT, 'the key was never reserved')
    WHERE NEW.kind NOT IN ('open', 'bind', 'cap', 'reserve') AND NOT EXISTS
          (SELECT 1 FROM entries WHERE account = NEW.account AND key = NEW.key AND kind = 'reserve' AND digest = NEW.digest);
  SELECT RAISE(ABORT, 'there is nothing to hand out')
    WHERE NEW.kind = 'hand' AND NOT EXISTS (SELECT 1 FROM entries WHERE account = NEW.account AND key = NEW.key AND kind = 'store');
  SELECT RAISE(ABORT, 'the key is answered')
    WHERE NEW.kind IN ('resume', 'abandon', 'store')
      AND EXISTS (SELECT 1 FROM entries WHERE account = NEW.account AND key = NEW.key AND kind = 'store');
END;

CREATE TRIGGER payloads_stored BEFORE INSERT ON payloads BEGIN
  SELECT RAISE(ABORT, 'a payload belongs to the entry that stores it')
    WHERE NEW.sequence IS NOT (SELECT max(sequence) FROM entries WHERE kind = 'store' AND sequence = NEW.sequence)
       OR EXISTS (SELECT 1 FROM payloads WHERE sequence = NEW.sequence);
END;
