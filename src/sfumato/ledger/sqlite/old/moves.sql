-- Version 3. One statement takes a step: it adds the row that is published, and moves the stream's own row forward with it, if that row
-- is still the one that the step was computed from.

CREATE VIEW moves AS SELECT stream, seal AS before, step, '' AS event, x'' AS output, head, state, tallied, seal FROM streams;

CREATE TRIGGER moves_take INSTEAD OF INSERT ON moves BEGIN
  SELECT RAISE(ABORT, 'the stream has moved since') WHERE NEW.before IS NOT (SELECT seal FROM streams WHERE stream = NEW.stream);
  INSERT INTO steps VALUES (NEW.stream, NEW.step, NEW.event, NEW.output, NEW.head);
  UPDATE streams SET step = NEW.step, state = NEW.state, tallied = NEW.tallied, head = NEW.head, seal = NEW.seal
    WHERE stream = NEW.stream;
END;
