-- What a ledger needs once an account has spenders. It is added when the first one is named: a file without spenders
-- stays as it was, and a file with them is refused by libraries that would not keep to their ceilings.
--
-- Each charge of a spender carries what they have spent from the account so far, so that this sum cannot move without
-- an entry. A ceiling is an entry of the kind 'cap' that names the spender; the last one holds. Its note is read by plain
-- functions of texts: those for JSON are not allowed in the rules of a file that is not trusted.

ALTER TABLE entries ADD COLUMN spender TEXT NOT NULL DEFAULT '' CHECK (typeof(spender) = 'text');
ALTER TABLE entries ADD COLUMN own_first INTEGER NOT NULL DEFAULT 0 CHECK (typeof(own_first) = 'integer' AND own_first >= 0);
ALTER TABLE entries ADD COLUMN own_second INTEGER NOT NULL DEFAULT 0 CHECK (typeof(own_second) = 'integer' AND own_second >= 0);
CREATE INDEX entries_by_spender ON entries (account, spender, sequence) WHERE spender <> '';
CREATE INDEX entries_of_ceilings ON entries (account, spender, sequence) WHERE kind = 'cap' AND spender <> '';

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
    WHERE NEW.kind = 'reserve' AND NEW.spender <> '' AND NOT EXISTS
      (SELECT 1 FROM (SELECT substr(note, instr(note, '"ceiling": [') + 12) AS ceiling FROM entries
                      WHERE account = NEW.account AND spender = NEW.spender AND spender <> '' AND kind = 'cap'
                      ORDER BY sequence DESC LIMIT 1)
       WHERE NEW.own_first <= CAST(ceiling AS INTEGER)
         AND NEW.own_second <= CAST(substr(ceiling, instr(ceiling, ', ') + 2) AS INTEGER));
END;
