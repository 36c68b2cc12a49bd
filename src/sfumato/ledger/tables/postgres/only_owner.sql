-- A database may give others rights to whatever is made in it (ALTER DEFAULT PRIVILEGES). Nobody but its owner has any to
-- a schema that was just made: `sfumato ledger roles` gives what is needed, by name.
DO $$
DECLARE
  here regnamespace := current_schema()::regnamespace;
  who TEXT;
BEGIN
  FOR who IN
    SELECT DISTINCT CASE x.grantee WHEN 0 THEN 'PUBLIC' ELSE x.grantee::regrole::text END
    FROM (
      SELECT nspowner, nspacl FROM pg_namespace WHERE oid = here
      UNION ALL SELECT relowner, relacl FROM pg_class WHERE relnamespace = here
      UNION ALL SELECT proowner, proacl FROM pg_proc WHERE pronamespace = here
    ) AS made (owner, rights), aclexplode(made.rights) x
    WHERE x.grantee <> made.owner
  LOOP
    EXECUTE format('REVOKE ALL ON SCHEMA %s FROM %s', here, who);
    EXECUTE format('REVOKE ALL ON ALL TABLES IN SCHEMA %s FROM %s', here, who);
    EXECUTE format('REVOKE ALL ON ALL SEQUENCES IN SCHEMA %s FROM %s', here, who);
    EXECUTE format('REVOKE ALL ON ALL ROUTINES IN SCHEMA %s FROM %s', here, who);
  END LOOP;
END $$;
