-- What a ledger needs where accounts compose by curves, or may be widened to do so.
--
-- A charge of such an account has an event, which says what it draws. Its curves, {{added, ...}, {state, ...}}, say what the
-- event adds to each sum of a filter, and the sums with it: of the account, and of the ceilings by curves of its spender and
-- its data set. The rules check that the sums are added up, and that the state fits; whoever verifies the ledger derives
-- what each event adds.

ALTER TABLE accounts ADD COLUMN terms TEXT NOT NULL DEFAULT '';
ALTER TABLE ceilings ADD COLUMN terms TEXT NOT NULL DEFAULT '';
ALTER TABLE entries ADD COLUMN event TEXT NOT NULL DEFAULT '';
ALTER TABLE entries ADD COLUMN curve BIGINT[] NOT NULL DEFAULT '{}';
ALTER TABLE entries ADD COLUMN own_curve BIGINT[] NOT NULL DEFAULT '{}';
ALTER TABLE entries ADD COLUMN data_curve BIGINT[] NOT NULL DEFAULT '{}';
CREATE INDEX entries_of_events ON entries (account, sequence) WHERE event <> '';
CREATE INDEX entries_of_own_events ON entries (account, spender, sequence) WHERE event <> '' AND spender <> '';
