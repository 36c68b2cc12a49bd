-- Gives the analysts of a ledger that was made one of this version the functions that they had.

DO $$
DECLARE
  called regprocedure;
  given RECORD;
BEGIN
  FOR called IN
    SELECT oid FROM pg_proc WHERE pronamespace = current_schema()::regnamespace AND proname IN (
      'take_turn', 'require_spender', 'keyed', 'name_question',
      'terms_now', 'quotient', 'fits', 'allows', 'event_fault', 'placed', 'names_of', 'seed_of', 'is_of_state', 'is_stamp', 'analyst_fault', 'ceiling_fault', 'enter')
  LOOP
    -- A database may give others rights to whatever is made in it (ALTER DEFAULT PRIVILEGES).
    FOR given IN
      SELECT x.grantee::regrole AS who FROM pg_proc p, aclexplode(p.proacl) x
      WHERE p.oid = called AND x.grantee NOT IN (0, p.proowner)
    LOOP
      EXECUTE format('REVOKE ALL ON FUNCTION %s FROM %s', called, given.who);
    END LOOP;
    IF called::text ~ '(take_turn|name_question|names_of|seed_of|is_of_state|enter)[(]' THEN
      FOR given IN SELECT who FROM analysts LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %s', called, given.who);
      END LOOP;
    END IF;
  END LOOP;
END $$;
