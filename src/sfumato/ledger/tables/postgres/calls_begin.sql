-- Makes a ledger of version 5 (Sfumato 0.2.0) one of this version, together with calls_end.sql: the functions
-- that were called give way to those of guard.sql, for the same analysts.

CREATE TEMPORARY TABLE analysts ON COMMIT DROP AS
  SELECT DISTINCT x.grantee::regrole AS who
  FROM pg_proc p, aclexplode(p.proacl) x
  WHERE p.pronamespace = current_schema()::regnamespace AND p.proname = 'enter' AND x.grantee NOT IN (0, p.proowner);

DO $$
DECLARE
  former regprocedure;
BEGIN
  FOR former IN
    SELECT oid FROM pg_proc WHERE pronamespace = current_schema()::regnamespace AND proname IN (
      'stamp', 'charge_new', 'under_ceiling', 'answer_new', 'take_turn', 'require_spender', 'keyed', 'name_question',
      'is_of_state', 'is_stamp', 'analyst_fault', 'ceiling_fault', 'enter')
  LOOP
    EXECUTE format('DROP FUNCTION %s', former);
  END LOOP;
END $$;
