-- What a ledger needs once an account composes by curves, or may be widened to do so. It is added when the first one is
-- opened, after `spenders.sql`: a file without curves stays as it was, and libraries that know none refuse a file with them.
--
-- A charge of such an account has an event, which says what it draws. Its curves, `[[added, ...], [state, ...]]`, say what
-- the event adds to each sum of a filter, and the sums with it: of the account, and of the ceilings by curves of its
-- spender and its data set. Two functions that the library registers check them: `sfumato_terms` reads the terms that a
-- note sets, and `sfumato_allows` derives from the event what it adds, adds it up and says whether the state fits. A
-- program without them can add no entry at all.

ALTER TABLE accounts ADD COLUMN terms TEXT NOT NULL DEFAULT '' CHECK (typeof(terms) = 'text');
ALTER TABLE ceilings ADD COLUMN terms TEXT NOT NULL DEFAULT '' CHECK (typeof(terms) = 'text');
ALTER TABLE entries ADD COLUMN event TEXT NOT NULL DEFAULT '' CHECK (typeof(event) = 'text');
ALTER TABLE entries ADD COLUMN curve TEXT NOT NULL DEFAULT '' CHECK (typeof(curve) = 'text');
ALTER TABLE entries ADD COLUMN own_curve TEXT NOT NULL DEFAULT '' CHECK (typeof(own_curve) = 'text');
ALTER TABLE entries ADD COLUMN data_curve TEXT NOT NULL DEFAULT '' CHECK (typeof(data_curve) = 'text');
CREATE INDEX entries_of_events ON entries (account, sequence) WHERE event <> '';
CREATE INDEX entries_of_own_events ON entries (account, spender, sequence) WHERE event <> '' AND spender <> '';

-- The accounts that compose by curves now: from their opening, or since they were widened.
CREATE VIEW by_curves AS
  SELECT name, terms FROM accounts
  WHERE terms <> '' AND (rule = 'approx' OR EXISTS
    (SELECT 1 FROM entries WHERE account = name AND key = '(widened)' AND kind = 'open'));

DROP TRIGGER entries_balance;
CREATE TRIGGER entries_balance BEFORE INSERT ON entries BEGIN
  SELECT RAISE(ABORT, 'the balance does not follow from the entry before')
    WHERE (NEW.kind <> 'open' OR NEW.key <> '(widened)')
      AND (NEW.spent_first - NEW.cost_first
           <> coalesce((SELECT spent_first FROM entries WHERE account = NEW.account ORDER BY sequence DESC LIMIT 1), 0)
        OR NEW.spent_second - NEW.cost_second
           <> coalesce((SELECT spent_second FROM entries WHERE account = NEW.account ORDER BY sequence DESC LIMIT 1), 0));
  SELECT RAISE(ABORT, 'the account cannot pay')
    WHERE EXISTS (SELECT 1 FROM accounts WHERE name = NEW.account AND (NEW.spent_first > total_first OR NEW.spent_second > total_second))
      AND NOT EXISTS (SELECT 1 FROM by_curves WHERE name = NEW.account);
  SELECT RAISE(ABORT, 'only a reservation costs') WHERE NEW.kind <> 'reserve' AND (NEW.cost_first <> 0 OR NEW.cost_second <> 0);
END;

CREATE TRIGGER entries_event BEFORE INSERT ON entries BEGIN
  SELECT RAISE(ABORT, 'the account is widened once, to the terms of its opening')
    WHERE NEW.kind = 'open' AND NEW.key = '(widened)'
      AND (NOT EXISTS (SELECT 1 FROM accounts WHERE name = NEW.account AND terms <> '' AND rule <> 'approx')
        OR NEW.event = '' AND EXISTS (SELECT 1 FROM entries WHERE account = NEW.account AND (spent_first <> 0 OR spent_second <> 0)));
  SELECT RAISE(ABORT, 'an account by curves is charged by events, and no other one is')
    WHERE NOT (NEW.kind = 'open' AND NEW.key = '(widened)')
      AND (NEW.event <> '') <> (NEW.kind = 'reserve' AND EXISTS (SELECT 1 FROM by_curves WHERE name = NEW.account));
  SELECT RAISE(ABORT, 'only an event has curves')
    WHERE NEW.event = '' AND (NEW.curve <> '' OR NEW.own_curve <> '' OR NEW.data_curve <> '');
  SELECT RAISE(ABORT, 'the account cannot pay')
    WHERE NEW.event <> ''
      AND NOT sfumato_allows((SELECT terms FROM accounts WHERE name = NEW.account), NEW.event, NEW.curve,
        coalesce((SELECT curve FROM entries WHERE account = NEW.account AND event <> '' ORDER BY sequence DESC LIMIT 1), ''));
  SELECT RAISE(ABORT, 'the data set cannot pay')
    WHERE NEW.event <> '' AND NEW.kind = 'reserve'
      AND NOT sfumato_allows(
        coalesce((SELECT c.terms FROM ceilings c JOIN bindings b ON b.data = c.data WHERE b.account = NEW.account AND b.data <> ''), ''),
        NEW.event, NEW.data_curve,
        coalesce((SELECT e.data_curve FROM entries e JOIN bindings b ON b.account = e.account
                  WHERE b.data = (SELECT data FROM bindings WHERE account = NEW.account) AND e.event <> ''
                  ORDER BY e.sequence DESC LIMIT 1), ''));
END;

DROP TRIGGER entries_spender;
CREATE TRIGGER entries_spender BEFORE INSERT ON entries BEGIN
  SELECT RAISE(ABORT, 'only a charge or a ceiling has a spender') WHERE NEW.spender <> '' AND NEW.kind NOT IN ('reserve', 'cap');
  SELECT RAISE(ABORT, 'the sum of the spender does not follow from the entry before')
    WHERE (NEW.spender = '' AND (NEW.own_first <> 0 OR NEW.own_second <> 0))
       OR (NEW.spender <> '' AND NEW.own_first - NEW.cost_first <> coalesce((SELECT own_first FROM entries
             WHERE account = NEW.account AND spender = NEW.spender AND spender <> '' ORDER BY sequence DESC LIMIT 1), 0))
       OR (NEW.spender <> '' AND NEW.own_second - NEW.cost_second <> coalesce((SELECT own_second FROM entries
             WHERE account = NEW.account AND spender = NEW.spender AND spender <> '' ORDER BY sequence DESC LIMIT 1), 0));
  SELECT RAISE(ABORT, 'the account is charged by its spenders only')
    WHERE NEW.kind = 'reserve' AND NEW.spender = ''
      AND EXISTS (SELECT 1 FROM entries WHERE account = NEW.account AND kind = 'cap' AND spender <> '');
  SELECT RAISE(ABORT, 'the spender cannot pay')
    WHERE NEW.kind = 'reserve' AND NEW.spender <> '' AND NEW.event = '' AND NOT EXISTS
      (SELECT 1 FROM (SELECT substr(note, instr(note, '"ceiling": [') + 12) AS ceiling FROM entries
                      WHERE account = NEW.account AND spender = NEW.spender AND spender <> '' AND kind = 'cap'
                      ORDER BY sequence DESC LIMIT 1)
       WHERE NEW.own_first <= CAST(ceiling AS INTEGER)
         AND NEW.own_second <= CAST(substr(ceiling, instr(ceiling, ', ') + 2) AS INTEGER));
  SELECT RAISE(ABORT, 'the spender cannot pay')
    WHERE NEW.event <> '' AND NEW.spender = '' AND NEW.own_curve <> '';
  SELECT RAISE(ABORT, 'the spender cannot pay')
    WHERE NEW.event <> '' AND NEW.spender <> ''
      AND (NEW.own_curve = '' OR NOT sfumato_allows(
        coalesce((SELECT sfumato_terms(note) FROM entries
                  WHERE account = NEW.account AND spender = NEW.spender AND spender <> '' AND kind = 'cap'
                  ORDER BY sequence DESC LIMIT 1), ''),
        NEW.event, NEW.own_curve,
        coalesce((SELECT own_curve FROM entries
                  WHERE account = NEW.account AND spender = NEW.spender AND spender <> '' AND event <> ''
                  ORDER BY sequence DESC LIMIT 1), '')));
END;
