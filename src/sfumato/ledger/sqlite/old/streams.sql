-- Version 2. Streams: charges that are answered step by step. What was published only grows; the secret state beside it moves
-- forward, one step with each row of `steps`, in the same transaction.

CREATE TABLE streams (
  stream  INTEGER PRIMARY KEY REFERENCES entries (sequence),  -- the reservation that pays for it
  spec    BLOB NOT NULL CHECK (typeof(spec) = 'blob'),        -- what was opened; never changes
  step    INTEGER NOT NULL CHECK (typeof(step) = 'integer'),
  state   BLOB NOT NULL CHECK (typeof(state) = 'blob'),
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
CREATE TRIGGER tallies_stay BEFORE DELETE ON tallies BEGIN SELECT RAISE(ABORT, 'tallies stay'); END;

CREATE TRIGGER streams_paid BEFORE INSERT ON streams BEGIN
  SELECT RAISE(ABORT, 'a stream begins with its charge')
    WHERE NEW.step <> 0 OR NEW.tallied <> 0
       OR NOT EXISTS (SELECT 1 FROM entries WHERE sequence = NEW.stream AND kind = 'reserve')
       OR EXISTS (SELECT 1 FROM streams WHERE stream = NEW.stream);
END;

CREATE TRIGGER steps_next BEFORE INSERT ON steps BEGIN
  SELECT RAISE(ABORT, 'the step is not the next of its stream')
    WHERE NEW.step IS NOT (SELECT step + 1 FROM streams WHERE stream = NEW.stream);
END;

CREATE TRIGGER streams_forward BEFORE UPDATE ON streams BEGIN
  SELECT RAISE(ABORT, 'a stream moves forward with its last step')
    WHERE NEW.stream <> OLD.stream OR NEW.spec <> OLD.spec OR NEW.step <> OLD.step + 1 OR NEW.tallied < OLD.tallied
       OR NEW.head IS NOT (SELECT hash FROM steps WHERE stream = NEW.stream AND step = NEW.step);
END;

CREATE TRIGGER tallies_first BEFORE INSERT ON tallies BEGIN
  SELECT RAISE(ABORT, 'a tally begins at 1')
    WHERE NEW.rows <> 1 OR EXISTS (SELECT 1 FROM tallies WHERE stream = NEW.stream AND who = NEW.who);
END;

CREATE TRIGGER tallies_forward BEFORE UPDATE ON tallies BEGIN
  SELECT RAISE(ABORT, 'a tally grows by 1') WHERE NEW.stream <> OLD.stream OR NEW.who <> OLD.who OR NEW.rows <> OLD.rows + 1;
END;
