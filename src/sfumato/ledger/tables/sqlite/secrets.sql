-- The secrets of a ledger, in a file that only its owner may read.
--
-- `requests` finds a stored answer again: which question, about which state of which data, stands behind a key.
-- That is kept as an HMAC under the ledger's own secret; keys and digests in the ledger itself are random.
--
-- Streams are charges that are answered step by step. What was published only grows; the secret state beside it
-- moves forward, one step with each row of `steps`, in the same transaction. The last step wipes the state, the
-- tallies and the secret that stood for persons.

CREATE TABLE about (
  name  TEXT PRIMARY KEY NOT NULL CHECK (typeof(name) = 'text'),
  value BLOB NOT NULL CHECK (typeof(value) = 'blob')
);

CREATE TABLE requests (
  account TEXT NOT NULL CHECK (typeof(account) = 'text'),
  key     TEXT NOT NULL CHECK (typeof(key) = 'text'),
  tag     BLOB NOT NULL CHECK (typeof(tag) = 'blob'),
  digest  TEXT NOT NULL CHECK (typeof(digest) = 'text'),
  derived INTEGER NOT NULL CHECK (derived IN (0, 1)),          -- whether the key was made for the question
  PRIMARY KEY (account, key)
) WITHOUT ROWID;
CREATE UNIQUE INDEX requests_by_tag ON requests (account, tag) WHERE derived;

-- Hashes of entries before a ledger was upgraded, so that receipts of that time can still be checked.
CREATE TABLE replaced (
  sequence INTEGER PRIMARY KEY,
  hash     TEXT NOT NULL CHECK (typeof(hash) = 'text')
);

CREATE TABLE streams (
  stream  INTEGER PRIMARY KEY,                                -- the reservation that pays for it
  spec    BLOB NOT NULL CHECK (typeof(spec) = 'blob'),        -- what was opened; never changes
  secret  BLOB NOT NULL CHECK (typeof(secret) = 'blob'),      -- keys the hashes that stand for persons; empty at the end
  step    INTEGER NOT NULL CHECK (typeof(step) = 'integer'),
  state   BLOB NOT NULL CHECK (typeof(state) = 'blob'),       -- empty at the end
  tallied INTEGER NOT NULL CHECK (typeof(tallied) = 'integer'),
  head    TEXT NOT NULL,                                      -- hash of the last step
  seal    TEXT NOT NULL                                       -- hash of all other columns
);

CREATE TABLE steps (
  stream INTEGER NOT NULL REFERENCES streams (stream),
  step   INTEGER NOT NULL CHECK (typeof(step) = 'integer'),
  event  TEXT NOT NULL CHECK (typeof(event) = 'text'),
  output BLOB NOT NULL CHECK (typeof(output) = 'blob'),
  hash   TEXT NOT NULL,                                       -- covers the step and the hash before it
  PRIMARY KEY (stream, step)
) WITHOUT ROWID;
CREATE UNIQUE INDEX steps_by_event ON steps (stream, event) WHERE event <> '';

CREATE TABLE tallies (
  stream INTEGER NOT NULL REFERENCES streams (stream),
  who    BLOB NOT NULL CHECK (typeof(who) = 'blob'),
  rows   INTEGER NOT NULL CHECK (typeof(rows) = 'integer'),
  PRIMARY KEY (stream, who)
) WITHOUT ROWID;

CREATE TRIGGER steps_keep   BEFORE UPDATE ON steps   BEGIN SELECT RAISE(ABORT, 'steps are append-only'); END;
CREATE TRIGGER steps_stay   BEFORE DELETE ON steps   BEGIN SELECT RAISE(ABORT, 'steps are append-only'); END;
CREATE TRIGGER streams_stay BEFORE DELETE ON streams BEGIN SELECT RAISE(ABORT, 'streams stay'); END;
CREATE TRIGGER tallies_stay BEFORE DELETE ON tallies BEGIN
  SELECT RAISE(ABORT, 'tallies stay until the last step')
    WHERE NOT EXISTS (SELECT 1 FROM streams WHERE stream = OLD.stream AND state = x'');
END;

CREATE TRIGGER streams_paid BEFORE INSERT ON streams BEGIN
  SELECT RAISE(ABORT, 'a stream begins with its charge')
    WHERE NEW.step <> 0 OR NEW.tallied <> 0
       OR EXISTS (SELECT 1 FROM streams WHERE stream = NEW.stream);
END;

CREATE TRIGGER steps_next BEFORE INSERT ON steps BEGIN
  SELECT RAISE(ABORT, 'the step is not the next of its stream')
    WHERE NEW.step IS NOT (SELECT step + 1 FROM streams WHERE stream = NEW.stream);
END;

CREATE TRIGGER streams_forward BEFORE UPDATE ON streams BEGIN
  SELECT RAISE(ABORT, 'a stream moves forward with its last step')
    WHERE NEW.stream <> OLD.stream OR NEW.spec <> OLD.spec OR NEW.step <> OLD.step + 1
       OR (NEW.tallied < OLD.tallied AND NEW.state <> x'') OR (NEW.secret <> OLD.secret AND NEW.state <> x'')
       OR NEW.head IS NOT (SELECT hash FROM steps WHERE stream = NEW.stream AND step = NEW.step);
END;

CREATE TRIGGER tallies_first BEFORE INSERT ON tallies BEGIN
  SELECT RAISE(ABORT, 'a tally begins at 1')
    WHERE NEW.rows <> 1 OR EXISTS (SELECT 1 FROM tallies WHERE stream = NEW.stream AND who = NEW.who);
END;

CREATE TRIGGER tallies_forward BEFORE UPDATE ON tallies BEGIN
  SELECT RAISE(ABORT, 'a tally grows by 1') WHERE NEW.stream <> OLD.stream OR NEW.who <> OLD.who OR NEW.rows <> OLD.rows + 1;
END;

-- One statement takes a step: it adds the row that is published, and moves the stream's own row forward with it,
-- if that row is still the one that the step was computed from. A step that leaves no state is the last.

CREATE VIEW moves AS SELECT stream, seal AS before, step, '' AS event, x'' AS output, head, state, tallied, seal FROM streams;

CREATE TRIGGER moves_take INSTEAD OF INSERT ON moves BEGIN
  SELECT RAISE(ABORT, 'the stream has moved since') WHERE NEW.before IS NOT (SELECT seal FROM streams WHERE stream = NEW.stream);
  INSERT INTO steps VALUES (NEW.stream, NEW.step, NEW.event, NEW.output, NEW.head);
  UPDATE streams SET step = NEW.step, state = NEW.state, tallied = NEW.tallied, head = NEW.head, seal = NEW.seal,
    secret = CASE NEW.state WHEN x'' THEN x'' ELSE secret END WHERE stream = NEW.stream;
  DELETE FROM tallies WHERE stream = NEW.stream AND NEW.state = x'';
END;
