-- The secrets of a ledger, in a schema that only its owner may read.
--
-- `requests` finds a stored answer again: which question, about which state of which data, stands behind a key.
-- That is kept as an HMAC under the ledger's own secret; keys and digests in the public part are random.
--
-- Streams are charges that are answered step by step. What was published only grows; the secret state beside it
-- moves forward, one step with each row of `steps`, in the same transaction. The last step wipes the state, the
-- tallies and the secret that stood for persons.

CREATE TABLE about (
  name  TEXT PRIMARY KEY,
  value BYTEA NOT NULL
);

CREATE TABLE requests (
  account TEXT NOT NULL,
  key     TEXT NOT NULL,
  tag     BYTEA NOT NULL,
  digest  TEXT NOT NULL,
  derived BOOLEAN NOT NULL,                                   -- whether the key was made for the question
  PRIMARY KEY (account, key)
);
CREATE UNIQUE INDEX requests_by_tag ON requests (account, tag) WHERE derived;

-- Hashes of entries before a ledger was upgraded, so that receipts of that time can still be checked.
CREATE TABLE replaced (
  sequence BIGINT PRIMARY KEY,
  hash     TEXT NOT NULL
);

CREATE TABLE streams (
  stream  BIGINT PRIMARY KEY,                                 -- the reservation that pays for it
  spec    BYTEA NOT NULL,                                     -- what was opened; never changes
  secret  BYTEA NOT NULL,                                     -- keys the hashes that stand for persons; empty at the end
  step    BIGINT NOT NULL,
  state   BYTEA NOT NULL,                                     -- empty at the end
  tallied BIGINT NOT NULL,
  head    TEXT NOT NULL,                                      -- hash of the last step
  seal    TEXT NOT NULL                                       -- hash of all other columns
);

CREATE TABLE steps (
  stream BIGINT NOT NULL REFERENCES streams (stream),
  step   BIGINT NOT NULL,
  event  TEXT NOT NULL,
  output BYTEA NOT NULL,
  hash   TEXT NOT NULL,                                       -- covers the step and the hash before it
  PRIMARY KEY (stream, step)
);
CREATE UNIQUE INDEX steps_by_event ON steps (stream, event) WHERE event <> '';

CREATE TABLE tallies (
  stream BIGINT NOT NULL REFERENCES streams (stream),
  who    BYTEA NOT NULL,
  rows   BIGINT NOT NULL,
  PRIMARY KEY (stream, who)
);

CREATE FUNCTION stay() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER steps_stay   BEFORE UPDATE OR DELETE OR TRUNCATE ON steps   FOR EACH STATEMENT EXECUTE FUNCTION stay();
CREATE TRIGGER streams_stay BEFORE DELETE OR TRUNCATE           ON streams FOR EACH STATEMENT EXECUTE FUNCTION stay();
CREATE TRIGGER tallies_keep BEFORE TRUNCATE                     ON tallies FOR EACH STATEMENT EXECUTE FUNCTION stay();

CREATE FUNCTION streams_forward() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    IF NEW.step <> 0 OR NEW.tallied <> 0 THEN
      RAISE EXCEPTION 'a stream begins with its charge' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
  ELSIF NEW.stream <> OLD.stream OR NEW.spec <> OLD.spec OR NEW.step <> OLD.step + 1
     OR (NEW.tallied < OLD.tallied AND NEW.state <> ''::bytea) OR (NEW.secret <> OLD.secret AND NEW.state <> ''::bytea)
     OR NEW.head IS DISTINCT FROM (SELECT hash FROM steps WHERE stream = NEW.stream AND step = NEW.step) THEN
    RAISE EXCEPTION 'a stream moves forward with its last step' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER streams_forward BEFORE INSERT OR UPDATE ON streams FOR EACH ROW EXECUTE FUNCTION streams_forward();

CREATE FUNCTION steps_next() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.step IS DISTINCT FROM (SELECT step + 1 FROM streams WHERE stream = NEW.stream) THEN
    RAISE EXCEPTION 'the step is not the next of its stream' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER steps_next BEFORE INSERT ON steps FOR EACH ROW EXECUTE FUNCTION steps_next();

CREATE FUNCTION tallies_forward() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    IF NEW.rows <> 1 THEN
      RAISE EXCEPTION 'a tally begins at 1' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
  ELSIF TG_OP = 'UPDATE' THEN
    IF NEW.stream <> OLD.stream OR NEW.who <> OLD.who OR NEW.rows <> OLD.rows + 1 THEN
      RAISE EXCEPTION 'a tally grows by 1' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
  ELSIF NOT EXISTS (SELECT 1 FROM streams WHERE stream = OLD.stream AND state = ''::bytea) THEN
    RAISE EXCEPTION 'tallies stay until the last step' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN OLD;
END $$;
CREATE TRIGGER tallies_forward BEFORE INSERT OR UPDATE OR DELETE ON tallies FOR EACH ROW EXECUTE FUNCTION tallies_forward();

-- One call takes a step: it adds the row that is published, and moves the stream's own row forward with it, if that
-- row is still the one that the step was computed from. A step that leaves no state is the last.
CREATE FUNCTION take_step(which BIGINT, before TEXT, number BIGINT, named TEXT, published BYTEA, linked TEXT,
                          after BYTEA, counted BIGINT, sealed TEXT) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  -- A move marks the ledger under a lock that waits for this one: no step is under way when it copies.
  LOCK TABLE about IN ROW EXCLUSIVE MODE;
  IF EXISTS (SELECT 1 FROM about WHERE name = 'moved to') THEN
    RAISE EXCEPTION 'the ledger was moved' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  PERFORM 1 FROM streams WHERE stream = which AND seal = before FOR UPDATE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'the stream has moved since' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  INSERT INTO steps (stream, step, event, output, hash) VALUES (which, number, named, published, linked);
  UPDATE streams SET step = number, state = after, tallied = counted, head = linked, seal = sealed,
    secret = CASE WHEN after = ''::bytea THEN ''::bytea ELSE secret END WHERE stream = which;
  IF after = ''::bytea THEN
    DELETE FROM tallies WHERE stream = which;
  END IF;
END $$;


-- Wait for the turn to write; the number of the transaction, by which its fate can be asked for.
CREATE FUNCTION take_turn() RETURNS TEXT LANGUAGE plpgsql AS $$
BEGIN
  LOCK TABLE about IN EXCLUSIVE MODE;
  RETURN pg_current_xact_id()::text;
END $$;

DO $$
BEGIN
  EXECUTE format('REVOKE ALL ON ALL FUNCTIONS IN SCHEMA %I FROM PUBLIC', current_schema());
END $$;
